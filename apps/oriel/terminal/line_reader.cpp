#include "terminal/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "failure.h"
#include "sizes.h"
#include "system.h"
#include "terminal/interrupt.h"
#include "terminal/terminal.h"

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
