// Texts that a command is given: files and stdin, whole or from their beginning.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace cli {

/// More than this is nothing that a model could be told.
constexpr uint64_t kMostInputBytes = 1 << 30;

/// As errors name it: "-" is stdin.
std::string inputName(const std::string& path);

/// Read as far as somebody wants it. A byte order mark at the beginning is no part of the text.
class TextInput {
 public:
  /// Throws Failure where there is nothing to read.
  explicit TextInput(const std::string& path);
  ~TextInput();
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;

  /// At least so many bytes, or all there are. Throws Failure.
  void readTo(uint64_t bytes);
  /// Throws Failure for more than `most_bytes`, too.
  void readAll(uint64_t most_bytes = kMostInputBytes);
  /// All has been read.
  bool ended() const { return ended_; }
  const std::string& text() const { return text_; }
  /// Without the beginning of a character whose end has not been read.
  std::string wholeCharacters() const;
  std::string name() const { return inputName(path_); }
  /// Of what has been read, which is gone here.
  std::string take() { return std::move(text_); }

 private:
  [[noreturn]] void fail(int error) const;
  void skipByteOrderMark();

  const std::string path_;
  std::FILE* file_ = nullptr;  ///< null: stdin
  bool begun_ = false;         ///< a byte order mark was skipped, or is not there
  bool ended_ = false;
  std::string text_;
};

/// Throws Failure, also for what has more bytes than that.
std::string readAll(const std::string& path, uint64_t most_bytes = kMostInputBytes);

/// A text file as part of a message: its name on a line, then what it holds. Throws Failure, also for what is no text.
std::string attachment(const std::string& path);

}  // namespace cli
