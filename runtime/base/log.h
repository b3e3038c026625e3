// Errors as values. Every fallible function in Oriel returns a Status; outputs come last.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "oriel/advanced.h"

namespace oriel_internal {

/// The C API's status code, marked nodiscard. The detail is logged once, where the failure happened (see log.h); only
/// the code is returned.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(oriel_status code) : code_(code) {}  // NOLINT: implicit on purpose

  constexpr bool ok() const { return code_ == ORIEL_OK; }
  /// True if the device is lost for good.
  constexpr bool lost() const {
    return code_ == ORIEL_ERROR_DEVICE || code_ == ORIEL_ERROR_TIMEOUT;
  }
  /// True for a failure unrelated to the input: a retry may succeed.
  constexpr bool passing() const {
    return code_ == ORIEL_ERROR_IO || code_ == ORIEL_ERROR_OUT_OF_MEMORY;
  }
  constexpr oriel_status code() const { return code_; }

 private:
  oriel_status code_ = ORIEL_OK;
};

constexpr Status kOk{};

}  // namespace oriel_internal

/// Returns early from a function that itself returns Status.
#define ORIEL_TRY(expression)                                             \
  do {                                                                    \
    if (::oriel_internal::Status status_ = (expression); !status_.ok()) { \
      return status_;                                                     \
    }                                                                     \
  } while (false)

// The app's log callback, passed by value. Oriel itself prints nothing.

// Arguments are checked like C99's printf. On systems other than Windows that is the default; there
// cmake/compiler.cmake enables it.
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

/// The latest error line of an object, for apps without a log callback. Several threads may write lines. The reader must
/// ensure that no line is written while it reads.
class ErrorLine {
 public:
  static constexpr size_t kBytes = 512;

  /// Truncates between two characters.
  void set(const char* line);
  void set(const ErrorLine& other);
  /// Overwrites with zeros: a line may quote the conversation.
  void clear();
  /// The latest line, or "" before the first.
  const char* text() const { return text_; }
  /// Number of lines so far.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  class Hold;

  mutable std::atomic<uint32_t> held_{0};  // not bool: RISC-V cannot exchange a byte atomically
  std::atomic<uint32_t> count_{0};
  char text_[kBytes] = "";
};

/// Copies a line to a buffer of at least one byte. NUL-terminated, truncated between two characters.
void copyLine(const char* line, char* out, size_t capacity);

/// The destination of messages. A default-constructed Log drops everything.
struct Log {
  oriel_log_fn callback = nullptr;
  void* user = nullptr;
  ErrorLine* last_error = nullptr;  ///< keeps a copy of error lines; may be null

  /// printf-style: one line of UTF-8, formatted on the stack and truncated at kMaxMessageBytes between two characters.
  void write(oriel_log_level level, const char* format, ...) const ORIEL_PRINTF(3, 4);

  /// Logs one error of the form "WHAT HAPPENED: WHAT TO DO" and returns its code, so that a failure is logged once and
  /// returned in one line: `return log.fail(ORIEL_ERROR_FORMAT, "...", ...);`
  Status fail(oriel_status code, const char* format, ...) const ORIEL_PRINTF(3, 4);
};

/// Logs errors as warnings, for attempts that may fail without failing the call. Its log must not outlive it.
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

/// Puts a file name before each message: "NAME: WHAT HAPPENED: WHAT TO DO". `name` must stay valid; its log must not
/// outlive it.
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
