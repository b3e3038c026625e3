// A download that is not complete yet: FILE.part, with what the server said of the file in FILE.part.json.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "models/http_head.h"
#include "models/sha256.h"

namespace cli {

/// Which version of a file a server has.
struct FileVersion {
  std::string url;
  std::string etag;
  std::string last_modified;
  std::string sha256;
  uint64_t bytes = 0;  ///< 0: not known

  static FileVersion of(const std::string& url, const HttpHead& head);
  /// What tells another version from this one, said of a server ("has changed the file"); null: it is the same one.
  /// `checked`: what they do not say does not matter, for the whole will be compared with something else.
  const char* unlike(const FileVersion& other, bool checked) const;
  /// By which it could be known another time.
  bool named() const { return !etag.empty() || !last_modified.empty() || !sha256.empty(); }
};

/// The part, locked: no other process gets the same file. What lies there stays as it is until begin() or write().
class PartFile {
 public:
  /// Opens it, or makes one. Throws Failure where another process has it, where it cannot be written, and where
  /// something lies there that no pull has left.
  explicit PartFile(std::string target);
  /// Removes what this made and did not fill.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  /// What is known of it; empty texts where nothing is.
  const FileVersion& version() const { return version_; }

  /// From nothing, of that version.
  void begin(const FileVersion& version);
  /// Goes on with what there is: it is summed up first.
  void goOn();
  void write(const char* data, size_t bytes);
  /// Of all of it.
  std::string sha256() const;
  /// It is complete: on the disk, for others to read.
  void settle();
  /// Then: under its own name; never over another file. Throws Failure.
  void place();
  /// Removes it, if this process wrote any of it. What to do then, for people.
  std::string discard();

 private:
  void open();
  void remove();
  std::string notes() const { return path_ + ".json"; }
  void close();
  void keepVersion() const;
  [[noreturn]] void fail(int error) const;

  std::string target_;
  std::string path_;
  std::FILE* file_ = nullptr;
  uint64_t bytes_ = 0;
  bool made_ = false;    ///< by this process
  bool filled_ = false;  ///< likewise, in whole or in part
  bool noted_ = false;   ///< the notes beside it are a pull's
  FileVersion version_;
  Sha256 sum_;
};

}  // namespace cli
