/// \file Splits Python text into tokens, for graph/python_parser.h. Nothing is ever executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assay/error.h"

namespace assay::graph::python {

/// A text with its name, for messages. Tokens and syntax trees point into it, so it must outlive
/// them.
struct Source {
  std::string file;
  std::string text;

  /// The error for `length` bytes at `offset`: with line, column and the line's text.
  UserError error(std::size_t offset, std::size_t length, const std::string& message,
                  const std::string& hint = {}) const;
};

enum class TokenKind : std::uint8_t {
  name,
  number,
  string,
  punctuation,
  newline,
  indent,
  dedent,
  end
};

struct Token {
  TokenKind kind;
  bool is_raw = false;        ///< String literal with an r prefix.
  bool is_formatted = false;  ///< String literal with an f prefix.
  bool is_bytes = false;      ///< String literal with a b prefix.
  std::size_t offset;
  std::string_view text;  ///< As written; for a string the part between its quotes.

  bool is(std::string_view punctuation_or_keyword) const {
    // The first character settles most questions without a call.
    return (kind == TokenKind::punctuation || kind == TokenKind::name) &&
           text.size() == punctuation_or_keyword.size() &&
           text.front() == punctuation_or_keyword.front() && text == punctuation_or_keyword;
  }
};

/// A `# ...` comment that stands alone on its line or ends one.
struct Comment {
  std::size_t offset;
  std::string_view text;  ///< Without the `#` and surrounding blanks.
};

struct TokenStream {
  std::vector<Token> tokens;  ///< The last one is `end`.
  std::vector<Comment> comments;
};

/// Throws `UserError` with line and column for text that cannot be Python: binary data, a string or
/// bracket that never ends, inconsistent indentation, a file over 64 MiB.
TokenStream tokenize(const Source& source);

}  // namespace assay::graph::python
