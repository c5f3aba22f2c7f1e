/// \file What every candidate was judged to be, kept in a file, so that no question is asked twice
/// and a reduction that was stopped goes on where it was: it is deterministic, so it finds the way
/// back by itself.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/signature.h"

namespace assay::reduce {

struct Judgement {
  sandbox::Signature signature = {};
  std::vector<std::string> suspects = {};
  std::vector<sandbox::Difference> differences = {};  ///< Of a trial that reports them all.
};

class VerdictLog {
 public:
  /// Reads the file if it is there; new verdicts are added to it. A line that was cut short is
  /// passed over. Throws `UserError` for a verdict or a stage that there is not.
  explicit VerdictLog(std::filesystem::path file);

  std::optional<Judgement> find(const std::string& key) const;
  void add(const std::string& key, const Judgement& judgement);
  /// A fault that does not always show: candidates that passed are asked again.
  void forget_passed();
  /// Nothing that was found out holds any more.
  void forget_all();
  std::size_t size() const { return known_.size(); }

 private:
  void write_again();

  std::filesystem::path file_;
  std::map<std::string, Judgement> known_;
  std::ofstream stream_;
};

/// The key of a text: its SHA-1.
std::string verdict_key(const std::string& text);

}  // namespace assay::reduce
