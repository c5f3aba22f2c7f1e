/// \file What a failure is known by, so that a reduction never ends at a different one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sandbox/trial.h"

namespace assay::sandbox {

enum class Verdict {
  passed,
  invalid,    ///< Fails eagerly, or cannot be run at all: says nothing about the compiler.
  exception,  ///< The compiler, or what it compiled, raised.
  signal,     ///< The process crashed.
  timeout,
  memory,
  accuracy,
  killed,    ///< Ended by somebody else, or the server could not run it: says nothing at all.
  internal,  ///< Assay itself has a bug: says nothing about the program, and is to be reported.
};

const char* to_string(Verdict verdict);
/// Nothing if there is no verdict of that name.
std::optional<Verdict> verdict_named(std::string_view name);

struct Signature {
  Verdict verdict = Verdict::passed;
  std::optional<Stage> stage = std::nullopt;
  std::string type;     ///< `RuntimeError`, `SIGSEGV`, for accuracy `nan`, `values`, ...
  std::string op;       ///< Its base name: `relu`; empty if it is not known.
  std::string message;  ///< Normalised.
  /// Of a wrong result; they tell, they do not identify.
  double magnitude = 0;
  std::string where = {};

  /// Of the program, or of its compiler.
  bool is_failure() const {
    return verdict != Verdict::passed && verdict != Verdict::invalid &&
           verdict != Verdict::killed && verdict != Verdict::internal;
  }
};

/// Judges how a trial ended.
Signature classify(const Outcome& outcome);

/// Throws the `InternalError` that the trial met, if it met one.
void throw_if_internal(const Signature& signature);

/// The same failure: equal in everything that identifies one.
bool is_same(const Signature& left, const Signature& right);

/// One line for people: `SIGSEGV in relu while running`.
std::string describe(const Signature& signature);

/// A message without what varies from one candidate to the next: numbers, shapes, addresses, paths,
/// the counters in names. Of a compiler's output only the first error.
std::string normalise_message(std::string_view message);

}  // namespace assay::sandbox
