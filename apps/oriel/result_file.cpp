#include "result_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "failure.h"
#include "system.h"

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <sys/stat.h>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 16;
constexpr int kMostLinks = 40;  // the usual system limit

#ifdef _WIN32

int openNew(const std::string& path, unsigned) {
  int fd = -1;
  _wsopen_s(&fd, fs::u8path(path).c_str(),
            _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _SH_DENYRW,
            _S_IREAD | _S_IWRITE);
  return fd;
}
int openUnnamed(const std::string&, unsigned) { return -1; }
bool giveName(std::FILE*, const std::string&) { return false; }
void keepMode(int, unsigned) {}
std::FILE* streamOf(int fd) { return _fdopen(fd, "wb"); }
int heldCopy(std::FILE*) { return -1; }  // Windows: an open file cannot be renamed away
void closeRaw(int fd) { _close(fd); }

#else

int openNew(const std::string& path, unsigned mode) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

/// Disappears with the process. -1: unsupported by the system or file system.
int openUnnamed(const std::string& folder, unsigned mode) {
#ifdef O_TMPFILE
  return ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
#else
  (void)folder;
  (void)mode;
  return -1;
#endif
}

bool giveName(std::FILE* file, const std::string& path) {
#ifdef O_TMPFILE
  const std::string unnamed = "/proc/self/fd/" + std::to_string(::fileno(file));
  return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
#else
  (void)file;
  (void)path;
  return false;
#endif
}

void keepMode(int fd, unsigned mode) { (void)::fchmod(fd, mode); }
std::FILE* streamOf(int fd) { return ::fdopen(fd, "wb"); }
int heldCopy(std::FILE* file) { return ::fcntl(::fileno(file), F_DUPFD_CLOEXEC, 0); }
void closeRaw(int fd) { ::close(fd); }

#endif

}  // namespace

// Truncates the name if needed: systems allow 255 bytes.
std::string nameBeside(const std::string& path) {
  std::random_device random;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%08x%08x", static_cast<unsigned>(random()),
                static_cast<unsigned>(random()));
  return (fs::u8path(path).parent_path() / (std::string(".oriel-") + digits + ".tmp")).u8string();
}

std::string behindLinks(const std::string& path) {
  std::error_code error;
  fs::path behind = fs::u8path(path);
  // Followed one by one: the last link may point to a file that does not exist yet.
  for (int links = 0; fs::is_symlink(fs::symlink_status(behind, error)); ++links) {
    const fs::path named = fs::read_symlink(behind, error);
    if (error || links == kMostLinks) {
      return path;
    }
    behind = behind.parent_path() / named;
  }
  return behind.u8string();
}

ResultFile::ResultFile(const std::string& path, ResultKind kind) : path_(path), target_(path) {
  if (kind == ResultKind::kPrivate) {
    open(/*exists=*/true, 0600);
    return;
  }
  std::error_code error;
  const fs::file_status status = fs::status(fs::u8path(path), error);
  if (fs::is_directory(status)) {
    fail(EISDIR);
  }
  // Open descriptors must not be replaced, either.
  const bool open_already = path.compare(0, 8, "/dev/fd/") == 0 ||
                            path.compare(0, 8, "/dev/std") == 0 ||
                            path.compare(0, 6, "/proc/") == 0;
  in_place_ = (fs::exists(status) && !fs::is_regular_file(status)) || open_already;
  if (in_place_) {
    file_ = openFile(path, "wb");
    if (file_ == nullptr) {
      fail(errno);
    }
    return;
  }
  target_ = behindLinks(path);
  const unsigned old_mode = static_cast<unsigned>(status.permissions()) & 0777u;
  open(fs::exists(status), fs::exists(status) ? old_mode : 0666u);
}

void ResultFile::open(bool exists, unsigned mode) {
  int fd = openUnnamed(fs::u8path(target_).parent_path().u8string(), mode);
  for (int i = 0; i < kMostTries && fd < 0; ++i) {
    temporary_ = nameBeside(target_);
    fd = openNew(temporary_, mode);
    if (fd < 0 && errno != EEXIST) {
      break;
    }
  }
  if (fd < 0) {
    temporary_.clear();
    fail(errno);
  }
  if (exists) {
    keepMode(fd, mode);  // the umask applies only to new files
  }
  file_ = streamOf(fd);
  if (file_ == nullptr) {
    const int error = errno;
    closeRaw(fd);
    removeTemporary();
    fail(error);
  }
}

ResultFile::~ResultFile() {
  if (file_ != nullptr) {
    std::fclose(file_);
  }
  removeTemporary();
}

void ResultFile::removeTemporary() {
  if (!temporary_.empty()) {
    std::error_code ignored;
    fs::remove(fs::u8path(temporary_), ignored);
  }
}

bool ResultFile::write(const void* data, size_t bytes) noexcept {
  if (error_ == 0 && std::fwrite(data, 1, bytes, file_) != bytes) {
    error_ = errno != 0 ? errno : EIO;
  }
  return error_ == 0;
}

/// Links the file to its name. False: see errno.
bool ResultFile::place() {
  for (int i = 0; i < kMostTries && temporary_.empty(); ++i) {
    const std::string name = nameBeside(target_);
    if (giveName(file_, name)) {
      temporary_ = name;
    } else if (errno != EEXIST) {
      return false;
    }
  }
  const int held = heldCopy(file_);  // keeps the descriptor number reserved
  std::error_code error;
  if (std::fclose(std::exchange(file_, nullptr)) != 0) {
    error.assign(errno, std::generic_category());
  } else {
    fs::rename(fs::u8path(temporary_), fs::u8path(target_), error);
  }
  if (!error) {
    temporary_.clear();
  }
  if (!error && held >= 0 && isOthers(held, target_)) {
    error.assign(EPERM, std::generic_category());
  }
  if (held >= 0) {
    closeRaw(held);
  }
  errno = error.value();
  return !error;
}

void ResultFile::commit() {
  if (error_ == 0 && std::fflush(file_) != 0) {
    error_ = errno != 0 ? errno : EIO;
  }
  if (error_ == 0 && in_place_ && std::fclose(std::exchange(file_, nullptr)) != 0) {
    error_ = errno;
  }
  if (error_ == 0 && !in_place_ && !place()) {
    error_ = errno != 0 ? errno : EIO;
  }
  if (error_ != 0) {
    fail(error_);
  }
}

void ResultFile::fail(int error) const {
  throw Failure{kExitFailed, path_ + " cannot be written (" + std::strerror(error) +
                                 "): check the folder, its permissions and the space left"};
}

void ResultFile::commit(const std::string& text) {
  (void)write(text.data(), text.size());
  commit();
}

void writeResultFile(const std::string& path, const std::string& text, ResultKind kind) {
  ResultFile(path, kind).commit(text);
}

}  // namespace cli
