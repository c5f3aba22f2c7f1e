/// \file The two kinds of failure Assay reports by throwing.
///
/// `UserError`: something in the user's request or file was wrong. It says what, where in the
/// user's file, and what to do next; the `assay` command prints it and exits with 2.
/// `InternalError`: a bug of Assay's own; it names the place in our sources and asks for a report.
/// The command exits with 3.
///
/// To add a kind of error, derive from one of these, or from `Error` and a standard exception, in
/// the room that throws it, and define the class that Python raises in python/assay/errors.py.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace assay {

/// What all exceptions of Assay's have in common. Each is a std::exception as well.
class Error {
 public:
  /// The class of python/assay/errors.py that Python raises for it.
  virtual const char* python_class() const noexcept = 0;

 protected:
  Error() = default;
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() = default;
};

/// A place in a text the user gave us. Lines and columns count from 1; line 0 means "no place".
struct TextLocation {
  std::string file;
  std::size_t line = 0;
  std::size_t column = 0;
};

/// The parts of a message about the user's input; only `message` must be filled in.
struct UserErrorDetail {
  std::string message;      ///< What is wrong, in one sentence.
  TextLocation where;       ///< Where in the user's file.
  std::string source_line;  ///< The offending line as the user wrote it.
  std::size_t length = 1;   ///< How many columns of `source_line` to underline.
  std::string hint;         ///< What to do about it.
};

class UserError : public std::runtime_error, public Error {
 public:
  explicit UserError(UserErrorDetail detail)
      : std::runtime_error(render(detail)), detail_(std::move(detail)) {}
  explicit UserError(std::string message, std::string hint = {})
      : UserError(UserErrorDetail{std::move(message), {}, {}, 1, std::move(hint)}) {}

  const UserErrorDetail& detail() const { return detail_; }
  const char* python_class() const noexcept override { return "UserError"; }

 private:
  static std::string render(const UserErrorDetail& detail);

  UserErrorDetail detail_;
};

/// What was asked for exists only in Python, so that no process without it can do it.
class NeedsPythonError : public UserError {
 public:
  using UserError::UserError;
};

/// A program does something that cannot be part of a graph: it reads a tensor's values, or makes a
/// tensor whose size depends on them. Run eagerly it is fine; see `CompileOptions::fallback`.
class TraceError : public UserError {
 public:
  using UserError::UserError;
  const char* python_class() const noexcept override { return "TraceError"; }
};

class InternalError : public std::logic_error, public Error {
 public:
  explicit InternalError(const std::string& message, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE())
      : std::logic_error(render(message, file, line)) {}
  /// The error of another process, such as a trial, by what its what() said.
  static InternalError from_text(const std::string& text) { return {Text(), text}; }

  const char* python_class() const noexcept override { return "InternalError"; }

 private:
  struct Text {};
  InternalError(Text, const std::string& text) : std::logic_error(text) {}
  static std::string render(const std::string& message, const char* file, int line);
};

/// Throws `InternalError` unless `condition` holds. `message` says what should have been true.
inline void internal_check(bool condition, const char* message, const char* file = __builtin_FILE(),
                           int line = __builtin_LINE()) {
  if (!condition) throw InternalError(message, file, line);
}

}  // namespace assay
