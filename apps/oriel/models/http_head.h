// Parses the HTTP heads that curl prints before the body (--include), including the heads of redirects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace cli {

class HttpHead {
 public:
  /// Consumes the bytes of heads and returns their number. The rest is the body.
  size_t take(std::string_view bytes);
  /// The last head has ended.
  bool complete() const { return complete_; }
  /// Too long, or not a head.
  bool broken() const { return broken_; }

  int status() const { return status_; }
  /// From the head of the final answer; names in lower case. Empty: missing.
  std::string field(const std::string& name) const;
  /// The body is chunked, so its length is unknown.
  bool chunked() const;
  /// The size of the whole file. Empty: unknown.
  std::optional<uint64_t> fileBytes() const;
  /// Offset of the body in the file.
  uint64_t firstByte() const;
  /// The file's SHA-256 from any of the answers. Empty: none.
  const std::string& sha256() const { return sha256_; }

 private:
  void line(std::string_view text);
  void endHead();

  std::string pending_;
  std::map<std::string, std::string> fields_;
  std::string sha256_;
  size_t bytes_ = 0;
  int status_ = 0;
  bool complete_ = false;
  bool broken_ = false;
};

}  // namespace cli
