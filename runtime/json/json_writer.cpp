#include "json/json_writer.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace oriel_internal {

void JsonWriter::add(const char* bytes, size_t count) {
  if (used_ < capacity_ && count <= capacity_ - used_) {
    std::memcpy(text_ + used_, bytes, count);
  }
  used_ += count;
}

JsonSink JsonWriter::sink() {
  return {[](const char* text, size_t bytes, void* user) {
            static_cast<JsonWriter*>(user)->add(text, bytes);
          },
          this};
}

void JsonWriter::key(const char* name) {
  if (!first_[depth_]) {
    add(", ", 2);
  }
  first_[depth_] = false;
  if (name != nullptr) {
    writeJsonString(name, sink());
    add(": ", 2);
  }
}

void JsonWriter::open(const char* name, char begin, char end) {
  key(name);
  add(&begin, 1);
  ends_[depth_++] = end;
  first_[depth_] = true;
}

void JsonWriter::end() { add(&ends_[--depth_], 1); }

void JsonWriter::text(const char* name, const JsonText& value) {
  key(name);
  writeJsonString(value, sink());
}

void JsonWriter::whole(const char* name, uint64_t value) {
  key(name);
  char digits[24];
  const int n =
      std::snprintf(digits, sizeof(digits), "%llu", static_cast<unsigned long long>(value));
  add(digits, static_cast<size_t>(n));
}

void JsonWriter::signedWhole(const char* name, int64_t value) {
  key(name);
  char digits[24];
  const int n = std::snprintf(digits, sizeof(digits), "%lld", static_cast<long long>(value));
  add(digits, static_cast<size_t>(n));
}

// The shortest of 15 to 17 digits that round-trips, with a point in every locale.
void JsonWriter::real(const char* name, double value) {
  if (!std::isfinite(value)) {
    return null(name);
  }
  key(name);
  char digits[32];
  int precision = 15;
  do {
    std::snprintf(digits, sizeof(digits), "%.*g", precision, value);
  } while (++precision <= 17 && std::strtod(digits, nullptr) != value);
  for (char* c = digits; *c != '\0'; ++c) {
    *c = *c == ',' ? '.' : *c;
  }
  add(digits, std::strlen(digits));
}

void JsonWriter::flag(const char* name, bool value) {
  key(name);
  add(value ? "true" : "false", value ? 4 : 5);
}

void JsonWriter::null(const char* name) {
  key(name);
  add("null", 4);
}

oriel_status JsonWriter::finish(size_t* needed) {
  add("", 1);
  *needed = used_;
  return used_ <= capacity_ ? ORIEL_OK : ORIEL_ERROR_BUFFER_TOO_SMALL;
}

}  // namespace oriel_internal
