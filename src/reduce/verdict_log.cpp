#include "reduce/verdict_log.h"

#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "c10/util/hash.h"
#include "repro/save.h"

namespace assay::reduce {

namespace {

using nlohmann::json;
using sandbox::Signature;
using sandbox::Verdict;

std::string to_line(const std::string& key, const Judgement& judgement) {
  const Signature& signature = judgement.signature;
  json object = {{"key", key},
                 {"verdict", sandbox::to_string(signature.verdict)},
                 {"stage", signature.stage ? assay::to_string(*signature.stage) : ""},
                 {"type", signature.type},
                 {"operator", signature.op},
                 {"message", signature.message},
                 {"magnitude", signature.magnitude},
                 {"suspects", judgement.suspects}};
  for (const sandbox::Difference& difference : judgement.differences) {
    object["differences"].push_back({difference.where, difference.kind});
  }
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// A name that a part of a log has, as the value it stands for. A log with a name that we do not
// know is another version's: to guess would be to take one failure for another.
template <typename Find>
auto value_named(const json& object, const char* key, Find find, const TextLocation& where) {
  const std::string name = object.at(key).get<std::string>();
  const auto value = find(name);
  if (!value) {
    throw UserError({"unknown " + std::string(key) + " '" + name + "'",
                     where,
                     {},
                     1,
                     "the log was written by another version of Assay; --restart starts over"});
  }
  return *value;
}

Judgement from_json(const json& object, const TextLocation& where) {
  Judgement judgement;
  Signature& signature = judgement.signature;
  signature.verdict = value_named(object, "verdict", sandbox::verdict_named, where);
  if (object.at("stage") != "") signature.stage = value_named(object, "stage", stage_named, where);
  signature.type = object.at("type").get<std::string>();
  signature.op = object.at("operator").get<std::string>();
  signature.message = object.at("message").get<std::string>();
  if (object.at("magnitude").is_number())
    signature.magnitude = object.at("magnitude").get<double>();
  judgement.suspects = object.at("suspects").get<std::vector<std::string>>();
  if (const auto differences = object.find("differences"); differences != object.end()) {
    for (const json& difference : *differences) {
      judgement.differences.push_back(
          {difference.at(0).get<std::string>(), difference.at(1).get<std::string>()});
    }
  }
  return judgement;
}

}  // namespace

VerdictLog::VerdictLog(std::filesystem::path file) : file_(std::move(file)) {
  std::ifstream old(file_);
  bool is_cut_short = false;
  TextLocation where = {file_.string(), 0, 1};
  for (std::string line; std::getline(old, line); is_cut_short = old.eof()) {
    ++where.line;
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) continue;
    try {
      known_[object.at("key").get<std::string>()] = from_json(object, where);
    } catch (const json::exception&) {
      continue;  // a part is missing or of another type: the question is asked again
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
