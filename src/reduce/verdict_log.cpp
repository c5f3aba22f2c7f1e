#include "reduce/verdict_log.h"

#include <nlohmann/json.hpp>

#include "c10/util/hash.h"
#include "repro/save.h"

namespace assay::reduce {

namespace {

using nlohmann::json;
using sandbox::Signature;
using sandbox::Verdict;

std::string to_line(const std::string& key, const Judgement& judgement) {
  const Signature& signature = judgement.signature;
  const json object = {{"key", key},
                       {"verdict", static_cast<int>(signature.verdict)},
                       {"stage", signature.stage},
                       {"type", signature.type},
                       {"operator", signature.op},
                       {"message", signature.message},
                       {"magnitude", signature.magnitude},
                       {"suspects", judgement.suspects}};
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Judgement from_json(const json& object) {
  Judgement judgement;
  Signature& signature = judgement.signature;
  signature.verdict = static_cast<Verdict>(object.at("verdict").get<int>());
  signature.stage = object.at("stage").get<std::string>();
  signature.type = object.at("type").get<std::string>();
  signature.op = object.at("operator").get<std::string>();
  signature.message = object.at("message").get<std::string>();
  if (object.at("magnitude").is_number())
    signature.magnitude = object.at("magnitude").get<double>();
  judgement.suspects = object.at("suspects").get<std::vector<std::string>>();
  return judgement;
}

}  // namespace

VerdictLog::VerdictLog(std::filesystem::path file) : file_(std::move(file)) {
  std::ifstream old(file_);
  bool is_cut_short = false;
  for (std::string line; std::getline(old, line); is_cut_short = old.eof()) {
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) continue;
    try {
      known_[object.at("key").get<std::string>()] = from_json(object);
    } catch (const json::exception&) {
      continue;  // the question is asked again
    }
  }
  stream_.open(file_, std::ios::app);
  if (is_cut_short) stream_ << '\n';  // the next line must not continue that one
}

std::optional<Judgement> VerdictLog::find(const std::string& key) const {
  const auto found = known_.find(key);
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

void VerdictLog::add(const std::string& key, const Judgement& judgement) {
  known_[key] = judgement;
  stream_ << to_line(key, judgement) << std::flush;
}

void VerdictLog::forget_passed() {
  std::erase_if(
      known_, [](const auto& entry) { return entry.second.signature.verdict == Verdict::passed; });
  write_again();
}

void VerdictLog::forget_all() {
  known_.clear();
  write_again();
}

void VerdictLog::write_again() {
  std::string text;
  for (const auto& [key, judgement] : known_) text += to_line(key, judgement);
  stream_.close();
  repro::write_file(file_, text);
  stream_.open(file_, std::ios::app);
}

std::string verdict_key(const std::string& text) { return c10::sha1(text).str(); }

}  // namespace assay::reduce
