#include "models/part_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "failure.h"
#include "models/gguf_bytes.h"
#include "models/sha256.h"
#include "output.h"
#include "result_file.h"
#include "system.h"
#include "terminal/interrupt.h"

#include <fcntl.h>
#include <sys/stat.h>
#ifdef _WIN32
#include <io.h>
#include <share.h>
#else
#include <sys/file.h>
#include <unistd.h>
#endif

namespace cli {
namespace {

namespace fs = std::filesystem;

enum class Opened { kYes, kMade, kTaken, kForeign, kFailed };

#ifdef _WIN32

/// Opens exclusively.
Opened openLocked(const std::string& path, bool only_new, std::FILE** file) {
  std::error_code unused;
  const Opened opened = fs::exists(fs::u8path(path), unused) ? Opened::kYes : Opened::kMade;
  int fd = -1;
  const int flags = _O_RDWR | _O_CREAT | _O_BINARY | _O_NOINHERIT | (only_new ? _O_EXCL : 0);
  const errno_t error =
      _wsopen_s(&fd, fs::u8path(path).c_str(), flags, _SH_DENYRW, _S_IREAD | _S_IWRITE);
  if (error != 0) {
    return error == EACCES ? Opened::kTaken : Opened::kFailed;
  }
  *file = _fdopen(fd, "r+b");
  return *file != nullptr ? opened : Opened::kFailed;
}
std::FILE* openNotes(const std::string& path) { return openRegularFile(path); }
std::string descriptorPath(std::FILE*) { return ""; }
bool cutToNothing(std::FILE* file) { return _chsize_s(_fileno(file), 0) == 0; }
void toDisk(std::FILE* file) { (void)_commit(_fileno(file)); }
int numberOf(std::FILE* file) { return _fileno(file); }
bool linkOpen(std::FILE*, const std::string&) { return false; }
constexpr bool kClosedToOthers = true;

#else

/// Why an existing file could not be opened: it belongs to another user, or another error.
Opened whyNot(int error) {
  return error == ELOOP || error == EMLINK || error == EACCES || error == EISDIR || error == ENXIO
             ? Opened::kForeign
             : Opened::kFailed;
}

/// `only_new`: fails if it exists.
Opened openLocked(const std::string& path, bool only_new, std::FILE** file) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  for (;;) {
    int fd = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0644);
    const Opened opened = fd >= 0 ? Opened::kMade : Opened::kYes;
    if (fd < 0 && errno == EEXIST && !only_new) {
      fd = ::open(path.c_str(), kFlags);
      if (fd < 0 && errno == ENOENT) {
        continue;  // gone since
      }
      if (fd < 0) {
        return whyNot(errno);
      }
    }
    if (fd < 0) {
      return Opened::kFailed;
    }
    struct stat info = {};
    const bool mine = ::fstat(fd, &info) == 0 && info.st_uid == ::geteuid();
    // On file systems without locks this is ignored.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd);
      return mine ? Opened::kTaken : Opened::kForeign;
    }
    const bool named = isNamed(fd, path);
    if (named && opened == Opened::kYes && !isOwned(fd)) {
      ::close(fd);
      return Opened::kForeign;
    }
    if (named) {
      *file = ::fdopen(fd, "r+b");
      return *file != nullptr ? opened : Opened::kFailed;
    }
    ::close(fd);
    // The previous owner has renamed or removed the part.
  }
}
/// Null: missing, or not private to this user. Makes it private, since addresses may contain a login.
std::FILE* openNotes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0 && isOwned(fd)) {
    (void)::fchmod(fd, 0600);
    return ::fdopen(fd, "rb");
  }
  if (fd >= 0) {
    ::close(fd);
  }
  return nullptr;
}
std::string descriptorPath(std::FILE* file) { return "/dev/fd/" + std::to_string(::fileno(file)); }
bool cutToNothing(std::FILE* file) { return ::ftruncate(::fileno(file), 0) == 0; }
void toDisk(std::FILE* file) { (void)::fsync(::fileno(file)); }
int numberOf(std::FILE* file) { return ::fileno(file); }
/// Links the open file under a name, regardless of its old name. False: see errno.
bool linkOpen(std::FILE* file, const std::string& to) {
  const std::string open = "/proc/self/fd/" + std::to_string(::fileno(file));
  return ::linkat(AT_FDCWD, open.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0;
}
constexpr bool kClosedToOthers = false;

#endif

std::string textOf(const Json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
}

[[noreturn]] void refuse(const std::string& path, const char* why) {
  throw Failure{kExitFailed, path + " exists, and is not a " + why + ": move it away"};
}

/// The notes of a part; without an address if they are not a pull's.
FileVersion versionIn(const std::string& text) {
  FileVersion version;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) {
    version = {textOf(json, "url"), textOf(json, "etag"), textOf(json, "last_modified"),
               textOf(json, "sha256"),
               json.contains("bytes") && json["bytes"].is_number_unsigned()
                   ? json["bytes"].get<uint64_t>()
                   : 0};
  }
  return version;
}

}  // namespace

