#include "repro/bundle.h"

#include <array>
#include <cstdint>

#include "assay/error.h"
#include "graph/python_strings.h"
#include "repro/content_store.h"
#include "repro/inputs.h"
#include "repro/write.h"

namespace assay::repro {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kMostBytes = std::size_t{40} << 20U;  // a file of 64 MB can be read

constexpr std::string_view kUnpack = R"(
def unpack(storages):
    """Writes the storages where run_repro looks for them."""
    import atexit, base64, os, shutil, tempfile
    directory = tempfile.mkdtemp(prefix='repro_')
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.makedirs(os.path.join(directory, 'storages'))
    for name, text in storages.items():
        data = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
        torch.save(data.untyped_storage(), os.path.join(directory, 'storages', name))
    return directory

)";

int digit_of(char letter) {
  static const auto table = [] {
    std::array<signed char, 256> digits = {};
    digits.fill(-1);
    for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
      digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<signed char>(i);
    }
    return digits;
  }();
  return table[static_cast<unsigned char>(letter)];
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group <<= 8U;
      if (i + k < bytes.size()) group |= static_cast<unsigned char>(bytes[i + k]);
    }
    for (unsigned k = 0; k < 4; ++k) {
      const bool is_padding = i + k > bytes.size();
      text += is_padding ? '=' : kAlphabet[(group >> (18U - 6U * k)) & 63U];
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  unsigned bits = 0;
  std::size_t letters = 0;
  bool has_ended = false;
  for (char letter : text) {
    if (letter == ' ' || letter == '\n' || letter == '\r' || letter == '\t') continue;
    ++letters;
    has_ended |= letter == '=';
    if (letter == '=') continue;
    const int digit = digit_of(letter);
    if (digit < 0 || has_ended) return std::nullopt;
    group = (group << 6U) | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes += static_cast<char>((group >> bits) & 0xFFU);
    }
  }
  if (letters % 4 != 0) return std::nullopt;
  return bytes;
}

std::string print_inlined_storages(
    const std::map<std::string, std::string, std::less<>>& storages) {
  std::string text = std::string(kInlinedStorages) + " = {\n";
  for (const auto& [hash, bytes] : storages) {
    text += "    " + graph::python::quote(hash) + ": '" + to_base64(bytes) + "',\n";
  }
  return text + "}\n" + std::string(kUnpack);
}

void inline_storages(ReproFile& file) {
  const auto directory = storage_directory(file);
  std::size_t total = 0;
  for (const StorageSpec& spec : file.storages) {
    const std::int64_t bytes = spec.bytes.evaluate(file.symbols);
    // Contents that are synthesized when the file is loaded need no data.
    if (bytes <= 0 || spec.hash.empty() || file.inlined_storages.contains(spec.hash)) continue;
    if (!directory || !ContentStore(*directory).contains(spec.hash)) {
      throw UserError(file.source->file + ": the data of an input of " + std::to_string(bytes) +
                          " bytes is missing",
                      "a bundle needs the data of all inputs");
    }
    const c10::Storage storage =
        ContentStore(*directory).read(spec.hash, static_cast<std::size_t>(bytes));
    total += storage.nbytes();
    if (total > kMostBytes) {
      throw UserError(file.source->file + ": the inputs are larger than " +
                          std::to_string(kMostBytes >> 20U) + " MB, too large for one file",
                      "reduce it first, or send its storages in a separate archive");
    }
    file.inlined_storages.emplace(
        spec.hash, std::string(static_cast<const char*>(storage.data()), storage.nbytes()));
  }
  file.save_directory.reset();
}

std::string bundle(const std::filesystem::path& path) {
  ReproFile file = read_repro_file(path);
  inline_storages(file);
  return print_repro_file(file);
}

}  // namespace assay::repro
