#include "models/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#ifdef _WIN32
#include <io.h>
#include <share.h>
#else
#include <sys/file.h>
#include <unistd.h>
#endif

#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"

namespace cli {
namespace {

/// Section 4.2.2: fractions of the cube roots of the first 64 primes.
constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t rotated(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

uint32_t bigEndian(const unsigned char* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

}  // namespace

void Sha256::block(const unsigned char* data) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    w[i] = bigEndian(data + 4 * i);
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const uint32_t s1 = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const uint32_t s0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) {
    state_[i] += added[i];
  }
}

void Sha256::add(const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  while (bytes != 0) {
    const size_t held = bytes_ % 64;
    if (held == 0 && bytes >= 64) {
      block(at);
      at += 64;
      bytes -= 64;
      bytes_ += 64;
      continue;
    }
    const size_t taken = std::min(64 - held, bytes);
    std::memcpy(pending_.data() + held, at, taken);
    at += taken;
    bytes -= taken;
    bytes_ += taken;
    if (held + taken == 64) {
      block(pending_.data());
    }
  }
}

std::string Sha256::digest() {
  const uint64_t bits = 8 * bytes_;
  const unsigned char first = 0x80;
  add(&first, 1);
  const unsigned char zero = 0;
  while (bytes_ % 64 != 56) {
    add(&zero, 1);
  }
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) {
    length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  }
  add(length, 8);
  std::string text;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) {
      text += "0123456789abcdef"[(word >> shift) & 15];
    }
  }
  return text;
}

bool isSha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

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
  const Json json = tryJson(text);
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

namespace {

constexpr uint64_t kMostHeaderBytes = 1 << 30;
constexpr uint64_t kMostDims = 8;
constexpr uint64_t kLongestKey = 48;
constexpr uint32_t kGgufMagic = 0x46554747;
constexpr uint32_t kGgufVersion = 3;
constexpr uint32_t kGgufFloat = 6;
constexpr uint32_t kStringType = 8;
constexpr uint32_t kArrayType = 9;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

/// Saturates.
uint64_t sum(uint64_t a, uint64_t b) { return a > kUnlimited - b ? kUnlimited : a + b; }
uint64_t product(uint64_t a, uint64_t b) {
  return b != 0 && a > kUnlimited / b ? kUnlimited : a * b;
}

/// Size of a value by its type's number; 0: variable, or unknown.
uint64_t valueBytes(uint32_t type) {
  static constexpr uint8_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < sizeof(kBytes) ? kBytes[type] : 0;
}

/// Bytes of 256 values in a tensor type (GGML's number). Unknown types: the largest of any.
uint64_t bytesOf256(uint32_t type) {
  constexpr uint16_t kMost = 2048;
  static constexpr uint16_t kBytes[] = {1024, 512, 144, 160, 0,    0,    176,  192, 272, 288, 84,
                                        110,  144, 176, 210, 292,  66,   74,   98,  50,  144, 110,
                                        82,   136, 256, 512, 1024, 2048, 2048, 56,  512, 0,   0,
                                        0,    54,  66,  0,   0,    0,    136,  144, 36,  72};
  const bool known = type < sizeof(kBytes) / sizeof(kBytes[0]) && kBytes[type] != 0;
  return known ? kBytes[type] : kMost;
}

/// After ended() all numbers read as 0.
class Header {
 public:
  explicit Header(std::FILE* file) : file_(file) {}

  bool ended() const { return ended_; }
  bool sound() const { return sound_; }
  uint64_t at() const { return at_; }

  template <typename Number>
  Number read() {
    Number number = 0;
    ended_ = ended_ || std::fread(&number, 1, sizeof(number), file_) != sizeof(number);
    at_ += sizeof(number);
    return ended_ ? 0 : number;
  }
  void skip(uint64_t bytes) {
    sound_ = sound_ && bytes <= kMostHeaderBytes && at_ <= kMostHeaderBytes - bytes;
    for (char unused[4096]; sound_ && !ended_ && bytes != 0;) {
      const auto piece = static_cast<size_t>(std::min<uint64_t>(bytes, sizeof(unused)));
      ended_ = std::fread(unused, 1, piece, file_) != piece;
      bytes -= piece;
      at_ += piece;
    }
  }
  std::string text() {
    const auto bytes = read<uint64_t>();
    std::string text;
    if (bytes <= kLongestKey) {  // longer texts are not needed
      for (uint64_t i = 0; i < bytes; ++i) {
        text += read<char>();
      }
    } else {
      skip(bytes);
    }
    return text;
  }
  void expect(bool condition) { sound_ = sound_ && (condition || ended_); }
  bool goesOn() const { return sound_ && !ended_; }

