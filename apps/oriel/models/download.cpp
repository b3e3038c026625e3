#include "models/download.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <oriel/oriel.h>

#include "failure.h"
#include "models/curl.h"
#include "models/download_progress.h"
#include "models/http_head.h"
#include "models/part_file.h"
#include "output.h"
#include "sizes.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "validators.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 256 * 1024;
constexpr char kMagic[] = "GGUF";
constexpr size_t kMagicBytes = 4;
/// Waits before another attempt double up to so many.
constexpr int kLongestWaitSeconds = 16;
/// A part is given up for a beginning at most so often.
constexpr int kMostBeginnings = 2;

std::string hostOf(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  return url.substr(begin, url.find_first_of("/?#", begin) - begin);
}

uint64_t bytesOf(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(fs::u8path(path), error);
  return error ? 0 : bytes;
}

std::string exactly(uint64_t bytes) {
  return formatSize(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

std::string sumOf(const std::string& path) {
  Sha256 sum;
  std::vector<char> buffer(1 << 20);
  std::FILE* const file = openFile(path, "rb");
  if (file == nullptr) {
    throw Failure{kExitFailed, path + " cannot be read: check its permissions"};
  }
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), file)) != 0;) {
    sum.add(buffer.data(), count);
    if (interrupts() != 0) {
      std::fclose(file);
      throw Failure{kExitCancelled, ""};
    }
  }
  std::fclose(file);
  return sum.digest();
}

void keepLine(oriel_log_level level, const char* message, void* user) {
  if (level == ORIEL_LOG_ERROR) {
    *static_cast<std::string*>(user) = message;
  }
}

/// Why the file is no model; empty: it is one. `missing`: why this build cannot run it.
std::string inspected(const std::string& path, std::string* missing) {
  std::string line;
  oriel_options options = {};
  options.struct_size = sizeof(options);
  options.log = keepLine;
  options.log_user = &line;
  oriel_file_info info = {};
  info.struct_size = sizeof(info);
  const oriel_status status = oriel_inspect(path.c_str(), &options, &info);
  if (status != ORIEL_OK) {
    return line.empty() ? oriel_status_text(status) : line;
  }
  if (info.runs == 0 && info.missing_count != 0) {
    *missing = info.missing[0];
  }
  return "";
}

class Fetch {
 public:
  explicit Fetch(const Download& wanted)
      : wanted_(wanted), part_(wanted.target), progress_(wanted.title, wanted.verbose) {}

  Downloaded run() {
    std::error_code unused;
    if (fs::exists(fs::u8path(wanted_.target),
                   unused)) {  // whoever had the part has just put it there
      throw Failure{kExitFailed,
                    wanted_.target + " has just come to be there: pull again to compare"};
    }
    result_.resumed_from = takeUp();
    uint32_t in_vain = 0;
    int anew = 0;
    for (bool whole = isWhole(); !whole;) {
      const uint64_t before = part_.bytes();
      const End end = attempt();
      whole = end == End::kWhole;
      if (end == End::kAnew && ++anew > kMostBeginnings) {
        failContradiction();
      }
      if (end == End::kCut) {
        in_vain = part_.bytes() > before ? 0 : in_vain + 1;
        if (in_vain > wanted_.retries) {
          failCut();
        }
        wait(in_vain);
      }
    }
    progress_.clear();
    check();
    part_.place();
    return result_;
  }

 private:
  enum class End { kWhole, kCut, kAnew };

  bool isWhole() const { return part_.bytes() != 0 && part_.bytes() == part_.version().bytes; }

  std::string sum() const {
    return !wanted_.sha256.empty() ? wanted_.sha256 : part_.version().sha256;
  }

