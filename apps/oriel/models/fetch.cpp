#include "models/download.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include <oriel/oriel.hpp>

#include "model_handle.h"
#include "models/catalogue.h"
#include "options.h"
#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 256 * 1024;
constexpr char kMagic[] = "GGUF";
constexpr size_t kMagicBytes = 4;
/// Waiting time before a retry doubles up to this.
constexpr int kLongestWaitSeconds = 16;
/// Limit on restarts of a file.
constexpr int kMostBeginnings = 2;
/// The error if a server's answer to a range contradicts its other answers.
constexpr char kOtherLength[] = "says another length of the file than it has";

std::string exactly(uint64_t bytes) {
  return formatSize(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

bool isError(const HttpHead& head) { return head.status() >= 300; }

}  // namespace

std::string inspected(const std::string& path, std::string* missing) {
  char line[1024] = "";
  oriel::Options options;
  options.error_line = line;
  options.error_line_bytes = sizeof(line);
  Json info;
  const oriel_status status = described(&info, [&](char* text, size_t capacity, size_t* needed) {
    return oriel_file_describe(path.c_str(), &options, text, capacity, needed);
  });
  if (status != ORIEL_OK) {
    return terminalSafe(*line == '\0' ? oriel_status_text(status) : line);
  }
  if (info["runs"] == false) {
    *missing = terminalSafe(info["missing"][0].get<std::string>());
  }
  return "";
}

Fetch::Fetch(const Download& wanted)
    : wanted_(wanted),
      host_(hostOf(wanted.url)),
      part_(wanted.target),
      progress_(wanted.title, wanted.verbose) {}

Downloaded Fetch::run() {
  std::error_code unused;
  // The previous owner of the part has just finished it.
  if (fs::exists(fs::u8path(wanted_.target), unused)) {
    throw Failure{kExitFailed,
                  wanted_.target + " has just come to be there: pull again to compare"};
  }
  takeUp();
  uint32_t in_vain = 0;
  int anew = 0;
  uint64_t furthest = have();
  for (bool whole = isWhole(); !whole;) {
    const End end = attempt();
    whole = end == End::kWhole;
    if (end == End::kAnew && ++anew > kMostBeginnings) {
      failAnew();
    }
    if (end == End::kCut) {
      in_vain = have() > furthest ? 0 : in_vain + 1;
      furthest = std::max(furthest, have());
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

std::string Fetch::sum() const {
  return !wanted_.sha256.empty() ? wanted_.sha256 : part_.version().sha256;
}

/// True if another process could continue the part.
bool Fetch::isRecognizable() const {
  const FileVersion& version = part_.version();
  return part_.resumable() && version.url == wanted_.url && (version.named() || !sum().empty()) &&
         (version.bytes == 0 || part_.bytes() <= version.bytes);
}

/// Continues an earlier part if its notes are sufficient.
void Fetch::takeUp() {
  anew_ = part_.bytes() != 0 && !isRecognizable();
  if (have() == 0) {
    return;
  }
  part_.goOn();
  result_.resumed_from = have();
  progress_.say("going on at " + formatSize(have()));
}

void Fetch::stopped() const {
  const std::string kept = formatSize(have()) + " are kept, " + wanted_.again;
  throw Failure{kExitCancelled, have() == 0        ? ""
                                : isRecognizable() ? "stopped: " + kept + " goes on there"
                                                   : "stopped: " + whyAnew()};
}

/// The reason why another process cannot continue the part.
std::string Fetch::whyAnew() const {
  return (part_.resumable() ? host_ + " does not say which version of the file it has, so "
                            : wanted_.target + ".part is another user's or open to one, so ") +
         wanted_.again + " begins anew";
}

void Fetch::failCut() {
  if (ended_at_ != 0 && have() == ended_at_) {
    failAnew();
  }
  const std::string next =
      have() == 0        ? "check the network and the address, and try again"
      : isRecognizable() ? formatSize(have()) + " are kept, " + wanted_.again + " goes on there"
                         : whyAnew() + (part_.resumable() ? "; with --sha256 it goes on" : "");
  throw Failure{kExitFailed, cut_ + ": " + next};
}

void Fetch::failAnew() {
  if (why_ == kOtherLength) {
    (void)part_.discard();
  }
  throw Failure{kExitFailed,
                host_ + " " + why_ + ", time and again: try again later, or another address"};
}

Fetch::End Fetch::askAnew(const char* why) {
  why_ = why;
  anew_ = true;
  progress_.say(host_ + " " + why + ": from its beginning");
  return End::kAnew;
}

void Fetch::wait(uint32_t in_vain) {
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

Fetch::End Fetch::attempt() {
  Curl curl(wanted_.url, have(),
            "install it (Debian: apt install curl), or save " + shownUrl(wanted_.url) + " as " +
                wanted_.target);
  HttpHead head;
  std::optional<HttpBody> body;
  answer_ = {};
  const auto asked = DownloadProgress::Clock::now();
  std::vector<char> buffer(kBlock);
  for (long count = 0; (count = curl.read(buffer.data(), buffer.size())) != 0;) {
    if (interrupts() != 0) {
      stopped();
    }
    const size_t bytes = count > 0 ? static_cast<size_t>(count) : 0;
    const size_t taken = head.take({buffer.data(), bytes});
    if (head.broken() || (body && body->broken())) {
      cut_ = "the answer of " + host_ + " is not an HTTP response";
      failCut();
    }
    if (!head.complete()) {
      progress_.waitFor(host_, asked);
      continue;
    }
    if (!body) {
      if (isError(head)) {
        return refused(head.status());
      }
      if (!accept(head)) {
        return End::kAnew;
      }
      body.emplace(head.chunked());
    }
    take({buffer.data() + taken, body->take(buffer.data() + taken, bytes - taken)});
    progress_.show(answer_.fills ? part_.bytes() : 0, total());
  }
  CurlEnd end = curl.finish();
  if (end.code == 0 && body && !body->whole()) {
    end.code = CurlEnd::kPartOfFile;
  }
  return ended(body.has_value(), end);
}

/// False: restart from the beginning.
bool Fetch::accept(const HttpHead& head) {
  answer_.version = FileVersion::of(wanted_.url, head);
  if (head.status() == 206 && !goesOn(head)) {
    return false;
  }
  checkRoom(answer_.version.bytes);
  const uint64_t bytes = answer_.version.bytes;
  if (!answer_.fills && wanted_.expected_bytes != 0 && bytes != 0 &&
      bytes != wanted_.expected_bytes) {
    progress_.say("the file differs from the catalogue's: it has " + std::to_string(bytes) +
                  " bytes, not " + std::to_string(wanted_.expected_bytes));
  }
  return true;
}

bool Fetch::goesOn(const HttpHead& head) {
  if (head.firstByte() != have()) {
    askAnew("sends another part of the file than was asked for");
    return false;
  }
  if (have() == 0) {
    return true;
  }
  // A part from this process is trusted by its length; the whole file is inspected at the end.
  const FileVersion& before = part_.version();
  const bool known = filled_ && before.bytes != 0 && before.bytes == answer_.version.bytes;
  if (const char* const why = before.unlike(answer_.version, known || !sum().empty())) {
    askAnew(why);
    return false;
  }
  answer_.fills = true;
  return true;
}

void Fetch::checkRoom(uint64_t total) const {
  const fs::path folder = fs::u8path(wanted_.target).parent_path();
  std::error_code error;
  const fs::space_info space = fs::space(folder.empty() ? fs::path(".") : folder, error);
  const uint64_t needed = total - std::min(total, part_.bytes());
  if (!error && needed > space.available) {
    throw Failure{kExitFailed, wanted_.title + " takes " + exactly(needed) + ", and " +
                                   (folder.empty() ? "this folder" : folder.u8string()) + " has " +
                                   exactly(space.available) +
                                   " free: make room, or choose another place with --to"};
  }
}

/// The known size; 0: unknown.
uint64_t Fetch::total() const {
  return answer_.version.bytes != 0 || !answer_.fills ? answer_.version.bytes
                                                      : part_.version().bytes;
}

void Fetch::take(std::string_view bytes) {
  if (!answer_.fills) {
    answer_.first_bytes += bytes;
    if (answer_.first_bytes.size() < kMagicBytes) {
      return;
    }
    begin();
    bytes = answer_.first_bytes;
  }
  if (total() != 0 && part_.bytes() + bytes.size() > total()) {
    failTooLong(total(), "it had said");
  }
  part_.write(bytes.data(), bytes.size());
  filled_ = filled_ || !bytes.empty();
  if (total() == 0) {
    checkImplied();
  }
}

/// Runs each time the file has doubled, until its header is complete.
void Fetch::checkImplied() {
  if (implied_bytes_ == 0 && part_.bytes() >= look_at_) {
    look_at_ = 2 * part_.bytes();
    const std::optional<uint64_t> implied = part_.impliedBytes();
    if (!implied) {
      throw Failure{kExitFailed, "the file from " + host_ + " is not a valid GGUF file: " +
                                     part_.discard() + ", or another address"};
    }
    implied_bytes_ = *implied;
    checkRoom(implied_bytes_);
  }
  if (implied_bytes_ != 0 && part_.bytes() > implied_bytes_) {
    failTooLong(implied_bytes_, "the file has by its header");
  }
}

void Fetch::failTooLong(uint64_t most, const char* by) {
  throw Failure{kExitFailed, host_ + " sends more than the " + exactly(most) + " that " + by +
                                 ": " + part_.discard() + ", or another address"};
}

/// The file arrives from its beginning: it replaces the old part.
void Fetch::begin() {
  if (answer_.first_bytes.compare(0, kMagicBytes, kMagic) != 0) {
    failForeign();
  }
  if (have() != 0) {
    progress_.say(host_ + " sends whole files only: from the beginning");
  }
  part_.begin(answer_.version);
  implied_bytes_ = look_at_ = 0;
  anew_ = false;
  answer_.fills = true;
  result_.resumed_from = 0;
}

void Fetch::failForeign() {
  std::string begin = lowerCase(answer_.first_bytes.substr(0, 64));
  begin.erase(0, begin.find_first_not_of(" \t\r\n"));
  const bool page = begin.compare(0, 1, "<") == 0;
  if (have() != 0) {  // another host answered, e.g. a network that requires a login
    cut_ = "in place of the file a web page comes from " + host_;
    cut_ = page ? cut_ : "the file from " + host_ + " is not a GGUF file any more";
    failCut();
  }
  throw Failure{kExitFailed, shownUrl(wanted_.url) +
                                 (page ? " is a web page, no GGUF file: give the address of the "
                                         "file itself, the page's download link"
                                       : " is not a GGUF file: give the address of one")};
}

Fetch::End Fetch::ended(bool answered, const CurlEnd& end) {
  if (interrupts() != 0) {  // Ctrl-C may also have ended curl
    stopped();
  }
  if (end.code == 0 && answered) {
    if (!answer_.fills) {
      failForeign();
    }
    if (total() == 0 || part_.bytes() == total()) {
      return End::kWhole;
    }
  }
  if (end.code == 0 || (end.isCut() && answered)) {
    cut_ = "the connection to " + host_ + " broke" +
           (total() != 0 ? " after " + formatSize(have()) + " of " + formatSize(total()) : "");
    return End::kCut;
  }
  constexpr int kRedirectedTooOften = 47;  // see curl's manual
  if (end.code == kRedirectedTooOften) {
    throw Failure{kExitFailed, host_ + " redirects in a circle: check the address"};
  }
  cut_ = host_ + " cannot be reached" + (end.error.empty() ? "" : " (" + end.error + ")");
  if (end.isCut() && have() != 0) {
    return End::kCut;
  }
  failCut();
}

/// Busy servers may recover; other errors are permanent.
Fetch::End Fetch::refused(int status) {
  cut_ = host_ + " answers " + std::to_string(status);
  if (status == 416 && have() != 0) {
    ended_at_ = have();
    return askAnew(kOtherLength);
  }
  if (status == 408 || status == 429 || status >= 500) {
    return End::kCut;
  }
  const std::string shown = shownUrl(wanted_.url);
  const std::string place = fs::u8path(wanted_.target).parent_path().u8string();
  switch (status) {
    case 401:
    case 403:
      throw Failure{
          kExitFailed,
          host_ + " wants a login for " + shown + " (" + std::to_string(status) +
              "): set HF_TOKEN to a token for it, or get the file in a browser and put it into " +
              (place.empty() ? "this folder" : place)};
    case 404:
    case 410:
      throw Failure{kExitFailed, host_ + " has no " + shown + " (" + std::to_string(status) +
                                     "): see the files on the model's page"};
    default:
      throw Failure{kExitFailed, cut_ + " to " + shown + ": check the address"};
  }
}

void Fetch::check() {
  result_.bytes = part_.bytes();
  try {
    result_.sha256 = part_.settle();
  } catch (const Failure& failure) {
    if (failure.exit_code == kExitCancelled) {
      stopped();
    }
    throw;
  }
  const std::string want = sum();
  if (!want.empty() && want != result_.sha256) {
    throw Failure{kExitFailed, "what came from " + host_ +
                                   " is damaged or another file: its SHA-256 is " + result_.sha256 +
                                   ", not " + want + "; " + part_.discard()};
  }
  result_.checked_by = !wanted_.sha256.empty() ? CheckedBy::kUser
                       : !want.empty()         ? CheckedBy::kServer
                                               : CheckedBy::kNothing;
  if (wanted_.is_part) {
    return;
  }
  const std::string open_path = part_.openPath();
  std::string why_not = inspected(open_path, &result_.missing);
  if (why_not.compare(0, open_path.size(), open_path) == 0) {
    why_not.replace(0, open_path.size(), part_.path());
  }
  if (!why_not.empty()) {
    throw Failure{kExitFailed, "the download is not a valid GGUF file (" + shownUrl(wanted_.url) +
                                   ", " + why_not + "): " + part_.discard() +
                                   ", or another address"};
  }
}

}  // namespace cli
