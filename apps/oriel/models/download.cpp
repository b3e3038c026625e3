#include "models/download.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "models/catalogue.h"
#include "options.h"
#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
/// Period over which the rate is averaged.
constexpr double kRateSeconds = 3;
/// After this long without an answer, shows that it is waiting.
constexpr auto kSilence = std::chrono::seconds(1);

}  // namespace

DownloadProgress::DownloadProgress(std::string title, bool verbose)
    : title_(std::move(title)),
      draws_(takesEscapes()),
      tells_(!draws_ && (verbose || isTerminal(Stream::kErr))) {}

DownloadProgress::~DownloadProgress() { clear(); }

void DownloadProgress::measure(uint64_t done, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - measured_at_).count();
  if (!measured_ || done < bytes_at_) {
    rate_ = 0;
  } else if (seconds < 0.05) {
    return;
  } else {
    const double current = static_cast<double>(done - bytes_at_) / seconds;
    const double weight = rate_ == 0 ? 1 : std::min(1.0, seconds / kRateSeconds);
    rate_ += weight * (current - rate_);
  }
  measured_ = true;
  bytes_at_ = done;
  measured_at_ = now;
}

void DownloadProgress::show(uint64_t done, uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (tells_ && total != 0 && 10 * done / total != last_tenth_) {
    last_tenth_ = 10 * done / total;
    tell("oriel: " + title_ + ": " + formatSize(done) + " of " + formatSize(total) + "\n");
  }
  if (!draws_ || (shown_ && now - shown_at_ < kRedraw)) {
    return;
  }
  measure(done, now);
  shown_ = true;
  shown_at_ = now;
  tell("\r\033[K" + line(done, total));
}

void DownloadProgress::waitFor(const std::string& host, Clock::time_point asked) {
  if (Clock::now() - asked < kSilence || std::exchange(waiting_, true)) {
    return;
  }
  const std::string text = "waiting for " + host;
  if (tells_) {
    tell("oriel: " + title_ + ": " + text + "\n");
  }
  if (draws_) {
    shown_ = true;
    tell("\r\033[K" + (columnsOf(text) < noteColumns() ? text : "waiting"));
  }
}

/// Shows as much as fits.
std::string DownloadProgress::line(uint64_t done, uint64_t total) const {
  const size_t columns = noteColumns() - 1;
  const std::string bytes =
      total != 0 ? formatSize(done) + " of " + formatSize(total) : formatSize(done);
  const std::string rate = rate_ > 0 ? "  " + formatSize(static_cast<uint64_t>(rate_)) + "/s" : "";
  const double seconds = rate_ > 0 && total > done ? static_cast<double>(total - done) / rate_ : 0;
  const std::string left =
      seconds > 0 ? "  " + durationText(static_cast<uint64_t>(std::min(seconds + 1, 1e6))) + " left"
                  : "";
  const double share =
      total != 0 ? static_cast<double>(std::min(done, total)) / static_cast<double>(total) : 0;
  const std::string percent = total != 0 ? formatted("%3d%% ", static_cast<int>(100 * share)) : "";
  const std::string whole = title_ + " " + percent;
  const size_t taken = columnsOf(whole + bytes + rate + left);
  if (total != 0 && columns > taken + 8) {
    const size_t cells = std::min<size_t>(columns - taken - 2, 24);
    const std::string filled = bar(share, static_cast<unsigned>(cells));
    return whole + dim(filled) + std::string(cells - std::min(cells, columnsOf(filled)) + 2, ' ') +
           bytes + rate + left;
  }
  const std::string numbers = percent + bytes;
  const std::string all = numbers + rate + left;
  const std::string timed = numbers + left;
  const std::string titled = title_ + " " + all;
  for (const std::string& text : {titled, all, timed, numbers, percent}) {
    if (columnsOf(text) <= columns) {
      return text;
    }
  }
  return "";
}

void DownloadProgress::say(const std::string& text) {
  clear();
  if (draws_ || tells_) {
    tellText(dim(terminalSafe(text)) + "\n");
  }
}

void DownloadProgress::clear() {
  if (shown_) {
    tell("\r\033[K");
    shown_ = false;
  }
}

