#include "cli/signature_json.h"

#include <nlohmann/json.hpp>

namespace assay::cli {

nlohmann::json to_json(const sandbox::Signature& signature) {
  return {{"kind", sandbox::to_string(signature.verdict)},
          {"stage", signature.stage ? std::string(assay::to_string(*signature.stage)) : ""},
          {"type", signature.type},
          {"operator", signature.op},
          {"message", signature.message},
          {"magnitude", signature.magnitude},
          {"text", sandbox::describe(signature)}};
}

}  // namespace assay::cli
