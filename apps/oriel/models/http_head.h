// What a server says before it sends a file: the heads that curl prints in front of the body (--include), those of
// redirects among them.
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
  /// Takes what belongs to heads; returns how many bytes that were. Everything behind belongs to the body.
  size_t take(std::string_view bytes);
  /// The last head has ended.
  bool complete() const { return complete_; }
  /// It is longer than any server's, or none at all.
  bool broken() const { return broken_; }

  int status() const { return status_; }
  /// Of the answer that the body belongs to; names in small letters. Empty: not said.
  std::string field(const std::string& name) const;
  /// The body comes in chunks, so that its length is not said.
  bool chunked() const;
  /// Of the file, in whole. Nothing: the server does not say.
  std::optional<uint64_t> fileBytes() const;
  /// Where the body begins in the file.
  uint64_t firstByte() const;
  /// The file's SHA-256, if any answer on the way had it. Empty: none.
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