namespace {

namespace fs = std::filesystem;

uint64_t bytesOf(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = fs::file_size(fs::u8path(path), error);
  return error ? 0 : bytes;
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

/// The server's facts about the file, without downloading it.
struct Told {
  FileVersion version;
  std::string why_not;  ///< the reason; empty: the server answered
};

Told askedFor(const Download& wanted) {
  const std::string host = hostOf(wanted.url);
  DownloadProgress progress(wanted.title, wanted.verbose);
  Curl curl(wanted.url, 0, "install it (Debian: apt install curl), or give --sha256");
  HttpHead head;
  char buffer[4096];
  const auto asked = DownloadProgress::Clock::now();
  for (long count = 0; !head.complete() && (count = curl.read(buffer, sizeof(buffer))) != 0;) {
    if (interrupts() != 0) {
      throw Failure{kExitCancelled, ""};
    }
    (void)head.take({buffer, count > 0 ? static_cast<size_t>(count) : 0});
    if (head.broken()) {
      return {{}, "the answer of " + host + " is not an HTTP response"};
    }
    progress.waitFor(host, asked);
  }
  if (!head.complete()) {
    const CurlEnd end = curl.finish();
    if (interrupts() != 0) {  // Ctrl-C may also have ended curl
      throw Failure{kExitCancelled, ""};
    }
    return {{}, host + " cannot be reached" + (end.error.empty() ? "" : ", " + end.error)};
  }
  if (head.status() != 200) {
    return {{}, host + " answers " + std::to_string(head.status())};
  }
  return {FileVersion::of(wanted.url, head), ""};
}

/// Why the existing file differs from the wanted one; empty: it may be the same.
std::string otherThan(const Download& wanted, Downloaded* there) {
  const auto unlike = [&](const std::string& sum, CheckedBy who) {
    there->sha256 = sumOf(wanted.target);
    there->checked_by = who;
    return there->sha256 == sum ? "" : "its SHA-256 is " + there->sha256 + ", not " + sum;
  };
  if (!wanted.sha256.empty()) {
    return unlike(wanted.sha256, CheckedBy::kUser);
  }
  if (wanted.expected_bytes != 0 && there->bytes == wanted.expected_bytes) {
    return "";
  }
  const Told told = askedFor(wanted);
  if (!told.why_not.empty()) {
    return told.why_not;
  }
  if (told.version.bytes == 0 && told.version.sha256.empty()) {
    return hostOf(wanted.url) + " does not say how long the file is";
  }
  if (told.version.bytes != 0 && told.version.bytes != there->bytes) {
    return grouped(there->bytes) + " bytes, not " + grouped(told.version.bytes);
  }
  return told.version.sha256.empty() ? "" : unlike(told.version.sha256, CheckedBy::kServer);
}

/// The file already exists: returns it, or throws Failure if it is another file.
Downloaded alreadyThere(const Download& wanted) {
  Downloaded result;
  result.was_there = true;
  result.bytes = bytesOf(wanted.target);
  const std::string other = otherThan(wanted, &result);
  if (!other.empty()) {
    throw Failure{kExitFailed,
                  wanted.target + " exists and may be another file (" + other +
                      "): move it, or name another place with --to" +
                      (wanted.sha256.empty() ? ", or its checksum with --sha256" : "")};
  }
  if (!wanted.is_part && !inspected(wanted.target, &result.missing).empty()) {
    throw Failure{
        kExitFailed,
        wanted.target + " exists and is damaged: move it, or name another place with --to"};
  }
  return result;
}

}  // namespace

Downloaded download(const Download& wanted) {
  catchTermination();
  std::error_code error;
  const fs::file_status there = fs::status(fs::u8path(wanted.target), error);
  if (fs::is_regular_file(there)) {
    return alreadyThere(wanted);
  }
  // Includes dangling links.
  if (fs::exists(there) || fs::is_symlink(fs::symlink_status(fs::u8path(wanted.target), error))) {
    throw Failure{kExitFailed, wanted.target + " is no file: name another place with --to"};
  }
  return Fetch(wanted).run();
}

namespace {

/// Longest chunk size line, with extensions.
constexpr size_t kMostLineBytes = 4096;
constexpr size_t kMostDigits = 16;

/// False: not a size.
bool sizeOf(const std::string& line, uint64_t* size) {
  const size_t digits = std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
  const bool good = digits != 0 && digits <= kMostDigits &&
                    (digits == line.size() || line[digits] == ';' || line[digits] == ' ');
  *size = good ? std::strtoull(line.substr(0, digits).c_str(), nullptr, 16) : 0;
  return good;
}

}  // namespace

size_t HttpBody::take(char* bytes, size_t count) {
  if (state_ == State::kPlain) {
    return count;
  }
  size_t kept = 0;
  for (size_t at = 0; at < count && !whole() && !broken();) {
    if (state_ != State::kData) {
      frame(bytes[at++]);
      continue;
    }
    const auto piece = static_cast<size_t>(std::min<uint64_t>(left_, count - at));
    std::memmove(bytes + kept, bytes + at, piece);
    kept += piece;
    at += piece;
    left_ -= piece;
    state_ = left_ != 0 ? State::kData : State::kDataEnd;
  }
  return kept;
}

void HttpBody::frame(char c) {
  if (c != '\n') {
    line_ += c;
    state_ = line_.size() > kMostLineBytes ? State::kBroken : state_;
    return;
  }
  if (!line_.empty() && line_.back() == '\r') {
    line_.pop_back();
  }
  if (state_ == State::kDataEnd) {
    state_ = line_.empty() ? State::kSize : State::kBroken;
  } else if (!sizeOf(line_, &left_)) {
    state_ = State::kBroken;
  } else {
    state_ = left_ != 0 ? State::kData : State::kEnded;
  }
  line_.clear();
}

namespace {

/// Limit for all heads together; servers limit each to 16 KiB.
constexpr size_t kMostBytes = 1 << 20;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<uint64_t> number(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), nullptr, 10);
  return errno == 0 ? std::optional<uint64_t>(value) : std::nullopt;
}

}  // namespace

