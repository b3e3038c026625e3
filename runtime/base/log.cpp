#include "base/log.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/checked.h"

namespace oriel_internal {
namespace {

/// Length of the UTF-8 character at `text`; 0 if invalid. *begun: bytes that are the start of a truncated character.
size_t characterAt(const char* text, size_t* begun) {
  const auto byteAt = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byteAt(0);
  *begun = 1;
  if (lead < 0x80) {
    return 1;
  }
  if (lead < 0xC2 || lead > 0xF4) {
    *begun = 0;
    return 0;
  }
  const size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Rejects overlong forms, surrogates and code points above U+10FFFF (Unicode, table 3-7).
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (; *begun < bytes; ++*begun) {
    if (byteAt(*begun) < low || byteAt(*begun) > high) {
      return 0;
    }
    low = 0x80;
    high = 0xBF;
  }
  return bytes;
}

/// True for a control character (C0, DEL, C1) or a Unicode line or paragraph separator of `bytes` bytes.
bool breaksLine(const char* character, size_t bytes) {
  const auto byteAt = [character](size_t i) { return static_cast<unsigned char>(character[i]); };
  switch (bytes) {
    case 1:
      return byteAt(0) < 0x20 || byteAt(0) == 0x7F;
    case 2:
      return byteAt(0) == 0xC2 && byteAt(1) < 0xA0;
    case 3:
      return byteAt(0) == 0xE2 && byteAt(1) == 0x80 && (byteAt(2) == 0xA8 || byteAt(2) == 0xA9);
    default:
      return false;
  }
}

/// Makes a message a single valid line. Control characters and invalid UTF-8 from paths or files become '?'. A truncated
/// character is removed.
void makeLine(char* message) {
  char* to = message;
  for (const char* from = message; *from != '\0';) {
    size_t begun = 0;
    const size_t bytes = characterAt(from, &begun);
    if (breaksLine(from, bytes) || (bytes == 0 && begun == 0)) {
      *to++ = '?';
      from += bytes != 0 ? bytes : 1;
      continue;
    }
    std::memmove(to, from, bytes);
    to += bytes;
    from += bytes != 0 ? bytes : begun;
  }
  *to = '\0';
}

/// Length of the line that fits `capacity` bytes with a NUL, without splitting a character.
size_t lineBytes(const char* line, size_t capacity) {
  const auto goesOn = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  size_t bytes = std::strlen(line);
  if (bytes >= capacity) {
    bytes = capacity - 1;
    while (bytes != 0 && goesOn(line[bytes])) {
      --bytes;
    }
  }
  return bytes;
}

void emit(const Log& log, oriel_log_level level, const char* format, va_list arguments) {
  const bool keeps = log.last_error != nullptr && level == ORIEL_LOG_ERROR;
  if (log.callback == nullptr && !keeps) {
    return;
  }
  char message[kMaxMessageBytes];
  std::vsnprintf(message, sizeof(message), format, arguments);
  makeLine(message);
  if (keeps) {
    log.last_error->set(message);
  }
  if (log.callback == nullptr) {
    return;
  }
  const uint32_t lines = keeps ? log.last_error->count() : 0;
  log.callback(level, message, log.user);
  // A refused call inside the callback may have stored its own line. This error is later, so it is stored again.
  if (keeps && log.last_error->count() != lines) {
    log.last_error->set(message);
  }
}

}  // namespace

void copyLine(const char* line, char* out, size_t capacity) {
  const size_t bytes = lineBytes(line, capacity);
  std::memcpy(out, line, bytes);
  out[bytes] = '\0';
}

/// Waits only while another thread copies a line.
class ErrorLine::Hold {
 public:
  explicit Hold(const ErrorLine& line) : held_(line.held_) {
    while (held_.exchange(1, std::memory_order_acquire) != 0) {
    }
  }
  ~Hold() { held_.store(0, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::atomic<uint32_t>& held_;
};

void ErrorLine::set(const char* line) {
  const size_t bytes = lineBytes(line, kBytes);
  const Hold hold(*this);
  std::memcpy(text_, line, bytes);
  std::memset(text_ + bytes, 0, kBytes - bytes);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void ErrorLine::set(const ErrorLine& other) {
  char line[kBytes];
  {
    const Hold hold(other);
    std::memcpy(line, other.text_, kBytes);
  }
  set(line);
}

void ErrorLine::clear() {
  const Hold hold(*this);
  std::memset(text_, 0, kBytes);
}

void Log::write(oriel_log_level level, const char* format, ...) const {
  va_list arguments;
  va_start(arguments, format);
  emit(*this, level, format, arguments);
  va_end(arguments);
}

Status Log::fail(oriel_status code, const char* format, ...) const {
  va_list arguments;
  va_start(arguments, format);
  emit(*this, ORIEL_LOG_ERROR, format, arguments);
  va_end(arguments);
  return code;
}

void LenientLog::handOn(oriel_log_level level, const char* message, void* user) {
  static_cast<LenientLog*>(user)->to_.write(level == ORIEL_LOG_ERROR ? ORIEL_LOG_WARNING : level,
                                            "%s", message);
}

void NamingLog::handOn(oriel_log_level level, const char* message, void* user) {
  const NamingLog& self = *static_cast<NamingLog*>(user);
  self.to_.write(level, "%.600s: %s", self.name_, message);
}

}  // namespace oriel_internal
