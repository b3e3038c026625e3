// Input texts: files and stdin, whole or from their beginning.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace cli {

/// Larger than any model's input.
constexpr uint64_t kMostInputBytes = 1 << 30;

/// The name for errors: "-" is stdin.
std::string inputName(const std::string& path);

/// Reads on demand. Skips a leading byte order mark.
class TextInput {
 public:
  /// Throws Failure if it cannot be read.
  explicit TextInput(const std::string& path);
  ~TextInput();
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;

  /// Reads at least `bytes` bytes, or everything. Throws Failure.
  void readTo(uint64_t bytes);
  /// Throws Failure, also above `most_bytes`.
  void readAll(uint64_t most_bytes = kMostInputBytes);
  /// Everything was read.
  bool ended() const { return ended_; }
  const std::string& text() const { return text_; }
  /// Without an incomplete last character.
  std::string wholeCharacters() const;
  std::string name() const { return inputName(path_); }
  /// Moves the text read so far out.
  std::string take() { return std::move(text_); }

 private:
  [[noreturn]] void fail(int error) const;
  void skipByteOrderMark();

  const std::string path_;
  std::FILE* file_ = nullptr;  ///< null: stdin
  bool begun_ = false;         ///< the byte order mark was skipped, or is absent
  bool ended_ = false;
  std::string text_;
};

/// Throws Failure, also for a larger file.
std::string readAll(const std::string& path, uint64_t most_bytes = kMostInputBytes);

/// A text file as part of a message: its name on a line, then its contents. Throws Failure, also if it is not text.
std::string attachment(const std::string& path);

}  // namespace cli
