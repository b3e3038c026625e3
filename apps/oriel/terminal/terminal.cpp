#include "terminal/terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

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
  for (const char* const name : {"LANG", "LC_CTYPE", "LC_ALL"}) {  // the last that is set counts
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
    if (c == 0x2028 || c == 0x2029) {  // separators of lines and paragraphs
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

ProgressBar::ProgressBar(std::string label, std::chrono::milliseconds quiet)
    : label_(std::move(label)), quiet_(quiet), enabled_(takesEscapes()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(uint64_t done, uint64_t total) {
  if (!enabled_ || total == 0 || std::chrono::steady_clock::now() - start_ < quiet_) {
    return;
  }
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int percent = static_cast<int>(share * 100);
  if (percent == shown_percent_) {
    return;
  }
  shown_percent_ = percent;
  const unsigned columns = terminalColumns();
  const unsigned taken = static_cast<unsigned>(label_.size()) + 8;
  const unsigned cells = columns > taken + 4 ? std::min(columns - taken, 40u) : 0;
  char number[16];
  std::snprintf(number, sizeof(number), " %3d%% ", percent);
  tell("\r\033[K" + label_ + number + dim(bar(share, cells)));
}

void ProgressBar::clear() {
  if (shown_percent_ >= 0) {
    tell("\r\033[K");
    shown_percent_ = -1;
  }
}

}  // namespace cli
