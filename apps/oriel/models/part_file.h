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
  /// Whether both are the same one. `checked`: the whole will be compared with a sum, so that what they do not say does
  /// not matter.
  bool same(const FileVersion& other, bool checked) const;
};

/// The part, locked: no other process gets the same file.
class PartFile {
 public:
  /// Opens it, or makes one. Throws Failure where another process has it, or it cannot be written.
  explicit PartFile(std::string target);
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
  void remove();

 private:
  void open();
  void close();
  void keepVersion() const;
  [[noreturn]] void fail(int error) const;

  std::string target_;
  std::string path_;
  std::FILE* file_ = nullptr;
  uint64_t bytes_ = 0;
  FileVersion version_;
  Sha256 sum_;
};

}  // namespace cli
