#include "base/log.h"

#include <cstdarg>
#include <cstdio>

#include "base/limits.h"

namespace oriel {
namespace {

void emit(const Log& log, oriel_log_level level, const char* format, va_list arguments) {
  if (log.callback == nullptr) {
    return;
  }
  char message[kMaxMessageBytes];
  std::vsnprintf(message, sizeof(message), format, arguments);
  for (char* at = message; *at != '\0'; ++at) {
    if (static_cast<unsigned char>(*at) < 0x20 || *at == 0x7f) {
      *at = '?';  // from a path or a file: messages are one line
    }
  }
  log.callback(level, message, log.user);
}

}  // namespace

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