  /// What an earlier attempt left, if it says enough of itself.
  uint64_t takeUp() {
    if (part_.bytes() == 0) {
      return 0;
    }
    const FileVersion& version = part_.version();
    const bool known =
        version.url == wanted_.url &&
        (!version.etag.empty() || !version.last_modified.empty() || !sum().empty()) &&
        (version.bytes == 0 || part_.bytes() <= version.bytes);
    if (!known) {
      part_.begin({});
      return 0;
    }
    stoppable([&] { part_.goOn(); });
    progress_.say("going on at " + formatSize(part_.bytes()));
    return part_.bytes();
  }

  /// Ctrl-C says what is kept.
  template <typename Work>
  void stoppable(const Work& work) const {
    try {
      work();
    } catch (const Failure& failure) {
      if (failure.exit_code == kExitCancelled) {
        stopped();
      }
      throw;
    }
  }

  [[noreturn]] void stopped() const {
    const uint64_t bytes = part_.bytes();
    throw Failure{kExitCancelled, bytes == 0 ? ""
                                             : "stopped: " + formatSize(bytes) + " are kept, `" +
                                                   wanted_.again + "` goes on there"};
  }

  [[noreturn]] void failCut() const {
    const std::string kept =
        part_.bytes() != 0
            ? formatSize(part_.bytes()) + " are kept, `" + wanted_.again + "` goes on there"
            : "check the network and the address, and try again";
    throw Failure{kExitFailed, cut_ + ": " + kept};
  }

  [[noreturn]] void failContradiction() {
    part_.remove();
    throw Failure{kExitFailed, hostOf(shownUrl(wanted_.url)) +
                                   " says another length of the file than it has: try again later, "
                                   "or another address"};
  }

