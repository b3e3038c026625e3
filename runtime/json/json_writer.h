// Writes JSON on one line to a caller's buffer, or only counts it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"

namespace oriel_internal {

class JsonWriter {
 public:
  static constexpr uint32_t kMostDepth = 8;

  /// The text is NUL-terminated after finish() if there was room.
  JsonWriter(char* text, size_t capacity) : text_(text), capacity_(capacity) {}

  /// `name` is null in a list and for the outermost value.
  void object(const char* name = nullptr) { open(name, '{', '}'); }
  void list(const char* name) { open(name, '[', ']'); }
  void end();
  void text(const char* name, const JsonText& value);
  void whole(const char* name, uint64_t value);
  void signedWhole(const char* name, int64_t value);
  /// Writes null if not finite.
  void real(const char* name, double value);
  void flag(const char* name, bool value);
  void null(const char* name);
  /// For bytes that are already JSON.
  JsonSink sink();

  /// ORIEL_ERROR_BUFFER_TOO_SMALL without room; *needed includes the NUL.
  oriel_status finish(size_t* needed);

 private:
  void open(const char* name, char begin, char end);
  void key(const char* name);
  void add(const char* bytes, size_t count);

  char* const text_;
  const size_t capacity_;
  size_t used_ = 0;
  char ends_[kMostDepth] = {};
  bool first_[kMostDepth + 1] = {true};
  uint32_t depth_ = 0;
};

}  // namespace oriel_internal
