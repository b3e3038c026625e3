#include "base/log.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/limits.h"

namespace oriel {
namespace {

void emit(const Log& log, oriel_log_level level, const char* format, va_list arguments) {
  const bool keeps = log.last_error != nullptr && level == ORIEL_LOG_ERROR;
  if (log.callback == nullptr && !keeps) {
    return;
  }
  char message[kMaxMessageBytes];
  std::vsnprintf(message, sizeof(message), format, arguments);
  for (char* at = message; *at != '\0'; ++at) {
    if (static_cast<unsigned char>(*at) < 0x20 || *at == 0x7f) {
      *at = '?';  // from a path or a file: messages are one line
    }
  }
  if (keeps) {
    log.last_error->set(message);
  }
  if (log.callback != nullptr) {
    log.callback(level, message, log.user);
  }
}

}  // namespace

/// Copying a line is all that is ever waited for.
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
  const auto goesOn = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  size_t bytes = std::strlen(line);
  if (bytes >= kBytes) {
    bytes = kBytes - 1;
    while (bytes != 0 && goesOn(line[bytes])) {
      --bytes;
    }
  }
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

}  // namespace oriel
