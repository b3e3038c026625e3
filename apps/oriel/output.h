// Results on stdout and in files, and the early exit of a command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace cli {

// Early exit of a command: main() prints the line and returns the exit code.

constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitDoesNotFit = 3;
constexpr int kExitCut = 4;  ///< --tokens truncated a reply under a schema, or a call
constexpr int kExitCancelled = 130;

/// Thrown. `message` is "WHAT HAPPENED: WHAT TO DO"; empty: prints nothing.
struct Failure {
  int exit_code = kExitFailed;
  std::string message;
};

// stdout (results). Other messages go to stderr: terminal.h.

/// Fields keep their order of insertion.
using Json = nlohmann::ordered_json;

/// Writes to stdout at once, on a terminal like writeShown(). If the reader has closed the pipe, the command ends
/// quietly (throws Failure with exit code 0 and no message); any other error is a failure.
void print(std::string_view text);
/// Like print(), for callbacks of the library, which must not throw: returns false, and the next print() throws.
bool tryPrint(std::string_view text) noexcept;

/// Formats like printf, at most 511 bytes.
#if defined(__MINGW32__)
__attribute__((format(gnu_printf, 1, 2)))
#elif defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
std::string
formatted(const char* pattern, ...);

/// Discarded (Json::is_discarded()) if the text is not JSON.
Json tryJson(const std::string& text);
/// Throws Json::exception if the text is not JSON, except for comments if `comments`.
Json jsonFrom(const std::string& text, bool comments = false);

/// On one line. Invalid UTF-8 becomes U+FFFD.
std::string dumped(const Json& json);
/// Prints one object on one line, repaired in the same way.
void printJson(const Json& json);

/// Splits a text at commas.
Json listOf(const std::string& parts);

/// The shortest number that reads back as this float: as a double it would have up to 17 digits.
Json numberOf(float value);

/// Indices of the keys, in ascending order; of equal keys the earlier one comes first.
std::vector<size_t> orderOf(const std::vector<double>& keys);

/// `text` with each `from` replaced by `to`.
std::string replaced(const std::string& text, const std::string& from, const std::string& to);

// Input texts: files and stdin, whole or from their beginning.

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

// Output files that appear complete or not at all.

enum class ResultKind {
  kResult,  ///< follows links, writes devices and pipes in place, keeps the mode of a replaced file
  kPrivate,  ///< the program's own: private to this user; replaces an existing file or link
};

/// Is written without a name, or else under an unguessable name; commit() gives it its name. This keeps partial files
/// invisible and never writes to a planted file. Without commit() nothing changes. commit() fails if another user's file
/// has taken the name.
class ResultFile {
 public:
  /// Throws Failure.
  explicit ResultFile(const std::string& path, ResultKind kind = ResultKind::kResult);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  /// For callbacks: does not throw; commit() reports errors.
  bool write(const void* data, size_t bytes) noexcept;
  /// Throws Failure if any write failed.
  void commit();
  /// For a result that is one text.
  void commit(const std::string& text);

 private:
  void open(bool exists, unsigned mode);
  bool place();
  [[noreturn]] void fail(int error) const;
  void removeTemporary();

  const std::string path_;  ///< as given
  std::string target_;      ///< after following links
  std::string temporary_;   ///< empty: no name yet, or written in place
  bool in_place_ = false;
  std::FILE* file_ = nullptr;
  int error_ = 0;
};

/// An unguessable name in the same folder.
std::string nameBeside(const std::string& path);
/// The target of a link, or the path itself.
std::string behindLinks(const std::string& path);

/// Writes a whole result. Throws Failure.
void writeResultFile(const std::string& path, const std::string& text,
                     ResultKind kind = ResultKind::kResult);

}  // namespace cli
