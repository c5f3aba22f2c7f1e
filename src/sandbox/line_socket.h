/// \file Lines over a socket, as client and server exchange them.
#pragma once

#include <optional>
#include <string>

namespace assay::sandbox {

class LineSocket {
 public:
  /// Takes over the descriptor.
  explicit LineSocket(int descriptor) : descriptor_(descriptor) {}
  ~LineSocket();
  LineSocket(const LineSocket&) = delete;
  LineSocket& operator=(const LineSocket&) = delete;

  int descriptor() const { return descriptor_; }

  /// False if the other side is gone.
  bool send(const std::string& line) const;
  /// The next line; nothing at the end of the stream.
  std::optional<std::string> receive();
  /// Reads what there is, once. False at the end of the stream.
  bool receive_now();
  /// A line that has been read completely.
  std::optional<std::string> take_line();
  /// A complete line waits to be taken.
  bool has_line() const { return pending_.find('\n') != std::string::npos; }

 private:
  int descriptor_;
  std::string pending_;
  std::size_t searched_ = 0;
};

}  // namespace assay::sandbox