FileVersion FileVersion::of(const std::string& url, const HttpHead& head) {
  std::string etag = head.field("etag");
  if (etag.compare(0, 2, "W/") == 0) {
    etag.erase(0, 2);
  }
  return {url, etag, head.field("last-modified"), head.sha256(), head.fileBytes().value_or(0)};
}

const char* FileVersion::unlike(const FileVersion& other, bool checked) const {
  static constexpr char kChanged[] = "has changed the file";
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  const auto agree = [](const std::string& a, const std::string& b) {
    return !a.empty() && a == b;
  };
  if (bytes != 0 && other.bytes != 0 && bytes != other.bytes) {
    return "has a file of another length now";
  }
  if (differ(sha256, other.sha256)) {
    return kChanged;
  }
  if (agree(sha256, other.sha256) || agree(etag, other.etag)) {
    return nullptr;
  }
  if (differ(etag, other.etag) || differ(last_modified, other.last_modified)) {
    return kChanged;
  }
  return agree(last_modified, other.last_modified) || checked
             ? nullptr
             : "does not say whether the file is still the same";
}

PartFile::PartFile(std::string target) : target_(std::move(target)), path_(target_ + ".part") {
  open();
}

PartFile::~PartFile() {
  if (file_ != nullptr && (!resumable_ || (bytes_ == 0 && (made_ || filled_)))) {
    remove();
  }
  close();
}

void PartFile::open() {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(fs::u8path(notes()), error);
  std::FILE* const notes_file = openNotes(notes());
  if (notes_file != nullptr) {
    std::fclose(notes_file);
    readNotes();
  } else if (fs::exists(there)) {
    return openUnguessable();
  }
  const Opened opened = openLocked(path_, /*only_new=*/false, &file_);
  switch (opened) {
    case Opened::kTaken:
      throw Failure{kExitFailed, "another oriel is getting " + target_ +
                                     ": wait for it; it can be stopped and gone on with"};
    case Opened::kForeign:
      return openUnguessable();
    case Opened::kFailed:
      fail(errno);
    case Opened::kMade:
    case Opened::kYes:
      break;
  }
  made_ = opened == Opened::kMade;
  resumable_ = isOwned(numberOf(file_));
  const uint64_t bytes = fs::file_size(fs::u8path(path_), error);
  bytes_ = error ? 0 : bytes;
  if (bytes_ != 0) {
    // Reads again: the previous lock owner may have written them.
    readNotes();
    if (!noted_) {
      close();
      refuse(path_, "part of oriel's");
    }
  }
}

/// Leaves another user's file of that name untouched.
void PartFile::openUnguessable() {
  path_ = nameBeside(target_);
  resumable_ = noted_ = false;
  made_ = openLocked(path_, /*only_new=*/true, &file_) == Opened::kMade;
  if (!made_) {
    fail(errno);
  }
}

void PartFile::readNotes() {
  constexpr size_t kMostBytes = 1 << 16;
  std::string text(kMostBytes + 1, '\0');
  std::FILE* const file = openNotes(notes());
  text.resize(file != nullptr ? std::fread(text.data(), 1, text.size(), file) : 0);
  if (file != nullptr) {
    std::fclose(file);
  }
  version_ = text.size() <= kMostBytes ? versionIn(text) : FileVersion();
  noted_ = !version_.url.empty();
  if (!noted_ && !text.empty()) {
    close();
    refuse(notes(), "part of oriel's");
  }
}

