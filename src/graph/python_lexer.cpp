#include "graph/python_lexer.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace assay::graph::python {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxIndentLevels = 100;
constexpr std::size_t kMaxOpenBrackets = 200;
constexpr std::size_t kShownLineLength = 160;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}
bool continues_name(char c) { return starts_name(c) || is_digit(c); }

// Longest first, so that `**=` is not read as `*`, `*`, `=`.
constexpr std::array<std::string_view, 47> kPunctuation = {
    "**=", "//=", ">>=", "<<=", "...", "!=", "->", ":=", "**", "//", ">>", "<<",
    "<=",  ">=",  "==",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "@=",
    "(",   ")",   "[",   "]",   "{",   "}",  ",",  ":",  ".",  ";",  "@",  "=",
    "+",   "-",   "*",   "/",   "%",   "&",  "|",  "^",  "~",  "<",  ">"};

// Length of the valid UTF-8 sequence at `text[0]`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  return length;
}

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text) {}

  TokenStream run() {
    check_is_text();
    stream_.tokens.reserve(text_.size() / 4 + 16);
    while (position_ < text_.size()) {
      if (at_line_start_ && brackets_.empty()) {
        read_indentation();
        if (position_ >= text_.size()) break;
      }
      read_token();
    }
    if (!brackets_.empty()) {
      throw source_.error(brackets_.back(), 1,
                          std::string("'") + text_[brackets_.back()] + "' is never closed",
                          "the file looks cut off: expected the matching bracket before its end");
    }
    if (!stream_.tokens.empty() && stream_.tokens.back().kind != TokenKind::newline) {
      add(TokenKind::newline, text_.size(), 0);
    }
    for (; indents_.size() > 1; indents_.pop_back()) add(TokenKind::dedent, text_.size(), 0);
    add(TokenKind::end, text_.size(), 0);
    return std::move(stream_);
  }

 private:
  void check_is_text() const {
    if (text_.size() > kMaxFileBytes) {
      throw UserError(source_.file + ": the file has " + std::to_string(text_.size()) +
                          " bytes; a graph file may have at most " + std::to_string(kMaxFileBytes),
                      "keep tensor data in a storage directory, not in the text");
    }
    for (std::size_t i = 0; i < text_.size();) {
      const char c = text_[i];
      if ((c >= ' ' && c < 0x7F) || c == '\n' || c == '\t' || c == '\r' || c == '\f') {
        ++i;
        continue;
      }
      const std::size_t length = utf8_length(std::string_view(text_).substr(i));
      if (length < 2) {
        std::array<char, 8> byte{};
        std::snprintf(byte.data(), byte.size(), "0x%02x", static_cast<unsigned char>(c));
        throw source_.error(i, 1, std::string("the file is not text: byte ") + byte.data(),
                            "expected a Python program in UTF-8");
      }
      i += length;
    }
  }

  void add(TokenKind kind, std::size_t offset, std::size_t length) {
    stream_.tokens.push_back(
        {kind, false, false, false, offset, std::string_view(text_).substr(offset, length)});
  }

  char peek(std::size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }

  void read_comment() {
    const std::size_t begin = position_;
    position_ = std::min(text_.find('\n', position_), text_.size());
    std::string_view body = std::string_view(text_).substr(begin + 1, position_ - begin - 1);
    while (!body.empty() && (body.front() == ' ' || body.front() == '\t')) body.remove_prefix(1);
    while (!body.empty() && (body.back() == ' ' || body.back() == '\r')) body.remove_suffix(1);
    stream_.comments.push_back({begin, body});
  }

  // Measures the indentation of the next line that has code; blank and comment lines do not count.
  void read_indentation() {
    while (position_ < text_.size()) {
      std::size_t column = 0;
      const std::size_t line_begin = position_;
      for (;; ++position_) {
        if (peek() == ' ') {
          ++column;
        } else if (peek() == '\t') {
          column = (column / 8 + 1) * 8;
        } else if (peek() == '\f') {
          column = 0;
        } else {
          break;
        }
      }
      if (peek() == '#') read_comment();
      if (position_ >= text_.size()) return;
      if (peek() == '\r') ++position_;
      if (peek() == '\n') {
        ++position_;
        continue;
      }
      if (position_ >= text_.size()) return;
      at_line_start_ = false;
      apply_indentation(column, line_begin);
      return;
    }
  }

  void apply_indentation(std::size_t column, std::size_t line_begin) {
    if (column > indents_.back()) {
      if (indents_.size() >= kMaxIndentLevels) {
        throw source_.error(position_, 1, "too many levels of indentation");
      }
      indents_.push_back(column);
      add(TokenKind::indent, line_begin, 0);
      return;
    }
    while (column < indents_.back()) {
      indents_.pop_back();
      add(TokenKind::dedent, position_, 0);
    }
    if (column != indents_.back()) {
      throw source_.error(position_, 1, "this indentation matches no enclosing block");
    }
  }

  void read_token() {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++position_;
    } else if (c == '#') {
      read_comment();
    } else if (c == '\n') {
      if (brackets_.empty()) {
        add(TokenKind::newline, position_, 1);
        at_line_start_ = true;
      }
      ++position_;
    } else if (c == '\\') {
      read_continuation();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      read_number();
    } else if (c == '"' || c == '\'') {
      read_string(position_);
    } else if (starts_name(c)) {
      read_name();
    } else {
      read_punctuation();
    }
  }

  void read_continuation() {
    std::size_t next = position_ + 1;
    if (next < text_.size() && text_[next] == '\r') ++next;
    if (next >= text_.size() || text_[next] != '\n') {
      throw source_.error(position_, 1, "unexpected '\\'", "expected an end of line after it");
    }
    position_ = next + 1;
  }

  void read_name() {
    const std::size_t begin = position_;
    while (continues_name(peek())) ++position_;
    // A short name right before a quote is a string's prefix.
    if ((peek() == '"' || peek() == '\'') && position_ - begin <= 2) {
      const std::string_view prefix = std::string_view(text_).substr(begin, position_ - begin);
      if (prefix.find_first_not_of("rRbBuUfF") == std::string_view::npos) {
        read_string(begin);
        return;
      }
    }
    add(TokenKind::name, begin, position_ - begin);
  }

  void read_number() {
    const std::size_t begin = position_;
    const bool has_base = peek() == '0' &&
                          std::string_view("xXoObB").find(peek(1)) != std::string_view::npos &&
                          peek(1) != '\0';
    if (has_base) position_ += 2;
    while (true) {
      const char c = peek();
      const bool is_exponent_sign = (c == '+' || c == '-') && !has_base && position_ > begin &&
                                    (text_[position_ - 1] == 'e' || text_[position_ - 1] == 'E');
      if (is_digit(c) || c == '.' || starts_name(c) || is_exponent_sign) {
        ++position_;
      } else {
        break;
      }
    }
    add(TokenKind::number, begin, position_ - begin);
  }

  // `begin` is where the prefix starts; the quote is at the current position.
  void read_string(std::size_t begin) {
    const std::string_view prefix = std::string_view(text_).substr(begin, position_ - begin);
    const char quote = peek();
    const bool is_triple = peek(1) == quote && peek(2) == quote;
    const std::size_t quotes = is_triple ? 3 : 1;
    position_ += quotes;
    const std::size_t body = position_;
    const std::string closing(quotes, quote);
    while (true) {
      if (position_ >= text_.size() || (!is_triple && peek() == '\n')) {
        throw source_.error(begin, 1, "this string is never closed", "expected " + closing);
      }
      if (text_.compare(position_, quotes, closing) == 0) break;
      position_ += peek() == '\\' ? 2 : 1;
    }
    add(TokenKind::string, begin, 0);
    Token& token = stream_.tokens.back();
    token.text = std::string_view(text_).substr(body, position_ - body);
    token.is_raw = prefix.find_first_of("rR") != std::string_view::npos;
    token.is_bytes = prefix.find_first_of("bB") != std::string_view::npos;
    token.is_formatted = prefix.find_first_of("fF") != std::string_view::npos;
    position_ += quotes;
  }

  void read_punctuation() {
    const std::string_view rest = std::string_view(text_).substr(position_);
    const auto* found = std::ranges::find_if(kPunctuation, [&](std::string_view candidate) {
      return candidate.front() == rest.front() && rest.starts_with(candidate);
    });
    if (found == kPunctuation.end()) {
      throw source_.error(position_, 1, std::string("unexpected character '") + peek() + "'");
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') {
      if (brackets_.size() >= kMaxOpenBrackets) {
        throw source_.error(position_, 1, "brackets are nested too deeply");
      }
      brackets_.push_back(position_);
    } else if (c == ')' || c == ']' || c == '}') {
      close_bracket(c);
    }
    add(TokenKind::punctuation, position_, found->size());
    position_ += found->size();
  }

  void close_bracket(char closing) {
    const char opening = closing == ')' ? '(' : closing == ']' ? '[' : '{';
    if (brackets_.empty()) {
      throw source_.error(position_, 1, std::string("unmatched '") + closing + "'");
    }
    if (text_[brackets_.back()] != opening) {
      throw source_.error(position_, 1,
                          std::string("'") + closing + "' does not match the open '" +
                              text_[brackets_.back()] + "'");
    }
    brackets_.pop_back();
  }

  const Source& source_;
  const std::string& text_;
  std::size_t position_ = 0;
  bool at_line_start_ = true;
  std::vector<std::size_t> indents_ = {0};
  std::vector<std::size_t> brackets_;  // offsets of the open ones
  TokenStream stream_;
};