size_t HttpHead::take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && !complete_ && !broken_) {
    const char c = bytes[taken++];
    broken_ = ++bytes_ > kMostBytes;
    if (c != '\n') {
      pending_ += c;
      continue;
    }
    if (pending_.empty() || pending_ == "\r") {
      endHead();
    } else {
      line(trimmed(pending_));
    }
    pending_.clear();
  }
  return taken;
}

void HttpHead::line(std::string_view text) {
  if (status_ == 0) {
    const size_t space = text.find(' ');
    status_ = space == std::string_view::npos || text.substr(0, 5) != "HTTP/"
                  ? 0
                  : std::atoi(std::string(text.substr(space)).c_str());
    broken_ = status_ < 100 || status_ > 999;
    return;
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    fields_[lowerCase(std::string(text.substr(0, colon)))] = trimmed(text.substr(colon + 1));
  }
}

/// After redirects that curl follows, and after provisional answers, another head follows.
void HttpHead::endHead() {
  std::string sum = field("x-linked-etag");
  if (sum.size() > 2 && sum.front() == '"' && sum.back() == '"') {
    sum = sum.substr(1, sum.size() - 2);
  }
  if (!isSha256(sum)) {
    sum = field("x-checksum-sha256");
  }
  if (isSha256(sum)) {
    sha256_ = lowerCase(sum);
  }
  const bool goes_on =
      status_ < 200 || (status_ < 400 && status_ >= 300 && !field("location").empty());
  if (!goes_on) {
    complete_ = true;
    return;
  }
  fields_.clear();
  status_ = 0;
}

std::string HttpHead::field(const std::string& name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() ? "" : found->second;
}

bool HttpHead::chunked() const {
  return lowerCase(field("transfer-encoding")).find("chunked") != std::string::npos;
}

std::optional<uint64_t> HttpHead::fileBytes() const {
  if (status_ == 206) {
    const std::string range = field("content-range");
    const size_t slash = range.find('/');
    return slash == std::string::npos ? std::nullopt : number(range.substr(slash + 1));
  }
  return chunked() ? std::nullopt : number(field("content-length"));
}

uint64_t HttpHead::firstByte() const {
  const std::string range = field("content-range");
  const std::string unit = "bytes ";
  if (status_ != 206 || range.compare(0, unit.size(), unit) != 0) {
    return 0;
  }
  return number(range.substr(unit.size(), range.find('-') - unit.size())).value_or(0);
}

}  // namespace cli
