// A download that is not complete yet: FILE.part, with what the server said of the file in FILE.part.json.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "models/http_head.h"

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
///
/// FILE.part is used only if it and its notes are this user's alone: regular files of his, with one name, that nobody
/// else may write to. Otherwise the part is a new file under a name that nobody can guess, and cannot be resumed.
class PartFile {
 public:
  /// Opens it, or makes one. Throws Failure where another process has it, where it cannot be written, and where a file
  /// of this user lies there that no pull has left.
  explicit PartFile(std::string target);
  /// Removes what this made and did not fill, and a part that cannot be resumed.
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return path_; }
  /// Names the open file itself to the library, where the system can.
  std::string openPath() const;
  uint64_t bytes() const { return bytes_; }
  /// What is known of it; empty texts where nothing is.
  const FileVersion& version() const { return version_; }
  /// Another process can go on with it.
  bool resumable() const { return resumable_; }

  /// From nothing, of that version.
  void begin(const FileVersion& version);
  /// Goes on with what there is.
  void goOn();
  void write(const char* data, size_t bytes);
  /// The most that the file has by its GGUF header (ggufBytes).
  std::optional<uint64_t> impliedBytes();
  /// It is complete: on the disk. The SHA-256 of all that lies there then.
  std::string settle();
  /// Then: under its own name; never over another file. Throws Failure, also where another file has that name then.
  void place();
  /// Removes it, if this process wrote any of it. What to do then, for people.
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
  bool filled_ = false;  ///< likewise, in whole or in part
  bool noted_ = false;   ///< the notes beside it are a pull's
  FileVersion version_;
};

}  // namespace cli
