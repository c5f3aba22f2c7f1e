#include "reduce/verdict_log.h"

#include <nlohmann/json.hpp>

#include "c10/util/hash.h"

namespace assay::reduce {

namespace {

using nlohmann::json;
using sandbox::Signature;
using sandbox::Verdict;

json to_json(const std::string& key, const Judgement& judgement) {
  const Signature& signature = judgement.signature;
  return {{"key", key},
          {"verdict", static_cast<int>(signature.verdict)},
          {"stage", signature.stage},
          {"type", signature.type},
          {"operator", signature.op},
          {"message", signature.message},
          {"magnitude", signature.magnitude},
          {"suspects", judgement.suspects}};
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
  for (std::string line; std::getline(old, line);) {
    const json object = json::parse(line, nullptr, false);
    if (object.is_object()) known_[object.at("key").get<std::string>()] = from_json(object);
  }
  stream_.open(file_, std::ios::app);
  // The last line may have been cut short; the next one must not continue it.
  if (!known_.empty()) stream_ << '\n';
}

std::optional<Judgement> VerdictLog::find(const std::string& key) const {
  const auto found = known_.find(key);
  if (found == known_.end()) return std::nullopt;
  return found->second;
}

void VerdictLog::add(const std::string& key, const Judgement& judgement) {
  known_[key] = judgement;
  using Handler = json::error_handler_t;
  stream_ << to_json(key, judgement).dump(-1, ' ', false, Handler::replace) << std::endl;
}

void VerdictLog::forget_passed() {
  std::erase_if(
      known_, [](const auto& entry) { return entry.second.signature.verdict == Verdict::passed; });
  stream_.close();
  stream_.open(file_, std::ios::trunc);
  for (const auto& [key, judgement] : known_) stream_ << to_json(key, judgement).dump() << '\n';
  stream_.flush();
}

std::string verdict_key(const std::string& text) { return c10::sha1(text).str(); }

}  // namespace assay::reduce
