/// \file A failure's signature, for scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sandbox/signature.h"

namespace assay::cli {

nlohmann::json to_json(const sandbox::Signature& signature);

}  // namespace assay::cli