// What may be printed on a terminal: control bytes and broken UTF-8 become '?'.
std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (text[i] == '\t') {
      shown += ' ';
      ++i;
    } else if (length == 0 || (length == 1 && (text[i] < ' ' || text[i] == 0x7F))) {
      shown += '?';
      ++i;
    } else {
      shown += text.substr(i, length);
      i += length;
    }
  }
  return shown;
}

std::size_t count_columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

UserError Source::error(std::size_t offset, std::size_t length, const std::string& message,
                        const std::string& hint) const {
  offset = std::min(offset, text.size());
  const std::string_view all = text;
  std::size_t line_begin = offset == 0 ? std::string_view::npos : all.rfind('\n', offset - 1);
  line_begin = line_begin == std::string_view::npos ? 0 : line_begin + 1;
  const std::size_t line_end = std::min(all.find('\n', offset), all.size());
  const auto line = 1 + std::ranges::count(all.substr(0, line_begin), '\n');

  UserErrorDetail detail;
  detail.message = message;
  detail.hint = hint;
  detail.where = {file, static_cast<std::size_t>(line),
                  count_columns(printable(all.substr(line_begin, offset - line_begin))) + 1};
  const std::size_t shown_end =
      std::min({line_end, std::max(offset, line_begin) + kShownLineLength});
  if (offset - line_begin <= kShownLineLength) {
    detail.source_line = printable(all.substr(line_begin, shown_end - line_begin));
    const std::size_t marked_end = std::min(offset + length, shown_end);
    detail.length = count_columns(printable(all.substr(offset, marked_end - offset)));
  }
  return UserError(std::move(detail));
}

TokenStream tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace assay::graph::python
