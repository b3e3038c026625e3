// The app's log callback, carried by value. Oriel prints nothing by itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"

// Arguments are checked as C99's printf: elsewhere than on Windows that is what printf is, and there
// cmake/warnings.cmake asks for it.
#if defined(__MINGW32__) && !defined(__clang__)
#define ORIEL_PRINTF(format_at, arguments_at) \
  __attribute__((format(gnu_printf, format_at, arguments_at)))
#elif defined(__GNUC__)
#define ORIEL_PRINTF(format_at, arguments_at) \
  __attribute__((format(printf, format_at, arguments_at)))
#else
#define ORIEL_PRINTF(format_at, arguments_at)
#endif

namespace oriel_internal {

/// The latest error line of an object, for apps without a log callback. Lines may come from several threads at once; who
/// reads the text sees to it that none comes meanwhile.
class ErrorLine {
 public:
  static constexpr size_t kBytes = 512;

  /// Cut between two characters where there is no room for all.
  void set(const char* line);
  void set(const ErrorLine& other);
  /// Leaves zeros: a line may quote what was said.
  void clear();
  /// "" before the first.
  const char* text() const { return text_; }
  /// How many lines there have been.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  class Hold;

  mutable std::atomic<uint32_t> held_{0};  // not bool: RISC-V has no exchange of a byte
  std::atomic<uint32_t> count_{0};
  char text_[kBytes] = "";
};

/// Into a buffer of at least one byte, with NUL at the end, cut between two characters where there is no room for all.
void copyLine(const char* line, char* out, size_t capacity);

/// Where messages go. A default-constructed Log drops everything.
struct Log {
  oriel_log_fn callback = nullptr;
  void* user = nullptr;
  ErrorLine* last_error = nullptr;  ///< keeps a copy of error lines; null: nobody does

  /// printf-style: one line of UTF-8, cut at kMaxMessageBytes between two characters. Formatted on the stack.
  void write(oriel_log_level level, const char* format, ...) const ORIEL_PRINTF(3, 4);

  /// Logs one error of the form "WHAT HAPPENED: WHAT TO DO" and returns its code, so that a failure
  /// is reported once and handed on in one line: `return log.fail(ORIEL_ERROR_FORMAT, "...", ...);`
  Status fail(oriel_status code, const char* format, ...) const ORIEL_PRINTF(3, 4);
};

/// Hands messages on with errors as warnings: for attempts whose failure is none of the call's. The log it
/// gives must not be kept.
class LenientLog {
 public:
  explicit LenientLog(const Log& log) : to_(log) {}
  LenientLog(const LenientLog&) = delete;
  LenientLog& operator=(const LenientLog&) = delete;
  Log log() { return {handOn, this}; }

 private:
  static void handOn(oriel_log_level level, const char* message, void* user);

  const Log to_;
};

/// Hands messages on with the name of the file before them that the work is about: "NAME: WHAT HAPPENED: WHAT TO
/// DO". `name` must stay; the log it gives must not be kept.
class NamingLog {
 public:
  NamingLog(const Log& log, const char* name) : to_(log), name_(name) {}
  NamingLog(const NamingLog&) = delete;
  NamingLog& operator=(const NamingLog&) = delete;
  Log log() { return {handOn, this}; }

 private:
  static void handOn(oriel_log_level level, const char* message, void* user);

  const Log to_;
  const char* const name_;
};

}  // namespace oriel_internal
