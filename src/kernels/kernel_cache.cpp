#include "kernels/kernel_cache.h"

#include <c10/util/hash.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <thread>

#include "assay/error.h"
#include "base/environment.h"
#include "config/config.h"
#include "kernels/emit.h"
#include "kernels/emit/imports.h"
#include "kernels/toolchain.h"
#include "observe/stream.h"

namespace assay::kernels {

namespace {

namespace fs = std::filesystem;

// What stands behind the shared object in an entry; the loader of libraries does not look there.
struct Trailer {
  std::array<char, 8> magic = {'a', 's', 's', 'a', 'y', '-', 'k', '1'};
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;
};

// Quick, and different for any short error in the file.
std::uint64_t checksum_of(const char* data, std::size_t size) {
  std::uint64_t sum = size;
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + at, std::min(sizeof word, size - at));
    sum = (sum ^ word) * 0x9e3779b97f4a7c15ULL;
    sum ^= sum >> 29;
  }
  return sum;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool is_intact(const std::string& path) {
  const std::string content = read_file(path);
  Trailer found;
  if (content.size() < sizeof found) return false;
  const std::size_t size = content.size() - sizeof found;
  std::memcpy(&found, content.data() + size, sizeof found);
  return found.magic == Trailer{}.magic && found.size == size &&
         found.checksum == checksum_of(content.data(), size);
}

void append_trailer(const std::string& path) {
  const std::string content = read_file(path);
  Trailer trailer;
  trailer.size = content.size();
  trailer.checksum = checksum_of(content.data(), content.size());
  std::ofstream file(path, std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(&trailer), sizeof trailer);
}

// The directory, or one of this process's own if nothing can be written there.
std::string writable_directory() {
  const std::string directory = cache_directory();
  std::error_code error;
  fs::create_directories(directory, error);
  if (access(directory.c_str(), W_OK) == 0) return directory;
  static const std::string own = [&directory] {
    observe::log(observe::Component::inductor, observe::Level::warning,
                 "Compiled kernels are not kept: " + directory + " cannot be written.");
    std::string folder = (fs::temp_directory_path() / "assay-kernels-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw InternalError("no directory can be made");
    return folder;
  }();
  return own;
}

struct CacheEntry {
  fs::path path;
  std::int64_t bytes = 0;
  fs::file_time_type used;
};

std::vector<CacheEntry> list_entries(const std::string& directory) {
  std::vector<CacheEntry> entries;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(directory, error)) {
    if (file.path().extension() != ".so") continue;
    CacheEntry entry{file.path(), static_cast<std::int64_t>(file.file_size(error)),
                     file.last_write_time(error)};
    if (!error) entries.push_back(std::move(entry));
  }
  return entries;
}

std::int64_t limit_bytes() { return config::get<"kernel_cache_megabytes">() * (1 << 20); }

// Removes what was used longest ago, and what compilers that were killed have left.
void trim(const std::string& directory) {
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& file : fs::directory_iterator(directory, error)) {
    const bool is_temporary = file.path().filename().string().starts_with("tmp-");
    std::error_code gone;
    if (is_temporary && now - file.last_write_time(gone) > std::chrono::hours(1)) {
      fs::remove(file.path(), gone);
    }
  }
  std::vector<CacheEntry> entries = list_entries(directory);
  std::int64_t bytes = 0;
  for (const CacheEntry& entry : entries) bytes += entry.bytes;
  if (bytes <= limit_bytes()) return;
  std::ranges::sort(entries, {}, &CacheEntry::used);
  // Down to nine tenths, so that the next entry does not start this again.
  for (const CacheEntry& entry : entries) {
    if (bytes <= limit_bytes() / 10 * 9) break;
    fs::remove(entry.path, error);
    bytes -= entry.bytes;
  }
}

// Looks at the size now and then: at the first entry of the process, and after every 16th of the
// limit.
void note_growth(const std::string& directory, std::int64_t bytes) {
  static std::atomic<std::int64_t> unseen = -1;
  const std::int64_t before = unseen.exchange(unseen < 0 ? 0 : unseen + bytes);
  if (before >= 0 && before + bytes < limit_bytes() / 16) return;
  unseen = 0;
  trim(directory);
}

std::string entry_key(const std::string& unit, const Toolchain& toolchain, const Target& target) {
  std::string text = toolchain.identity + '\0' + target.cpu + '\0';
  for (const std::string& flag : toolchain.flags) text += flag + '\0';
  return c10::sha1(text + unit).str();
}

