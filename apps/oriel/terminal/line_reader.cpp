#include "terminal/line_editor.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "output.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/reply_view.h"
#include "terminal/terminal.h"

namespace cli {
namespace {

constexpr char kEscape = '\033';
constexpr std::string_view kPasteEnd = "\033[201~";
/// The bytes of a key arrive within this time, even remotely. Two keys arrive further apart.
constexpr int kKeyMs = 50;

bool isFinal(int byte) { return byte >= '@' && byte <= '~'; }

/// End of the escape sequence at `at`: "ESC [ ... letter", a string begun by "ESC ]" or similar, or a lone ESC.
size_t sequenceEnd(std::string_view text, size_t at) {
  const char kind = at + 1 < text.size() ? text[at + 1] : '\0';
  if (kind == '[') {
    size_t end = at + 2;
    while (end < text.size() && text[end] >= ' ' && text[end] <= '?') {
      ++end;
    }
    return std::min(end + 1, text.size());
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^' || kind == 'X') {
    for (size_t end = at + 2; end < text.size() && text[end] != '\n' && text[end] != '\r'; ++end) {
      if (text[end] == '\a') {
        return end + 1;
      }
      if (text[end] == kEscape && end + 1 < text.size() && text[end + 1] == '\\') {
        return end + 2;
      }
    }
  }
  return at + 1;
}

}  // namespace

std::string harmless(std::string_view pasted) {
  std::string text;
  for (size_t at = 0; at < pasted.size();) {
    const char c = pasted[at];
    if (c == kEscape) {
      at = sequenceEnd(pasted, at);
      continue;
    }
    if (c == '\r') {
      text += '\n';
      at += at + 1 < pasted.size() && pasted[at + 1] == '\n' ? 2 : 1;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 ? byte != 0x7F : c == '\n' || c == '\t') {
      text += c;
    }
    ++at;
  }
  std::u32string characters = charactersOf(text);
  const auto is_control = [](char32_t c) { return c >= 0x80 && c < 0xA0; };
  characters.erase(std::remove_if(characters.begin(), characters.end(), is_control),
                   characters.end());
  return utf8Of(characters);
}

int KeyReader::byte(int milliseconds, Key::Kind* why) {
  Key::Kind unused;
  why = why == nullptr ? &unused : why;
  if (at_ == pending_.size()) {
    pending_.clear();
    at_ = typed_ahead_ = 0;
    if (ended_ || (milliseconds >= 0 && !stdinWaits(milliseconds))) {
      *why = Key::Kind::kNone;
      return -1;
    }
    char buffer[65536];
    const long count = readStdin(buffer, sizeof(buffer));
    if (count < 0 && interrupts() != 0) {
      *why = Key::Kind::kInterrupt;
      return -1;
    }
    stopped_ = terminalResumed();
    if (count < 0 && (terminalResized() || stopped_)) {
      *why = Key::Kind::kRedraw;
      return -1;
    }
    if (count <= 0) {
      ended_ = count == 0 || errno != EINTR;
      return byte(milliseconds, why);
    }
    pending_.assign(buffer, static_cast<size_t>(count));
  }
  typed_ahead_ -= typed_ahead_ > 0 ? 1 : 0;
  return static_cast<unsigned char>(pending_[at_++]);
}

Key KeyReader::next() {
  for (;;) {
    Key key;
    const bool typed_ahead = typed_ahead_ > 0;
    const int first = byte(-1, &key.kind);
    if (first < 0) {
      key.more = stopped_;
      return key;
    }
    if (first == kEscape) {
      key = escape();
      if (key.kind != Key::Kind::kNone) {
        return key;
      }
      continue;  // ignored key
    }
    if (first == '\r') {
      key.kind = Key::Kind::kEnter;
      key.more = !typed_ahead && !marks_pastes_ && (at_ < pending_.size() || stdinWaits(kPasteMs));
      return key;
    }
    if (first == '\n') {
      key.kind = Key::Kind::kNewLine;
      return key;
    }
    return character(static_cast<unsigned char>(first));
  }
}

Key KeyReader::character(unsigned char lead) {
  std::string utf8(1, static_cast<char>(lead));
  for (size_t missing = characterBytes(lead); missing > 1; --missing) {
    const int more = byte(kKeyMs);
    if (more < 0) {
      break;
    }
    if ((more & 0xC0) != 0x80) {
      --at_;  // the next character
      break;
    }
    utf8 += static_cast<char>(more);
  }
  const char32_t character = charactersOf(utf8)[0];
  return {Key::Kind::kCharacter,
          character >= 0x80 && character < 0xA0 ? kReplacement : character,
          {},
          false};
}

Key KeyReader::escape() {
  const int second = byte(kKeyMs);
  if (second == '[' || second == 'O') {
    return control(static_cast<char>(second));
  }
  if (second == '\r' || second == '\n') {
    return {Key::Kind::kNewLine, 0, {}, false};
  }
  if (second < 0 || second == kEscape) {
    return {};
  }
  Key key = character(static_cast<unsigned char>(second));
  key.kind = Key::Kind::kAlt;
  return key;
}

Key KeyReader::control(char introducer) {
  std::string sequence;
  int last = byte(kKeyMs);
  while (last >= 0 && !isFinal(last)) {
    sequence += static_cast<char>(last);
    last = byte(kKeyMs);
  }
  if (last < 0) {
    return {};
  }
  const auto is = [&](const char* parameters) { return sequence == parameters; };
  const bool jumps = is("1;5") || is("1;3") || is("5");  // with Ctrl or Alt
  const auto key = [](Key::Kind kind) { return Key{kind, 0, {}, false}; };
  switch (last) {
    case 'A':
      return key(Key::Kind::kUp);
    case 'B':
      return key(Key::Kind::kDown);
    case 'C':
      return key(jumps ? Key::Kind::kWordRight : Key::Kind::kRight);
    case 'D':
      return key(jumps ? Key::Kind::kWordLeft : Key::Kind::kLeft);
    case 'H':
      return key(Key::Kind::kHome);
    case 'F':
      return key(Key::Kind::kEnd);
    case 'M':
      return introducer == 'O' ? key(Key::Kind::kEnter) : Key();  // on the number pad
    case 'u':
      return sequence.compare(0, 3, "13;") == 0 ? key(Key::Kind::kNewLine) : Key();
    case '~':
      if (is("200")) {
        return paste();
      }
      return is("1") || is("7")   ? key(Key::Kind::kHome)
             : is("4") || is("8") ? key(Key::Kind::kEnd)
             : is("3")            ? key(Key::Kind::kDelete)
             : sequence.compare(0, 3, "27;") == 0 && sequence.size() > 3 &&
                     sequence.compare(sequence.size() - 3, 3, ";13") == 0
                 ? key(Key::Kind::kNewLine)
                 : Key();
    default:
      return {};
  }
}

Key KeyReader::paste() {
  marks_pastes_ = true;
  std::string text;
  for (;;) {
    Key::Kind why;
    const int next = byte(-1, &why);
    if (next < 0 && why == Key::Kind::kRedraw) {
      continue;
    }
    if (next < 0) {
      return {why, 0, {}, false};
    }
    text += static_cast<char>(next);
    if (next == '~' && text.size() >= kPasteEnd.size() &&
        text.compare(text.size() - kPasteEnd.size(), kPasteEnd.size(), kPasteEnd) == 0) {
      text.erase(text.size() - kPasteEnd.size());
      return {Key::Kind::kPaste, 0, harmless(text), false};
    }
  }
}

void KeyReader::takeTypedAhead() {
  char buffer[65536];
  while (!ended_ && interrupts() == 0 && stdinWaits(0)) {
    const long count = readStdin(buffer, sizeof(buffer));
    if (count > 0) {
      pending_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      ended_ = true;
    }
  }
  typed_ahead_ = pending_.size() - at_;
}

void KeyReader::holdTypedAhead() {
  while (pending_.size() > at_ && (pending_.back() == '\r' || pending_.back() == '\n')) {
    pending_.pop_back();
  }
  std::replace(pending_.begin() + static_cast<std::ptrdiff_t>(at_), pending_.end(), '\r', '\n');
  typed_ahead_ = pending_.size() - at_;
}

}  // namespace cli

