#include "cli/choose_backend.h"

#include <algorithm>

#include "assay/backend.h"
#include "assay/error.h"

namespace assay::cli {

void check_python_backend(const std::string& backend, const std::filesystem::path& file) {
  if (!file.empty() && !backend.empty()) {
    throw UserError("--backend and --backend-file both name a backend", "leave out one of them");
  }
  if (!file.empty() && !std::filesystem::exists(file)) {
    throw UserError(file.string() + ": no such file");
  }
  if (file.empty() && backend.find(':') == std::string::npos) {
    throw UserError("--stack python needs to know where the backend is",
                    "use --backend module:function or --backend-file FILE");
  }
}

std::string choose_backend(const std::string& wanted, const repro::ReproFile& file,
                           const std::string& stack) {
  if (stack == "python") return wanted;
  const bool is_stock = stack == "torch";
  std::string backend = wanted.empty() ? file.backend : wanted;
  if (backend.empty()) backend = is_stock ? "inductor" : kDefaultBackend;
  if (is_stock) return backend;
  // Ours of that name is another compiler: what fails in stock's would be said to pass.
  const bool is_ours =
      backend != "inductor" && std::ranges::any_of(all_backends(), [&](const auto& known) {
        return known->name == backend;
      });
  if (!is_ours && wanted.empty()) {
    throw UserError("the file names stock PyTorch's backend '" + backend + "'",
                    "add --stack torch to test that, or --backend native to test Assay's");
  }
  return find_backend(backend)->name;
}

}  // namespace assay::cli
