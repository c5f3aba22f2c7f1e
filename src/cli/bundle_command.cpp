// `assay bundle FILE`: the file with the data of its inputs in it, to be sent as one attachment.
#include <fstream>

#include "assay/error.h"
#include "cli/commands.h"
#include "repro/bundle.h"

namespace assay::cli {

int bundle(const BundleCommand& command) {
  const std::string text = repro::bundle(command.file);
  if (command.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  std::ofstream stream(command.output, std::ios::binary);
  stream << text;
  if (!stream.flush()) throw UserError(command.output.string() + ": cannot be written");
  return 0;
}

}  // namespace assay::cli
