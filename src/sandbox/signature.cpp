#include "sandbox/signature.h"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <vector>

#include "assay/error.h"
#include "graph/graph.h"

namespace assay::sandbox {

namespace {

constexpr std::size_t kMessageLength = 300;

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}
bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

// `a.cpp:12:5: error: expected ';'` becomes `error: expected ';'`; else the text itself.
std::string_view first_compiler_error(std::string_view text) {
  const std::size_t found = text.find(" error: ");
  if (found == std::string_view::npos) return text;
  const std::string_view line = text.substr(found + 1);
  return line.substr(0, line.find('\n'));
}

// What compilers number: `buf12`, `arg0`, `tmp5`, `s77`. Other digits mean something: `float32`.
bool is_numbered(std::string_view stem) {
  static constexpr std::string_view kStems[] = {"arg",    "buf",     "tmp",        "op", "ks",
                                                "in_ptr", "out_ptr", "in_out_ptr", "s",  "u"};
  return std::ranges::find(kStems, stem) != std::end(kStems);
}

// Inductor numbers its accumulators in the middle of their names: `at_Half_tmp_acc1_vec`.
std::string without_accumulator_number(std::string_view word) {
  static constexpr std::string_view kStem = "tmp_acc";
  std::string name(word);
  const std::size_t found = name.find(kStem);
  if (found == std::string::npos) return name;
  const std::size_t begin = found + kStem.size();
  std::size_t end = begin;
  while (end < name.size() && is_digit(name[end])) ++end;
  if (end == name.size() || name[end] == '_') name.erase(begin, end - begin);
  return name;
}

// Without the letter that the end cuts in two: a log could not hold it.
void drop_half_letter(std::string& text) {
  std::size_t begin = text.size();
  while (begin > 0 && (text[begin - 1] & 0xC0) == 0x80) --begin;
  if (begin == 0) return;
  const auto first = static_cast<unsigned char>(text[begin - 1]);
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  if (text.size() - begin + 1 < length) text.resize(begin - 1);
}

// One token after the other; what varies becomes a mark.
class Normaliser {
 public:
  explicit Normaliser(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size() && out_.size() < kMessageLength) {
      const char letter = text_[at_];
      if (letter == '/') {
        path();
      } else if (is_word(letter)) {
        word();
      } else if (std::isspace(static_cast<unsigned char>(letter)) != 0) {
        ++at_;
        if (!out_.empty() && out_.back() != ' ') out_ += ' ';
      } else {
        out_ += letter;
        ++at_;
      }
    }
    drop_half_letter(out_);
    while (out_.ends_with(' ')) out_.pop_back();
    return std::move(out_);
  }

 private:
  std::string_view take_word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // A name without its counter (`relu_3` is `relu`); a number, with its fraction and all the
  // numbers that follow it in a shape (`200x3`, `3, 4`), is N.
  void word() {
    std::string_view word = take_word();
    if (!is_digit(word.front())) {
      while (true) {
        const std::size_t end = word.find_last_not_of("0123456789");
        if (end == std::string_view::npos || end + 1 == word.size()) break;
        const bool is_name = is_numbered(word.substr(0, end + 1));
        if (word[end] != '_' && !is_name) break;
        word = word.substr(0, is_name ? end + 1 : end);
      }
      out_ += without_accumulator_number(word);
      return;
    }
    while (at_ + 1 < text_.size() && (text_[at_] == '.' || text_[at_] == '-') &&
           is_digit(text_[at_ + 1])) {
      ++at_;
      take_word();
    }
    if (out_.ends_with("N, ") || out_.ends_with("N,")) {
      out_.erase(out_.rfind('N') + 1);
    } else {
      if (out_.ends_with('-')) out_.pop_back();
      out_ += 'N';
    }
  }