// Compiles into a file that only this call knows, and makes it the entry in one step.
void build_entry(const std::string& unit, const Toolchain& toolchain, const std::string& directory,
                 const std::string& entry) {
  static std::atomic<int> count = 0;
  const std::string base =
      directory + "/tmp-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  const std::string source = base + ".cpp";
  const std::string library = base + ".lib";
  {
    std::ofstream file(source, std::ios::binary);
    file << unit;
    if (!file.flush()) throw InternalError("cannot write " + source);
  }
  compile_library(toolchain, source, library);  // keeps the source if it fails
  append_trailer(library);
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(library, error));
  fs::rename(library, entry, error);
  if (error) throw InternalError("cannot write " + entry + ": " + error.message());
  fs::remove(source, error);
  note_growth(directory, bytes);
}

// An entry that is used moves to the end of the queue for removal.
void touch(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0 || time(nullptr) - file.st_mtime < 3600) return;
  std::error_code error;
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
}

void fill_in_imports(void* handle) {
  const auto* names = static_cast<const char*>(dlsym(handle, "assay_import_names"));
  auto* addresses = static_cast<void**>(dlsym(handle, "assay_imports"));
  if (names == nullptr || addresses == nullptr) return;
  for (; *names != '\0'; names += std::strlen(names) + 1) {
    *addresses = find_import(names);
    if (*addresses == nullptr) {
      throw InternalError(std::string("kernels have no function ") + names);
    }
    ++addresses;
  }
}

void* open_library(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

// Loads a unit, and says whether it had to be compiled.
std::pair<void*, bool> load_unit(const std::string& unit, const Toolchain& toolchain,
                                 const Target& target) {
  const std::string directory = writable_directory();
  const std::string entry = directory + "/" + entry_key(unit, toolchain, target) + ".so";
  bool is_compiled = false;
  if (is_intact(entry)) {
    touch(entry);
    if (void* handle = open_library(entry)) return {handle, false};
  }
  // A second attempt, in case another process has just removed the entry.
  for (int attempt = 0; attempt < 2; ++attempt) {
    build_entry(unit, toolchain, directory, entry);
    is_compiled = true;
    if (void* handle = open_library(entry)) return {handle, is_compiled};
  }
  const char* reason = dlerror();
  throw InternalError("a compiled kernel cannot be loaded: " +
                      std::string(reason == nullptr ? entry : reason));
}

// About what one core compiles in 0.2 s; less is not worth another process.
constexpr std::size_t kUnitBytes = 24'000;

}  // namespace

LoadedLibrary::~LoadedLibrary() {
  for (void* handle : handles_) dlclose(handle);
}

void* LoadedLibrary::symbol(const std::string& name) const {
  for (void* handle : handles_) {
    if (void* address = dlsym(handle, name.c_str())) return address;
  }
  throw InternalError("compiled kernels have no function " + name);
}

std::shared_ptr<const LoadedLibrary> compile_and_load(const std::string& code,
                                                      const Target& target) {
  const Toolchain* compiler = toolchain();
  if (compiler == nullptr) throw InternalError("there is no C++ compiler");
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::vector<std::string> units =
      split_units(code, std::min(cores, 1 + code.size() / kUnitBytes));
  auto library = std::make_shared<LoadedLibrary>();
  library->handles_.reserve(units.size());
  std::vector<std::pair<void*, bool>> loaded(units.size());
  std::vector<std::exception_ptr> failures(units.size());
  auto load = [&](std::size_t k) {
    try {
      loaded[k] = load_unit(units[k], *compiler, target);
    } catch (...) {
      failures[k] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t k = 1; k < units.size(); ++k) threads.emplace_back(load, k);
    load(0);
  }
  for (const auto& [handle, is_compiled] : loaded) {
    if (handle == nullptr) continue;
    library->handles_.push_back(handle);
    library->compiled_units_ += is_compiled ? 1 : 0;
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  for (void* handle : library->handles_) fill_in_imports(handle);
  return library;
}

std::string cache_directory() {
  std::string root = config::get<"cache_dir">();
  if (root.empty()) {
    if (const auto cache = base::environment_variable("XDG_CACHE_HOME"); cache && !cache->empty()) {
      root = *cache + "/assay";
    } else if (const auto home = base::environment_variable("HOME"); home && !home->empty()) {
      root = *home + "/.cache/assay";
    } else {
      root = (fs::temp_directory_path() / ("assay-" + std::to_string(getuid()))).string();
    }
  }
  return root + "/kernels";
}

std::string cache_note(const std::string& fact) {
  return writable_directory() + "/" + c10::sha1(fact).str() + ".note";
}

CacheStatistics cache_statistics() {
  CacheStatistics statistics;
  statistics.limit_bytes = limit_bytes();
  for (const CacheEntry& entry : list_entries(cache_directory())) {
    ++statistics.entries;
    statistics.bytes += entry.bytes;
  }
  return statistics;
}

std::int64_t clear_cache() {
  std::int64_t removed = 0;
  std::error_code error;
  for (const CacheEntry& entry : list_entries(cache_directory())) {
    if (fs::remove(entry.path, error)) ++removed;
  }
  return removed;
}

}  // namespace assay::kernels