#ifdef ORIEL_LINE_EDITOR

#include <dlfcn.h>
#include <langinfo.h>

#include <clocale>
#include <string_view>
#include <type_traits>

namespace cli {

bool Libedit::load() {
  const char* const names[] = {"libedit.so.2", "libedit.so.0", "libedit.3.dylib", "libedit.so"};
  void* handle = nullptr;
  for (const char* name : names) {
    handle = handle == nullptr ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : handle;
  }
  const auto find = [handle](const char* name, auto* function) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(handle, name));
    return *function != nullptr;
  };
  return handle != nullptr && find("el_init", &init) && find("el_end", &end) &&
         find("el_wset", &set) && find("el_wgets", &gets) && find("el_wline", &line) &&
         find("el_winsertstr", &insert) && find("el_deletestr", &erase) &&
         find("el_cursor", &move) && find("el_resize", &resize);
}

bool useUtf8() {
  for (const char* name : {"", "C.UTF-8", "en_US.UTF-8", "UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr &&
        std::string_view(nl_langinfo(CODESET)) == "UTF-8") {
      return true;
    }
  }
  std::setlocale(LC_CTYPE, "C");
  return false;
}

}  // namespace cli

#endif

namespace cli {
namespace {

void checkLine(const std::string& line) {
  if (line.size() > kMostLineBytes) {
    throw Failure{kExitFailed, "stdin has a line of more than " + formatSize(kMostLineBytes) +
                                   ": give it in parts"};
  }
}

}  // namespace

LineReader::Result LineReader::next(std::string* line) {
  char buffer[4096];
  size_t searched = 0;
  for (;;) {
    const size_t end = pending_.find('\n', searched);
    if (end != std::string::npos || (at_end_ && !pending_.empty())) {
      *line = pending_.substr(0, end);
      pending_.erase(0, end == std::string::npos ? end : end + 1);
      if (!line->empty() && line->back() == '\r') {
        line->pop_back();
      }
      return Result::kLine;
    }
    if (at_end_) {
      return Result::kEnd;
    }
    checkLine(pending_);
    searched = pending_.size();
    const long count = readStdin(buffer, sizeof(buffer));
    if (count > 0) {
      pending_.append(buffer, static_cast<size_t>(count));
    } else if (count == 0) {
      at_end_ = true;
    } else if (errno == EINTR) {
      if (interrupts() != 0) {
        pending_.clear();
        return Result::kInterrupted;
      }
    } else {
      throw Failure{kExitFailed, std::string("stdin cannot be read (") + std::strerror(errno) +
                                     "): check where the input comes from"};
    }
  }
}

bool LineReader::waits() const { return !pending_.empty() || stdinWaits(0); }

LineReader::Result LineReader::nextTyped(std::string* text,
                                         bool (*stands_alone)(const std::string&)) {
  Result result = next(text);
  if (result != Result::kLine || stands_alone(*text)) {
    return result;
  }
  const auto join = [&] {
    std::string line;
    result = next(&line);
    *text += result == Result::kLine ? "\n" + line : "";
    checkLine(*text);
  };
  while (result == Result::kLine && stdinWaits(kPasteMs)) {
    join();
  }
  if (result == Result::kLine) {
    pending_ += takeUnfinishedLine();
    if (!pending_.empty()) {
      join();
    }
  }
  text->erase(text->find_last_not_of('\n') + 1);
  return result == Result::kEnd ? Result::kLine : result;  // the end is reported by the next call
}

namespace {

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < count ? static_cast<uint8_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace

bool copyToClipboard(const std::string& text) {
  if (!takesEscapes() || text.size() > kMostCopiedBytes) {
    return false;
  }
  tell("\033]52;c;" + base64(text) + "\a");
  return true;
}

}  // namespace cli