  // `/tmp/x/ab.cpp` varies; `and/or` does not.
  void path() {
    if (!out_.empty() && is_word(out_.back())) {
      out_ += text_[at_++];
      return;
    }
    while (at_ < text_.size() && std::strchr(" \t\n'\",;()", text_[at_]) == nullptr) ++at_;
    out_ += "<path>";
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

bool contains_any(std::string_view text, const std::vector<std::string_view>& parts) {
  for (std::string_view part : parts) {
    if (text.find(part) != std::string_view::npos) return true;
  }
  return false;
}

bool is_about_memory(const Report& report) {
  return contains_any(report.type, {"bad_alloc", "MemoryError", "OutOfMemoryError"}) ||
         contains_any(report.message,
                      {"std::bad_alloc", "not enough memory", "can't allocate memory",
                       "Cannot allocate memory", "out of memory", "Unable to allocate"});
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : "SIG" + std::string(name);
}

// What the program was doing, to be added to what happened.
const char* doing(const std::optional<Stage>& stage) {
  if (stage == Stage::compile) return " while compiling";
  if (stage == Stage::run) return " while running";
  if (stage == Stage::backward) return " in backward";
  if (stage == Stage::eager) return " in eager mode";
  return "";
}

Verdict verdict_of(const Outcome& outcome) {
  const Report& report = outcome.report;
  if (!outcome.server_error.empty()) return Verdict::killed;
  if (outcome.limit != Outcome::Limit::none) return Verdict::timeout;
  if (outcome.signal) {
    const bool is_outside = *outcome.signal == SIGKILL || *outcome.signal == SIGTERM ||
                            *outcome.signal == SIGINT || *outcome.signal == SIGHUP;
    return is_outside ? Verdict::killed : Verdict::signal;
  }
  if (report.status == "passed") return Verdict::passed;
  if (report.status == "invalid") return Verdict::invalid;
  if (report.status == "internal") return Verdict::internal;
  if (report.status != "failed") {
    // It left without a word: exit() somewhere inside.
    return Verdict::exception;
  }
  if (is_about_memory(report)) return Verdict::memory;
  return report.accuracy_kind.empty() ? Verdict::exception : Verdict::accuracy;
}

std::string describe_difference(const std::string& type) {
  if (type == "nan") return "NaNs are not where eager has them";
  if (type == "exception") return "does not raise what eager raises";
  if (type == "second_call") return "differs from eager on the second call";
  return "differs from eager (" + type + ")";
}

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return "passed";
    case Verdict::invalid:
      return "invalid";
    case Verdict::exception:
      return "exception";
    case Verdict::signal:
      return "signal";
    case Verdict::timeout:
      return "timeout";
    case Verdict::memory:
      return "memory";
    case Verdict::accuracy:
      return "accuracy";
    case Verdict::killed:
      return "killed";
    case Verdict::internal:
      return "internal";
  }
  return "";
}

std::optional<Verdict> verdict_named(std::string_view name) {
  for (const Verdict verdict :
       {Verdict::passed, Verdict::invalid, Verdict::exception, Verdict::signal, Verdict::timeout,
        Verdict::memory, Verdict::accuracy, Verdict::killed, Verdict::internal}) {
    if (name == to_string(verdict)) return verdict;
  }
  return std::nullopt;
}

std::string normalise_message(std::string_view message) {
  return Normaliser(first_compiler_error(message)).run();
}

Signature classify(const Outcome& outcome) {
  const Report& report = outcome.report;
  Signature signature;
  signature.verdict = verdict_of(outcome);
  signature.stage = report.stage;
  // A crash or a hang before the backend's turn is the program's own.
  const bool is_before_backend = !report.stage || *report.stage <= Stage::eager;
  if (signature.is_failure() && is_before_backend) signature.verdict = Verdict::invalid;
  if (!report.op.empty()) signature.op = graph::Target(report.op).base_name();
  switch (signature.verdict) {
    case Verdict::exception:
      signature.type = report.type;
      signature.message = normalise_message(report.message);
      if (report.status.empty()) {
        signature.type = "exit code " + std::to_string(outcome.exit_code.value_or(-1));
      }
      break;
    case Verdict::signal:
      signature.type = signal_name(*outcome.signal);
      break;
    case Verdict::accuracy:
      signature.type = report.accuracy_kind;
      // Which exception it is that eager raises tells one such failure from another.
      if (signature.type == "exception") signature.message = normalise_message(report.message);
      signature.magnitude = report.error;
      signature.where = report.accuracy_where;
      break;
    case Verdict::invalid:
    case Verdict::internal:
      signature.type = report.type;
      signature.message = report.message;
      break;
    case Verdict::killed:
      signature.type = outcome.signal ? signal_name(*outcome.signal) : "";
      signature.message = outcome.server_error;
      break;
    case Verdict::passed:
    case Verdict::timeout:
    case Verdict::memory:
      break;
  }
  return signature;
}

void throw_if_internal(const Signature& signature) {
  if (signature.verdict == Verdict::internal) throw InternalError::from_text(signature.message);
}

bool is_same(const Signature& left, const Signature& right) {
  return left.verdict == right.verdict && left.stage == right.stage && left.type == right.type &&
         left.op == right.op && left.message == right.message;
}

std::string describe(const Signature& signature) {
  std::string text;
  switch (signature.verdict) {
    case Verdict::passed:
      return "passes";
    case Verdict::killed:
      return "was killed externally" + (signature.type.empty() ? "" : " (" + signature.type + ")");
    case Verdict::timeout:
      text = "hangs";
      break;
    case Verdict::memory:
      text = "runs out of memory";
      break;
    case Verdict::accuracy:
      text = describe_difference(signature.type);
      if (!signature.where.empty()) text += " at " + signature.where;
      break;
    case Verdict::signal:
      text = signature.type;
      break;
    case Verdict::exception:
    case Verdict::invalid:
    case Verdict::internal:
      text = signature.type;
      break;
  }
  if (!signature.op.empty()) text += " in " + signature.op;
  text += doing(signature.stage);
  if (!signature.message.empty()) text += ": " + signature.message;
  return text;
}

}  // namespace assay::sandbox
