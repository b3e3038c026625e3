#include "models/part_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "failure.h"
#include "output.h"
#include "result_file.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "text_input.h"

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

/// Nobody else can open it while it is open here.
Opened openLocked(const std::string& path, std::FILE** file) {
  std::error_code unused;
  const Opened opened = fs::exists(fs::u8path(path), unused) ? Opened::kYes : Opened::kMade;
  int fd = -1;
  const errno_t error =
      _wsopen_s(&fd, fs::u8path(path).c_str(), _O_RDWR | _O_CREAT | _O_BINARY | _O_NOINHERIT,
                _SH_DENYRW, _S_IREAD | _S_IWRITE);
  if (error != 0) {
    return error == EACCES ? Opened::kTaken : Opened::kFailed;
  }
  *file = _fdopen(fd, "r+b");
  return *file != nullptr ? opened : Opened::kFailed;
}
void makePrivate(const std::string&) {}
bool cutToNothing(std::FILE* file) { return _chsize_s(_fileno(file), 0) == 0; }
void toDisk(std::FILE* file) { (void)_commit(_fileno(file)); }

#else

Opened openLocked(const std::string& path, std::FILE** file) {
  constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  for (;;) {
    int fd = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
    const Opened opened = fd >= 0 ? Opened::kMade : Opened::kYes;
    if (fd < 0 && errno == EEXIST) {
      fd = ::open(path.c_str(), kFlags);
      if (fd < 0 && errno == ENOENT) {
        continue;  // gone since
      }
    }
    if (fd < 0) {
      return Opened::kFailed;
    }
    // Where there are no locks there is nothing to be done about it.
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd);
      return Opened::kTaken;
    }
    struct stat ours = {};
    struct stat named = {};
    const bool same = ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &named) == 0 &&
                      ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
    if (same && S_ISREG(ours.st_mode)) {
      *file = ::fdopen(fd, "r+b");
      return *file != nullptr ? opened : Opened::kFailed;
    }
    ::close(fd);
    if (same) {
      return Opened::kForeign;
    }
    // Who had it gave it its name, or removed it: that is no part any longer.
  }
}
/// For this user alone, also once it is replaced (ResultFile): addresses may have a login in them.
void makePrivate(const std::string& path) {
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd >= 0) {
    (void)::fchmod(fd, 0600);
    ::close(fd);
  }
}
bool cutToNothing(std::FILE* file) { return ::ftruncate(::fileno(file), 0) == 0; }
void toDisk(std::FILE* file) { (void)::fsync(::fileno(file)); }

#endif

std::string textOf(const Json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : "";
}

[[noreturn]] void refuse(const std::string& path, const char* why) {
  throw Failure{kExitFailed, path + " is there, and is no " + why + ": move it away"};
}

/// What was kept beside a part; without an address where that is no pull's.
FileVersion readVersion(const std::string& path) {
  FileVersion version;
  std::error_code error;
  if (!fs::is_regular_file(fs::u8path(path), error) ||
      fs::file_size(fs::u8path(path), error) > (1 << 16)) {
    return version;
  }
  const Json json = Json::parse(readAll(path), nullptr, /*allow_exceptions=*/false);
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
  if (file_ != nullptr && bytes_ == 0 && (made_ || filled_)) {
    remove();
  }
  close();
}

void PartFile::open() {
  std::error_code error;
  for (const std::string& path : {path_, notes()}) {
    const fs::file_status there = fs::symlink_status(fs::u8path(path), error);
    // Opening a pipe would wait for its other end, and writing goes through links.
    if (fs::exists(there) && !fs::is_regular_file(there)) {
      refuse(path, "regular file");
    }
  }
  const FileVersion noted = readVersion(notes());
  noted_ = !noted.url.empty();
  if (const uint64_t bytes = fs::file_size(fs::u8path(notes()), error);
      !error && bytes != 0 && !noted_) {
    refuse(notes(), "part of oriel's");
  }
  const Opened opened = openLocked(path_, &file_);
  switch (opened) {
    case Opened::kTaken:
      throw Failure{kExitFailed, "another oriel is getting " + target_ +
                                     ": wait for it; it can be stopped and gone on with"};
    case Opened::kForeign:
      refuse(path_, "regular file");
    case Opened::kFailed:
      fail(errno);
    case Opened::kMade:
    case Opened::kYes:
      break;
  }
  made_ = opened == Opened::kMade;
  const uint64_t bytes = fs::file_size(fs::u8path(path_), error);
  bytes_ = error ? 0 : bytes;
  if (bytes_ != 0) {
    // Once more: whoever had the lock until now may have written them.
    version_ = readVersion(notes());
    noted_ = !version_.url.empty();
    if (!noted_) {
      close();
      refuse(path_, "part of oriel's");
    }
    makePrivate(notes());
  }
}

void PartFile::close() {
  if (file_ != nullptr) {
    std::fclose(std::exchange(file_, nullptr));
  }
}

void PartFile::keepVersion() const {
  Json json;
  json["url"] = version_.url;
  json["etag"] = version_.etag;
  json["last_modified"] = version_.last_modified;
  json["sha256"] = version_.sha256;
  json["bytes"] = version_.bytes;
  makePrivate(notes());
  writeResultFile(notes(), json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void PartFile::begin(const FileVersion& version) {
  std::rewind(file_);
  if (!cutToNothing(file_)) {
    fail(errno);
  }
  filled_ = true;
  bytes_ = 0;
  sum_ = {};
  version_ = version;
  keepVersion();
  noted_ = true;
}

void PartFile::goOn() {
  std::rewind(file_);
  sum_ = {};
  std::vector<char> buffer(1 << 20);
  uint64_t read = 0;
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), file_)) != 0;) {
    sum_.add(buffer.data(), count);
    read += count;
    if (interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
  }
  if (std::ferror(file_) != 0 || std::fseek(file_, 0, SEEK_END) != 0) {
    fail(errno);
  }
  bytes_ = read;
}

void PartFile::write(const char* data, size_t bytes) {
  filled_ = true;
  if (std::fwrite(data, 1, bytes, file_) != bytes) {
    fail(errno);
  }
  sum_.add(data, bytes);
  bytes_ += bytes;
}

std::string PartFile::sha256() const {
  Sha256 sum = sum_;
  return sum.digest();
}

void PartFile::settle() {
  if (std::fflush(file_) != 0) {
    fail(errno);
  }
  toDisk(file_);
#ifdef _WIN32
  close();  // there nobody else reads a file that is locked, and an open one keeps its name
#endif
}

void PartFile::place() {
  const fs::path from = fs::u8path(path_);
  const fs::path to = fs::u8path(target_);
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (error) {  // there is something, or the file system has no links
    std::error_code unused;
    if (fs::exists(fs::symlink_status(to, unused))) {
      throw Failure{kExitFailed, target_ + " came to be there meanwhile: move it away, and " +
                                     path_ + " to its place"};
    }
    error.clear();
    fs::rename(from, to, error);
    if (error) {
      fail(error.value());
    }
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
#ifdef _WIN32
  close();
#endif
  fs::remove(fs::u8path(path_), ignored);
  bytes_ = 0;
  close();  // not before: until it is gone nobody else may have it
}

void PartFile::fail(int error) const {
  throw Failure{
      kExitFailed,
      path_ + " cannot be written (" + std::strerror(error) + "): " +
          (error == ENOSPC ? "make room, or choose another place with --to, and pull again"
                           : "check the folder, its permissions and the space left")};
}

}  // namespace cli
