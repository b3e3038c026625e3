#include "output.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <system_error>
#include <utility>

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

#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

// The C++ runtime's report of uncaught exceptions takes 50 KB; main() catches them all.
#ifdef __GLIBCXX__
namespace __gnu_cxx {
void __verbose_terminate_handler();  // NOLINT(bugprone-reserved-identifier): replaces the runtime's own
void __verbose_terminate_handler() { std::abort(); }
}  // namespace __gnu_cxx
#endif

namespace cli {
namespace {

/// The program's only call of nlohmann's parser: each type of input would compile another one.
Json parseWith(const std::string& text, bool throws, bool comments) {
  return Json::parse(text, nullptr, throws, comments);
}

/// errno of the first failed write; global, like stdout.
int write_error = 0;

}  // namespace

bool tryPrint(std::string_view text) noexcept {
  static const bool shown = isTerminal(Stream::kOut);
  thread_local ShownBefore before;
  const auto write = [&] {
    return shown ? writeShown(text, stdout, &before)
                 : std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  };
  if (write_error == 0 && (!write() || std::fflush(stdout) != 0)) {
    write_error = errno != 0 ? errno : EIO;
  }
  return write_error == 0;
}

void print(std::string_view text) {
  if (tryPrint(text)) {
    return;
  }
  if (write_error == EPIPE) {
    throw Failure{kExitDone, ""};
  }
  throw Failure{kExitFailed, std::string("stdout cannot be written (") +
                                 std::strerror(write_error) + "): check where the output goes"};
}

std::string formatted(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

Json tryJson(const std::string& text) {
  return parseWith(text, /*throws=*/false, /*comments=*/false);
}

Json jsonFrom(const std::string& text, bool comments) {
  return parseWith(text, /*throws=*/true, comments);
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void printJson(const Json& json) { print(dumped(json) + "\n"); }

Json listOf(const std::string& parts) {
  Json list = Json::array();
  for (size_t begin = 0; begin < parts.size();) {
    const size_t comma = parts.find(',', begin);
    const size_t end = comma == std::string::npos ? parts.size() : comma;
    const size_t first = parts.find_first_not_of(' ', begin);
    if (first < end) {
      list.push_back(parts.substr(first, end - first));
    }
    begin = end + 1;
  }
  return list;
}

Json numberOf(float value) {
  // Nine digits distinguish all floats; most need fewer.
  for (int digits = 6; digits <= 9; ++digits) {
    const std::string text = formatted("%.*g", digits, static_cast<double>(value));
    if (std::strtof(text.c_str(), nullptr) == value) {
      return std::strtod(text.c_str(), nullptr);  // printed with the digits of this text
    }
  }
  return value;  // not finite
}

std::vector<size_t> orderOf(const std::vector<double>& keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  return order;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  size_t at = 0;
  for (size_t found = 0; (found = text.find(from, at)) != std::string::npos;
       at = found + from.size()) {
    out += text.substr(at, found - at) + to;
  }
  return out + text.substr(at);
}

std::string inputName(const std::string& path) { return path == "-" ? "stdin" : path; }

TextInput::TextInput(const std::string& path) : path_(path) {
  if (path != "-" && (file_ = openFile(path, "rb")) == nullptr) {
    fail(errno);
  }
}

TextInput::~TextInput() {
  if (file_ != nullptr) {
    std::fclose(file_);
  }
}

void TextInput::fail(int error) const {
  throw Failure{kExitFailed, name() + " cannot be read (" + std::strerror(error) + "): " +
                                 (path_ == "-" ? "check where the input comes from"
                                               : "check the path and its permissions")};
}

void TextInput::readTo(uint64_t bytes) {
  char buffer[65536];
  while (!ended_ && text_.size() < bytes) {
    const long count = file_ == nullptr
                           ? readStdin(buffer, sizeof(buffer))
                           : static_cast<long>(std::fread(buffer, 1, sizeof(buffer), file_));
    if (count < 0 && errno == EINTR && interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
    if (count < 0 || (file_ != nullptr && std::ferror(file_) != 0)) {
      fail(errno);
    }
    ended_ = count == 0;
    text_.append(buffer, static_cast<size_t>(count));
    skipByteOrderMark();
  }
}

/// Windows editors and shells write one.
void TextInput::skipByteOrderMark() {
  constexpr char kMark[] = "\xEF\xBB\xBF";
  constexpr size_t kBytes = sizeof(kMark) - 1;
  if (!begun_ && (text_.size() >= kBytes || ended_)) {
    begun_ = true;
    text_.erase(0, text_.compare(0, kBytes, kMark) == 0 ? kBytes : 0);
  }
}

void TextInput::readAll(uint64_t most_bytes) {
  readTo(most_bytes + 1);
  if (text_.size() > most_bytes) {
    throw Failure{kExitFailed,
                  name() + " has more than " + formatSize(most_bytes) + ": give it in parts"};
  }
}

std::string TextInput::wholeCharacters() const {
  size_t end = text_.size();
  for (size_t back = 1; !ended_ && back <= std::min<size_t>(4, text_.size()); ++back) {
    const unsigned char byte = static_cast<unsigned char>(text_[text_.size() - back]);
    if ((byte & 0xc0) != 0x80) {  // start of the last character
      const size_t bytes = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      end -= bytes > back ? back : 0;
      break;
    }
  }
  return text_.substr(0, end);
}

std::string readAll(const std::string& path, uint64_t most_bytes) {
  TextInput input(path);
  input.readAll(most_bytes);
  return input.take();
}

std::string attachment(const std::string& path) {
  constexpr uint64_t kMostAttachedBytes = 16 << 20;
  const std::string text = readAll(path, kMostAttachedBytes);
  if (text.find('\0') != std::string::npos) {
    throw Failure{kExitFailed, inputName(path) + " is not a text file: convert it first"};
  }
  return inputName(path) + ":\n" + text;
}

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
