// Incremental SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/download.h"

namespace cli {

class Sha256 {
 public:
  void add(const void* data, size_t bytes);
  /// 64 hexadecimal digits, lower case. Call once.
  std::string digest();

 private:
  void block(const unsigned char* data);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_ = {};
  uint64_t bytes_ = 0;
};

/// 64 hexadecimal digits.
bool isSha256(const std::string& text);

// An incomplete download: FILE.part, with the server's facts about the file in FILE.part.json.

/// The server's version of a file.
struct FileVersion {
  std::string url;
  std::string etag;
  std::string last_modified;
  std::string sha256;
  uint64_t bytes = 0;  ///< 0: not known

  static FileVersion of(const std::string& url, const HttpHead& head);
  /// The difference to another version, as said of a server ("has changed the file"); null: the same. `checked`: missing
  /// facts do not matter, since the whole file will be verified.
  const char* unlike(const FileVersion& other, bool checked) const;
  /// True if it can be recognised later.
  bool named() const { return !etag.empty() || !last_modified.empty() || !sha256.empty(); }
};

/// The part file, locked against other processes. An existing part stays unchanged until begin() or write().
//
/// FILE.part is used only if it and its notes are private to this user: regular files, one link, not writable by others.
/// Otherwise the part is a new file with an unguessable name, which cannot be resumed.
class PartFile {
 public:
  /// Opens or creates it. Throws Failure if another process has it, if it is not writable, or if a file of that name is
  /// not a pull's.
  explicit PartFile(std::string target);
  /// Removes files that it created and did not fill, and a part that cannot be resumed.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }
  /// A path to the open file itself for the library, where possible.
  std::string openPath() const;
  uint64_t bytes() const { return bytes_; }
  /// Its known facts; empty texts if unknown.
  const FileVersion& version() const { return version_; }
  /// True if another process can continue it.
  bool resumable() const { return resumable_; }

  /// Starts from the beginning with this version.
  void begin(const FileVersion& version);
  /// Continues the existing part.
  void goOn();
  void write(const char* data, size_t bytes);
  /// The largest size by its GGUF header (ggufBytes).
  std::optional<uint64_t> impliedBytes();
  /// Call when complete: flushes it to disk and returns the SHA-256 of its contents.
  std::string settle();
  /// Call afterwards: gives it its final name, without replacing a file. Throws Failure, also if the name is taken.
  void place();
  /// Removes it if this process wrote to it. Returns advice for the user.
  std::string discard();

 private:
  void open();
  void openUnguessable();
  void readNotes();
  void remove();
  std::string notes() const { return path_ + ".json"; }
  void close();
  void keepVersion() const;
  [[noreturn]] void fail(int error) const;

  std::string target_;
  std::string path_;
  std::FILE* file_ = nullptr;
  uint64_t bytes_ = 0;
  bool resumable_ = true;
  bool made_ = false;    ///< by this process
  bool filled_ = false;  ///< written by this process, in whole or in part
  bool noted_ = false;   ///< its notes are a pull's
  FileVersion version_;
};

// Reads a GGUF header: the largest possible file size, for downloads of unknown length, and the maker's sampling
// settings.

/// Reads from the current position of `file`. 0: the header is incomplete. Values of unknown type count as 8 bytes.
/// Empty: not a header of GGUF version 3, or over 1 GiB.
std::optional<uint64_t> ggufBytes(std::FILE* file);

/// Values of the keys "general.sampling.*", by the last part of the key. From an incomplete or invalid header: those
/// before its end.
std::vector<std::pair<std::string, double>> ggufSampling(std::FILE* file);

}  // namespace cli
