#include "backends/plugins.h"

#include <dlfcn.h>

#include "assay/error.h"

namespace assay::backends {

void load_plugins(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    // A name without a slash would be looked for among the system's libraries.
    const std::string path = file.find('/') == std::string::npos ? "./" + file : file;
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) continue;  // stays for good
    const char* reason = dlerror();
    throw UserError("the plug-in '" + file + "' cannot be loaded: " +
                        (reason == nullptr ? "the loader reports no reason" : reason),
                    "a plug-in is a shared library that calls assay::register_backend when it is "
                    "loaded, built against this libassay and libtorch");
  }
}

std::vector<std::string> split_plugins(const std::string& list) {
  std::vector<std::string> files;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) files.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return files;
}

}  // namespace assay::backends
