#include "models/download_progress.h"

#include <algorithm>
#include <utility>

#include "output.h"
#include "sizes.h"
#include "system.h"
#include "terminal/terminal.h"
#include "terminal/wrap.h"

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

}  // namespace cli