  void wait(uint32_t in_vain) {
    progress_.pause();
    if (in_vain == 0) {
      return;
    }
    const int seconds = std::min(1 << std::min(in_vain - 1, 10u), kLongestWaitSeconds);
    progress_.say(cut_ + "; trying again");
    for (int i = 0; i < 20 * seconds; ++i) {
      if (interrupts() != 0) {
        stopped();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  End attempt() {
    Curl curl(wanted_.url, part_.bytes(),
              "install it (Debian: apt install curl), or save " + shownUrl(wanted_.url) + " as " +
                  wanted_.target);
    HttpHead head;
    magic_.clear();
    std::vector<char> buffer(kBlock);
    bool begun = false;
    for (long count = 0; (count = curl.read(buffer.data(), buffer.size())) != 0;) {
      if (interrupts() != 0) {
        stopped();
      }
      std::string_view bytes(buffer.data(), count > 0 ? static_cast<size_t>(count) : 0);
      bytes.remove_prefix(head.take(bytes));
      if (head.complete() && !begun) {
        begun = true;
        if (!accept(head)) {
          return End::kAnew;
        }
      }
      if (begun && !bytes.empty() && !isError(head)) {
        take(bytes);
      }
      if (begun && !isError(head)) {
        progress_.show(part_.bytes(), part_.version().bytes);
      }
    }
    return ended(head, curl.finish());
  }

  static bool isError(const HttpHead& head) { return head.status() >= 300; }

  /// False: the file is to be asked for from its beginning.
  bool accept(const HttpHead& head) {
    if (isError(head)) {
      return head.status() != 416 || part_.bytes() == 0 || (part_.begin({}), false);
    }
    const FileVersion version = FileVersion::of(wanted_.url, head);
    if (part_.bytes() != 0) {
      const bool goes_on = head.status() == 206 && head.firstByte() == part_.bytes() &&
                           part_.version().same(version, !sum().empty());
      if (!goes_on) {
        progress_.say(head.status() == 206
                          ? "the file was changed on the server: from its beginning"
                          : "the server sends whole files only: from the beginning");
        result_.resumed_from = 0;
        if (head.status() == 206) {
          part_.begin({});
          return false;
        }
      } else {
        checkRoom(version.bytes);
        return true;
      }
    }
    checkRoom(version.bytes);
    if (wanted_.expected_bytes != 0 && version.bytes != 0 &&
        version.bytes != wanted_.expected_bytes) {
      progress_.say("the file is not the one that the catalogue knows: it has " +
                    std::to_string(version.bytes) + " bytes, not " +
                    std::to_string(wanted_.expected_bytes));
    }
    part_.begin(version);
    return true;
  }

  void checkRoom(uint64_t total) const {
    const fs::path folder = fs::u8path(wanted_.target).parent_path();
    std::error_code error;
    const fs::space_info space = fs::space(folder.empty() ? fs::path(".") : folder, error);
    const uint64_t needed = total - std::min(total, part_.bytes());
    if (!error && needed > space.available) {
      throw Failure{kExitFailed, wanted_.title + " takes " + exactly(needed) + ", and " +
                                     (folder.empty() ? "this folder" : folder.u8string()) +
                                     " has " + exactly(space.available) +
                                     " free: make room, or choose another place with --to"};
    }
  }

  void take(std::string_view bytes) {
    const uint64_t total = part_.version().bytes;
    if (part_.bytes() + magic_.size() < kMagicBytes) {
      magic_ += bytes;
      if (magic_.size() < kMagicBytes) {
        return;
      }
      bytes = magic_;
      if (bytes.substr(0, kMagicBytes) != kMagic) {
        failForeign();
      }
    }
    if (total != 0 && part_.bytes() + bytes.size() > total) {
      part_.remove();
      throw Failure{kExitFailed, hostOf(wanted_.url) + " sends more than the " + exactly(total) +
                                     " it had said: try again, or another address"};
    }
    part_.write(bytes.data(), bytes.size());
  }

  [[noreturn]] void failForeign() {
    std::string begin = lowerCase(magic_.substr(0, 64));
    begin.erase(0, begin.find_first_not_of(" \t\r\n"));
    const bool page = begin.compare(0, 1, "<") == 0;
    part_.remove();
    throw Failure{kExitFailed, shownUrl(wanted_.url) +
                                   (page ? " is a web page, no GGUF file: give the address of the "
                                           "file itself, the page's download link"
                                         : " is no GGUF file: give the address of one")};
  }

  End ended(const HttpHead& head, const CurlEnd& end) {
    if (interrupts() != 0) {  // which may have ended curl, too
      stopped();
    }
    if (head.complete() && isError(head)) {
      return refused(head.status());
    }
    const uint64_t total = part_.version().bytes;
    if (end.code == 0 && head.complete() && (total == 0 || part_.bytes() == total)) {
      if (part_.bytes() < kMagicBytes) {
        failForeign();
      }
      return End::kWhole;
    }
    const std::string host = hostOf(shownUrl(wanted_.url));
    if (end.code == 0 || (end.isCut() && head.complete())) {
      cut_ = "the connection to " + host + " broke" +
             (total != 0 ? " after " + formatSize(part_.bytes()) + " of " + formatSize(total) : "");
      return End::kCut;
    }
    cut_ = host + " cannot be reached" + (end.error.empty() ? "" : " (" + end.error + ")");
    if (end.isCut() && part_.bytes() != 0) {
      return End::kCut;
    }
    failCut();
  }

  /// Servers that are busy may not be so later; anything else stays as it is.
  End refused(int status) {
    const std::string host = hostOf(shownUrl(wanted_.url));
    cut_ = host + " answers " + std::to_string(status);
    if (status == 408 || status == 429 || status >= 500) {
      return End::kCut;
    }
    const std::string shown = shownUrl(wanted_.url);
    const std::string place = fs::u8path(wanted_.target).parent_path().u8string();
    switch (status) {
      case 401:
      case 403:
        throw Failure{kExitFailed, host + " wants a login for " + shown + " (" +
                                       std::to_string(status) +
                                       "): get the file in a browser, and put it into " +
                                       (place.empty() ? "this folder" : place)};
      case 404:
      case 410:
        throw Failure{kExitFailed, host + " has no " + shown + " (" + std::to_string(status) +
                                       "): look at the model's page for what it has"};
      default:
        throw Failure{kExitFailed, cut_ + " to " + shown + ": check the address"};
    }
  }

  void check() {
    result_.bytes = part_.bytes();
    result_.sha256 = part_.sha256();
    const std::string want = sum();
    if (!want.empty() && want != result_.sha256) {
      part_.remove();
      throw Failure{kExitFailed, "what came from " + hostOf(shownUrl(wanted_.url)) +
                                     " is damaged or another file: its SHA-256 is " +
                                     result_.sha256 + ", not " + want + "; try again"};
    }
    result_.checked_by = !wanted_.sha256.empty() ? CheckedBy::kUser
                         : !want.empty()         ? CheckedBy::kServer
                                                 : CheckedBy::kNothing;
    part_.settle();
    const std::string why_not = inspected(part_.path(), &result_.missing);
    if (!why_not.empty()) {
      part_.remove();
      throw Failure{kExitFailed, "what came is no sound GGUF file: " + why_not + " (" +
                                     shownUrl(wanted_.url) + ")"};
    }
  }

  const Download& wanted_;
  PartFile part_;
  DownloadProgress progress_;
  Downloaded result_;
  std::string magic_;  ///< the file's first bytes, until there are enough
  std::string cut_;    ///< what happened
};

/// What the server says of the file, without getting it. Nothing: it cannot be asked.
std::optional<FileVersion> askedFor(const Download& wanted) {
  Curl curl(wanted.url, 0, "install it (Debian: apt install curl)");
  HttpHead head;
  std::vector<char> buffer(kBlock);
  for (long count = 0;
       !head.complete() && (count = curl.read(buffer.data(), buffer.size())) != 0;) {
    if (interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
    (void)head.take({buffer.data(), count > 0 ? static_cast<size_t>(count) : 0});
  }
  return head.complete() && head.status() == 200 ? std::optional(FileVersion::of(wanted.url, head))
                                                 : std::nullopt;
}

/// Of a file that is there already: it is the one that is wanted. Throws Failure where it is not.
Downloaded alreadyThere(const Download& wanted) {
  Downloaded result;
  result.was_there = true;
  result.bytes = bytesOf(wanted.target);
  const auto is = [&](const std::string& sum, CheckedBy who) {
    result.sha256 = sumOf(wanted.target);
    result.checked_by = who;
    return result.sha256 == sum;
  };
  bool same = false;
  if (!wanted.sha256.empty()) {
    same = is(wanted.sha256, CheckedBy::kUser);
  } else if (wanted.expected_bytes != 0 && result.bytes == wanted.expected_bytes) {
    same = true;
  } else if (const auto version = askedFor(wanted); version && version->bytes == result.bytes) {
    same = version->sha256.empty() || is(version->sha256, CheckedBy::kServer);
  }
  const std::string why_not = same ? inspected(wanted.target, &result.missing) : "";
  if (!same || !why_not.empty()) {
    throw Failure{kExitFailed,
                  wanted.target + " is there already, and " +
                      (why_not.empty() ? "could not be told to be the same file" : "is damaged") +
                      ": move it away, or name another place with --to"};
  }
  return result;
}

}  // namespace

std::string shownUrl(const std::string& url) {
  const size_t begin = url.find("://");
  if (begin == std::string::npos) {
    return url;
  }
  const size_t end = std::min(url.find_first_of("/?#", begin + 3), url.size());
  const size_t at = url.substr(0, end).rfind('@');
  return at == std::string::npos ? url : url.substr(0, begin + 3) + url.substr(at + 1);
}

Downloaded download(const Download& wanted) {
  catchInterrupts();
  std::error_code error;
  const fs::file_status there = fs::status(fs::u8path(wanted.target), error);
  if (fs::is_regular_file(there)) {
    return alreadyThere(wanted);
  }
  // A link that leads nowhere, too.
  if (fs::exists(there) || fs::is_symlink(fs::symlink_status(fs::u8path(wanted.target), error))) {
    throw Failure{kExitFailed, wanted.target + " is no file: name another place with --to"};
  }
  return Fetch(wanted).run();
}

}  // namespace cli