 private:
  std::FILE* file_;
  uint64_t at_ = 0;
  bool ended_ = false;
  bool sound_ = true;
};

void skipValue(Header* header, uint32_t type) {
  if (type == kStringType) {
    (void)header->text();
  } else if (type == kArrayType) {
    const auto of = header->read<uint32_t>();
    const auto count = header->read<uint64_t>();
    header->expect(of == kStringType || valueBytes(of) != 0);
    for (uint64_t i = 0; of == kStringType && i < count && header->goesOn(); ++i) {
      (void)header->text();
    }
    header->skip(product(count, valueBytes(of)));
  } else {
    header->expect(valueBytes(type) != 0);
    header->skip(valueBytes(type));
  }
}

/// The largest possible end of a tensor, relative to the data.
uint64_t tensorEnd(Header* header) {
  (void)header->text();
  const auto dims = header->read<uint32_t>();
  header->expect(dims <= kMostDims);
  uint64_t values = 1;
  for (uint32_t i = 0; i < dims && header->goesOn(); ++i) {
    values = product(values, header->read<uint64_t>());
  }
  const uint64_t bytes = product(values / 256 + 1, bytesOf256(header->read<uint32_t>()));
  return sum(header->read<uint64_t>(), bytes);
}

}  // namespace

std::vector<std::pair<std::string, double>> ggufSampling(std::FILE* file) {
  const std::string prefix = "general.sampling.";
  std::vector<std::pair<std::string, double>> numbers;
  Header header(file);
  header.expect(header.read<uint32_t>() == kGgufMagic);
  const auto version = header.read<uint32_t>();
  header.expect(version == 2 || version == kGgufVersion);
  (void)header.read<uint64_t>();
  const auto keys = header.read<uint64_t>();
  for (uint64_t i = 0; i < keys && header.goesOn(); ++i) {
    const std::string name = header.text();
    const auto type = header.read<uint32_t>();
    const bool is_real = type == kGgufFloat;
    if (name.compare(0, prefix.size(), prefix) == 0 && valueBytes(type) == sizeof(uint32_t)) {
      const double value = is_real ? static_cast<double>(header.read<float>())
                                   : static_cast<double>(header.read<int32_t>());
      numbers.emplace_back(name.substr(prefix.size()), value);
    } else {
      skipValue(&header, type);
    }
  }
  return numbers;
}

std::optional<uint64_t> ggufBytes(std::FILE* file) {
  constexpr uint64_t kMostAlignment = 1 << 20;
  Header header(file);
  header.expect(header.read<uint32_t>() == kGgufMagic);
  header.expect(header.read<uint32_t>() == kGgufVersion);
  const auto tensors = header.read<uint64_t>();
  const auto keys = header.read<uint64_t>();
  uint64_t alignment = 32;
  for (uint64_t i = 0; i < keys && header.goesOn(); ++i) {
    const std::string name = header.text();
    const auto type = header.read<uint32_t>();
    if (name == "general.alignment" && valueBytes(type) == sizeof(uint32_t)) {
      alignment = header.read<uint32_t>();
      header.expect(alignment != 0 && alignment <= kMostAlignment);
    } else {
      skipValue(&header, type);
    }
  }
  uint64_t end = 0;
  for (uint64_t i = 0; i < tensors && header.goesOn(); ++i) {
    end = std::max(end, tensorEnd(&header));
  }
  header.expect(header.at() <= kMostHeaderBytes);
  if (!header.sound()) {
    return std::nullopt;
  }
  return header.ended() ? 0 : sum(sum(header.at(), alignment), sum(end, alignment));
}

}  // namespace cli
