/// \file What any exception says about a failure, in one form.
///
/// Who reports a failure (the `assay` command, a trial, the debug wrapper, a comparison) asks here
/// instead of catching each type.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "assay/error.h"
#include "graph/meta.h"

namespace c10 {
class Error;
}

namespace assay::aten {

/// A failure of the program under test that is not one of its operators' (`OperatorError`): a
/// compiler refused it, its results are wrong. The base of the exceptions of higher rooms.
class ProgramError : public std::runtime_error, public Error {
 public:
  ProgramError(std::string type, const std::string& text, std::string message,
               std::string node = {}, graph::Provenance provenance = {})
      : std::runtime_error(text),
        type_(std::move(type)),
        message_(std::move(message)),
        node_(std::move(node)),
        provenance_(std::move(provenance)) {}

  const std::string& type() const { return type_; }
  /// Without who says it: what() has that too.
  const std::string& message() const { return message_; }
  /// The node it is about; empty if there is none.
  const std::string& node() const { return node_; }
  /// The nodes of earlier stages that it was made of.
  const graph::Provenance& provenance() const { return provenance_; }

 private:
  std::string type_;
  std::string message_;
  std::string node_;
  graph::Provenance provenance_;
};

struct FailureDetail {
  enum class Blame {
    program,  ///< The program under test, or its compiler.
    user,     ///< The request, the file, or the machine: a full disk.
    assay,    ///< A bug of ours.
  };

  Blame blame = Blame::program;
  std::string type;     ///< `OperatorError`, `c10::Error`, `bad_alloc`, ...
  std::string message;  ///< The failure's own.
  std::string text;     ///< The whole message, for people.
  // Of the node that failed, as far as one is known.
  std::string node = {};
  std::string target = {};
  std::string raised = {};  ///< What the operator raised, as Python calls it: `IndexError`.
  std::string call = {};
  std::vector<graph::StackFrame> stack = {};
  graph::Provenance provenance = {};
  /// Of a mistake in a file of the user's.
  TextLocation where = {};
  std::string hint = {};
};

/// The class of PyTorch's exception in Python: `IndexError`, `RuntimeError`, ...
const char* python_class_of(const c10::Error& error);

/// Describes the exception that is being handled. An exception of a type that nobody expected while
/// a program runs is the program's: libraries below it throw what they like.
FailureDetail describe_exception();

}  // namespace assay::aten
