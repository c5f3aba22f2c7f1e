// `assay diagnose SCRIPT`: the driver is Python (python/assay/diagnose); this process becomes it.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "assay/error.h"
#include "cli/commands.h"
#include "cli/stock_server.h"

namespace assay::cli {

namespace {

// Finds the driver without importing the package, which would load PyTorch.
constexpr const char* kStartDriver =
    "import importlib.util, os, sys\n"
    "package = importlib.util.find_spec('assay')\n"
    "if package is None:\n"
    "    print('error:', sys.executable, 'has no package assay; set ASSAY_PYTHON to one that "
    "has',\n"
    "          file=sys.stderr)\n"
    "    sys.exit(2)\n"
    "folder = package.submodule_search_locations[0]\n"
    "driver = os.path.join(folder, 'diagnose', '__main__.py')\n"
    "os.execv(sys.executable, [sys.executable, driver, *sys.argv[1:]])\n";

}  // namespace

int diagnose(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {find_python(), "-c", kStartDriver};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // The driver starts `assay reduce`: this command, wherever it was found.
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) (void)setenv("ASSAY_BINARY", self.c_str(), 0);
  execvp(pointers.front(), pointers.data());
  throw UserError("cannot start " + command.front() + ": " + std::strerror(errno),
                  "set ASSAY_PYTHON to a Python that has the package assay");
}

}  // namespace assay::cli
