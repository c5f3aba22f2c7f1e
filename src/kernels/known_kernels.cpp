#include "kernels/known_kernels.h"

#include <c10/util/hash.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "assay/error.h"
#include "config/config.h"
#include "kernels/emit/size_parameters.h"
#include "kernels/toolchain.h"
#include "observe/observe.h"

namespace assay::kernels {

namespace {

// Texts with the same outline.
struct Family {
  struct Fixed {
    std::vector<std::string> numbers;
    void* function;
    std::weak_ptr<const LoadedLibrary> library;
  };
  struct General {
    GeneralKernel kernel;
    void* function;
    std::weak_ptr<const LoadedLibrary> library;
  };
  std::vector<Fixed> fixed;
  std::vector<General> general;
  bool is_fixed_only = false;  // the compiler does not accept the general text

  bool is_dead() const {
    const auto is_unloaded = [](const auto& one) { return one.library.expired(); };
    return std::ranges::all_of(fixed, is_unloaded) && std::ranges::all_of(general, is_unloaded);
  }
};

// Beyond this, sizes differ in other numbers each time.
constexpr std::size_t kGenerals = 4;

class KernelTable {
 public:
  std::mutex mutex;

  Family& family(const std::string& key) {
    if (families_.size() >= limit_) {
      std::erase_if(families_, [](const auto& entry) { return entry.second.is_dead(); });
      limit_ = 2 * families_.size() + kFirstLimit;
    }
    return families_[key];
  }

 private:
  static constexpr std::size_t kFirstLimit = 1024;

  std::unordered_map<std::string, Family> families_;
  std::size_t limit_ = kFirstLimit;  // of families, after which those of dead libraries are dropped
};

KernelTable& table() {
  static auto* const known = new KernelTable;
  return *known;
}

// One function of the program on its way.
struct Wanted {
  std::string key;
  KernelOutline outline;
  std::optional<GeneralKernel> general = std::nullopt;  // to be compiled instead of the text itself
  KnownKernel kernel = {};
};

// From the parameters on. Neither the comment before a function, which has sizes in it, nor its
// name matters to the machine code; the functions that it uses are the same wherever they have the
// same name.
std::size_t start_of_body(const EmittedFunction& function) {
  const std::size_t start = function.text.find(" " + function.symbol + "(void* const* buffers");
  internal_check(start != std::string::npos, "a kernel's text has its function");
  return start + 1 + function.symbol.size();
}

std::string key_of(const std::string& outline, const Target& target) {
  std::string all = target.cpu + '\0' + std::to_string(target.vector_bytes) + '\0';
  if (const Toolchain* compiler = toolchain()) {
    all += compiler->identity + '\0';
    for (const std::string& flag : compiler->flags) all += flag + '\0';
  }
  return c10::sha1(all + outline).str();
}

KnownKernel find(const Family& family, const KernelOutline& outline, bool may_be_general) {
  for (const Family::Fixed& one : family.fixed) {
    if (one.numbers != outline.numbers) continue;
    if (auto library = one.library.lock()) return {one.function, {}, std::move(library)};
  }
  if (!may_be_general) return {};
  for (const Family::General& one : family.general) {
    auto values = one.kernel.values(outline);
    auto library = one.library.lock();
    if (values && library) return {one.function, std::move(*values), std::move(library)};
  }
  return {};
}

// The general text to compile for this one, if there should be one.
std::optional<GeneralKernel> general_for(const Family& family, const KernelOutline& outline,
                                         std::size_t buffers, std::string_view setting) {
  if (setting == "fixed" || family.is_fixed_only || outline.numbers.empty()) return std::nullopt;
  KernelOutline other = outline;
  if (setting == "passed") {
    for (std::string& number : other.numbers) number.insert(0, 1, '1');  // all are others
  } else {
    if (family.fixed.empty() || family.general.size() >= kGenerals) return std::nullopt;
    other.numbers = family.fixed.front().numbers;
    if (other.numbers == outline.numbers) return std::nullopt;  // it was unloaded
  }
  return GeneralKernel(outline, other, buffers);
}

std::vector<Wanted> find_all(const EmittedProgram& program, const Target& target) {
  const std::string setting{config::get<"kernel_sizes">()};
  std::vector<Wanted> wanted;
  const std::lock_guard lock(table().mutex);
  for (const EmittedFunction& function : program.functions) {
    Wanted one;
    one.outline = outline_of(std::string_view(function.text).substr(start_of_body(function)));
    one.key = key_of(one.outline.outline, target);
    const Family& family = table().family(one.key);
    one.kernel = find(family, one.outline, setting != "fixed");
    if (one.kernel.function == nullptr) {
      one.general = general_for(family, one.outline, function.buffers, setting);
    }
    wanted.push_back(std::move(one));
  }
  return wanted;
}

void compile_missing(const EmittedProgram& program, const Target& target,
                     std::vector<Wanted>& wanted) {
  std::vector<EmittedFunction> missing;
  bool is_whole_program = true;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const bool is_known = wanted[k].kernel.function != nullptr;
    is_whole_program = is_whole_program && !is_known && !wanted[k].general;
    if (is_known) continue;
    EmittedFunction& function = missing.emplace_back(program.functions[k]);
    if (wanted[k].general) {
      function.text.resize(start_of_body(function));
      function.text += wanted[k].general->text();
    }
  }
  if (missing.empty()) return;
  const auto library =
      compile_and_load(is_whole_program ? program.code : code_of(program.shared, missing), target);
  const std::lock_guard lock(table().mutex);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    Wanted& one = wanted[k];
    if (one.kernel.function != nullptr) continue;
    one.kernel = {library->symbol(program.functions[k].symbol), {}, library};
    Family& family = table().family(one.key);
    if (one.general) {
      one.kernel.sizes = one.general->values(one.outline).value();
      family.general.push_back({*std::move(one.general), one.kernel.function, library});
    } else {
      family.fixed.push_back({one.outline.numbers, one.kernel.function, library});
    }
  }
}

// The families of general texts get none any more. False if there was none.
bool give_up_general_texts(std::vector<Wanted>& wanted) {
  bool has_general = false;
  const std::lock_guard lock(table().mutex);
  for (Wanted& one : wanted) {
    if (!one.general) continue;
    has_general = true;
    one.general.reset();
    table().family(one.key).is_fixed_only = true;
  }
  return has_general;
}

}  // namespace

std::vector<KnownKernel> load_kernels(const EmittedProgram& program, const Target& target) {
  std::vector<Wanted> wanted = find_all(program, target);
  try {
    compile_missing(program, target, wanted);
  } catch (const KernelCompileError& error) {
    // A number that must be a constant: the text itself can be compiled.
    if (!give_up_general_texts(wanted)) throw;
    observe::log(observe::Component::inductor, observe::Level::warning, [&] {
      return std::string("a kernel is compiled for each size: ") + error.what();
    });
    compile_missing(program, target, wanted);
  }
  std::vector<KnownKernel> kernels;
  for (Wanted& one : wanted) kernels.push_back(std::move(one.kernel));
  return kernels;
}

}  // namespace assay::kernels
