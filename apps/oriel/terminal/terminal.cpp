#include "terminal/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sizes.h"
#include "terminal/characters.h"
#include "terminal/shown.h"

namespace cli {
namespace {

bool isDumb() { return variable("TERM") == "dumb"; }

std::string styled(const char* code, const std::string& text) {
  return takesStyles(Stream::kErr) ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

}  // namespace

bool takesEscapes() { return isTerminal(Stream::kErr) && !isDumb(); }

bool takesStyles(Stream stream) {
  return isTerminal(stream) && !isDumb() && variable("NO_COLOR").empty();
}

bool drawsBlocks() {
  std::string locale;
#ifndef _WIN32
  for (const char* const name : {"LANG", "LC_CTYPE", "LC_ALL"}) {  // in ascending precedence
    const std::string value = variable(name);
    locale = value.empty() ? locale : value;
  }
#endif
  const auto says = [&](const char* name) { return locale.find(name) != std::string::npos; };
  const bool unicode =
      locale.empty() || says("UTF-8") || says("utf-8") || says("UTF8") || says("utf8");
  return unicode && !isDumb();
}

void tell(std::string_view text) noexcept {
  static const bool shown = isTerminal(Stream::kErr);
  thread_local ShownBefore before;
  if (shown) {
    (void)writeShown(text, stderr, &before);
  } else {
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  std::fflush(stderr);
}

std::string dim(const std::string& text) { return styled("2", text); }

std::string bold(const std::string& text) { return styled("1", text); }

std::string bar(double share, unsigned columns) {
  if (!drawsBlocks()) {
    return {};
  }
  static const char* const kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::clamp(share, 0.0, 1.0);
  auto eighths = static_cast<unsigned>(std::lround(clamped * columns * 8));
  if (clamped > 0 && eighths == 0) {
    eighths = 1;
  }
  std::string text;
  for (unsigned i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  return text + kEighths[eighths % 8];
}

std::string terminalSafe(std::string_view text) {
  std::u32string safe;
  safe.reserve(text.size());
  for (const char32_t c : charactersOf(text)) {
    if (c == 0x2028 || c == 0x2029) {  // line and paragraph separators
      safe += U' ';
    } else if (c == '\n' || c == '\t' || (c >= 0x20 && (c < 0x7F || c >= 0xA0))) {
      safe += c;
    }
  }
  return utf8Of(safe);
}

std::string oneLine(std::string_view text) {
  std::string line = terminalSafe(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

namespace {

/// "  120 of 1,500 tokens  45 tokens/s  0:30 left", as far as known.
std::string amountText(ProgressUnit unit, uint64_t done, uint64_t total, double seconds) {
  const bool bytes = unit == ProgressUnit::kBytes;
  const std::string name = bytes ? "" : unit == ProgressUnit::kTokens ? " tokens" : " lines";
  const auto amount = [&](uint64_t count) { return bytes ? formatSize(count) : grouped(count); };
  std::string text;
  if (unit != ProgressUnit::kShare) {
    text = "  " + amount(done) + (total != 0 ? " of " + amount(total) : "") + name;
  }
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  if (seconds < 1 || rate <= 0) {
    return text;
  }
  if (unit != ProgressUnit::kShare) {
    text += "  " + amount(static_cast<uint64_t>(rate)) + name + "/s";
  }
  const double left = total > done ? static_cast<double>(total - done) / rate : 0;
  return total == 0
             ? text
             : text + "  " + durationText(static_cast<uint64_t>(std::min(left + 1, 1e6))) + " left";
}

}  // namespace

ProgressBar::ProgressBar(std::string label, std::chrono::milliseconds quiet, ProgressUnit unit)
    : label_(std::move(label)), unit_(unit), quiet_(quiet), enabled_(takesEscapes()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(uint64_t done, uint64_t total) {
  constexpr std::chrono::milliseconds kBetween(100);
  const auto now = std::chrono::steady_clock::now();
  const auto took = now - start_;
  if (!enabled_ || took < quiet_ || (shown_ && now - shown_at_ < kBetween && done < total)) {
    return;
  }
  shown_ = true;
  shown_at_ = now;
  const double share =
      total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  char number[16] = "";
  if (total != 0) {
    std::snprintf(number, sizeof(number), " %3d%%", static_cast<int>(share * 100));
  }
  const size_t columns = terminalColumns();
  const std::string head = label_ + number;
  std::string amount = amountText(unit_, done, total, std::chrono::duration<double>(took).count());
  while (!amount.empty() && head.size() + amount.size() >= columns) {
    amount.erase(amount.rfind("  "));
  }
  constexpr size_t kMostCells = 24;
  constexpr size_t kLeastCells = 8;
  const size_t room = columns - std::min(columns, head.size() + amount.size() + 2);
  const size_t cells = total == 0 || room < kLeastCells ? 0 : std::min(room, kMostCells);
  tell("\r\033[K" + head + " " + dim(bar(share, static_cast<unsigned>(cells))) + amount);
}

void ProgressBar::clear() {
  if (shown_) {
    tell("\r\033[K");
    shown_ = false;
  }
}

}  // namespace cli