void PartFile::close() {
  if (file_ != nullptr) {
    std::fclose(std::exchange(file_, nullptr));
  }
}

void PartFile::keepVersion() const {
  if (!resumable_) {
    return;
  }
  Json json;
  json["url"] = version_.url;
  json["etag"] = version_.etag;
  json["last_modified"] = version_.last_modified;
  json["sha256"] = version_.sha256;
  json["bytes"] = version_.bytes;
  writeResultFile(notes(), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n",
                  ResultKind::kPrivate);
}

void PartFile::begin(const FileVersion& version) {
  std::rewind(file_);
  if (!cutToNothing(file_)) {
    fail(errno);
  }
  filled_ = true;
  bytes_ = 0;
  version_ = version;
  keepVersion();
  noted_ = resumable_;
}

void PartFile::goOn() {
  if (std::fseek(file_, 0, SEEK_END) != 0) {
    fail(errno);
  }
}

void PartFile::write(const char* data, size_t bytes) {
  filled_ = true;
  if (std::fwrite(data, 1, bytes, file_) != bytes) {
    fail(errno);
  }
  bytes_ += bytes;
}

std::optional<uint64_t> PartFile::impliedBytes() {
  if (std::fflush(file_) != 0) {
    fail(errno);
  }
  std::rewind(file_);
  const std::optional<uint64_t> bytes = ggufBytes(file_);
  goOn();
  return bytes;
}

std::string PartFile::settle() {
  if (std::fflush(file_) != 0) {
    fail(errno);
  }
  toDisk(file_);
  std::rewind(file_);
  Sha256 sum;
  std::vector<char> buffer(1 << 20);
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), file_)) != 0;) {
    sum.add(buffer.data(), count);
    if (interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
  }
  if (std::ferror(file_) != 0) {
    fail(errno);
  }
  if (kClosedToOthers) {
    close();
  }
  return sum.digest();
}

std::string PartFile::openPath() const {
  return file_ == nullptr || kClosedToOthers ? path_ : descriptorPath(file_);
}

void PartFile::place() {
  const fs::path from = fs::u8path(path_);
  const fs::path to = fs::u8path(target_);
  std::error_code error;
  if (file_ == nullptr || !linkOpen(file_, target_)) {
    if (file_ != nullptr && !isNamed(numberOf(file_), path_)) {
      remove();
      throw Failure{kExitFailed, path_ +
                                     " was replaced during the download by another program: choose "
                                     "another folder with --to"};
    }
    fs::create_hard_link(from, to, error);
  }
  if (error) {  // the name exists, or the file system has no links
    std::error_code unused;
    if (fs::exists(fs::symlink_status(to, unused))) {
      throw Failure{kExitFailed,
                    target_ + " came to be there meanwhile: move it away, and " +
                        (resumable_ ? path_ + " to its place" : std::string("pull again"))};
    }
    error.clear();
    fs::rename(from, to, error);
    if (error) {
      fail(error.value());
    }
  }
  if (file_ != nullptr && !isNamed(numberOf(file_), target_)) {
    throw Failure{kExitFailed, target_ +
                                   " was replaced after the check by another program: remove it, "
                                   "and choose another folder with --to"};
  }
  remove();
}

std::string PartFile::discard() {
  if (!filled_) {
    return "move " + path_ + " away, and try again";
  }
  remove();
  return "try again";
}

void PartFile::remove() {
  std::error_code ignored;
  if (noted_) {
    fs::remove(fs::u8path(notes()), ignored);
  }
  // The name may now belong to another user's file.
  const bool ours = file_ == nullptr || isNamed(numberOf(file_), path_);
#ifdef _WIN32
  close();
#endif
  if (ours) {
    fs::remove(fs::u8path(path_), ignored);
  }
  bytes_ = 0;
  close();  // kept open until removal, to keep the lock
}

void PartFile::fail(int error) const {
  throw Failure{
      kExitFailed,
      path_ + " cannot be written (" + std::strerror(error) + "): " +
          (error == ENOSPC ? "make room, or choose another place with --to, and pull again"
                           : "check the folder, its permissions and the space left")};
}

}  // namespace cli
