#include "repro/content_store.h"

#include <ATen/core/Tensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/hash.h>
#include <caffe2/serialize/inline_container.h>

#include <cstdio>
#include <system_error>

#include "assay/error.h"

namespace assay::repro {

namespace {

c10::Storage empty_storage(std::size_t bytes) {
  return c10::Storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(bytes),
                      c10::GetCPUAllocator(), true);
}

std::string sha1(const void* data, std::size_t bytes) {
  // c10::sha1 does not start on an empty text.
  if (bytes == 0) return "da39a3ee5e6b4b0d3255bfef95601890afd80709";
  return c10::sha1(std::string(static_cast<const char*>(data), bytes)).str();
}

// The pickle torch.save writes for an UntypedStorage: the persistent id
// ('storage', torch.storage.UntypedStorage, '0', 'cpu', bytes), in protocol 2.
std::string storage_pickle(std::size_t bytes) {
  const auto unicode = [](const std::string& text) {
    std::string out = "X";
    for (int i = 0; i < 4; ++i) {
      out.push_back(static_cast<char>((text.size() >> (8U * static_cast<unsigned>(i))) & 0xFFU));
    }
    return out + text;
  };
  std::string pickle = "\x80\x02(" + unicode("storage") + "ctorch.storage\nUntypedStorage\n" +
                       unicode("0") + unicode("cpu");
  pickle += "\x8a\x08";  // LONG1, eight bytes
  for (unsigned i = 0; i < 8; ++i) {
    pickle.push_back(static_cast<char>((static_cast<std::uint64_t>(bytes) >> (8U * i)) & 0xFFU));
  }
  return pickle + "tQ.";
}

}  // namespace

ContentStore::ContentStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

std::filesystem::path ContentStore::path(const std::string& hash) const {
  return directory_ / "storages" / hash;
}

bool ContentStore::contains(const std::string& hash) const {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path(hash), ignored);
}

c10::Storage ContentStore::read(const std::string& hash, std::size_t bytes) const {
  const std::string file = path(hash).string();
  try {
    caffe2::serialize::PyTorchStreamReader reader(file);
    const std::size_t found = reader.getRecordSize("data/0");
    if (found != bytes) {
      throw UserError(file + ": the storage has " + std::to_string(found) +
                      " bytes, the graph file says " + std::to_string(bytes));
    }
    c10::Storage storage = empty_storage(bytes);
    reader.getRecord("data/0", storage.mutable_data(), bytes);
    return storage;
  } catch (const c10::Error& error) {
    throw UserError(file + ": not a storage saved by PyTorch (" +
                        std::string(error.what_without_backtrace()) + ")",
                    "save it again, or remove the file to run with synthesized inputs");
  }
}

std::string ContentStore::write(const c10::Storage& storage) {
  std::string hash = sha1(storage.data(), storage.nbytes());
  write_as(hash, storage);
  return hash;
}

void ContentStore::adopt(const ContentStore& other, const std::string& hash) {
  if (contains(hash)) return;
  std::filesystem::create_directories(directory_ / "storages");
  std::error_code refused;
  std::filesystem::create_hard_link(other.path(hash), path(hash), refused);
  if (refused) std::filesystem::copy_file(other.path(hash), path(hash));
}

void ContentStore::write_as(const std::string& name, const c10::Storage& storage) {
  if (contains(name)) return;
  std::filesystem::create_directories(directory_ / "storages");
  // Under another name first, so that a reader never sees half a file.
  const std::filesystem::path temporary = path(name + ".part");
  {
    caffe2::serialize::PyTorchStreamWriter writer(temporary.string());
    const std::string pickle = storage_pickle(storage.nbytes());
    writer.writeRecord("data.pkl", pickle.data(), pickle.size());
    writer.writeRecord("byteorder", "little", 6);
    writer.writeRecord("data/0", storage.data(), storage.nbytes());
    writer.writeEndOfFile();
  }
  std::filesystem::rename(temporary, path(name));
}

}  // namespace assay::repro
