// The table of options as JSON.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "options/option_table.h"
#include "oriel/oriel.h"

namespace oriel_internal {
namespace {

/// Text into a caller's buffer, as far as there is room; counts all of it.
class TextWriter {
 public:
  TextWriter(char* text, size_t capacity) : text_(text), capacity_(capacity) {}

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    char part[512];  // a row's longest member
    va_list arguments;
    va_start(arguments, format);
    const int n = std::vsnprintf(part, sizeof(part), format, arguments);
    va_end(arguments);
    const auto bytes = static_cast<size_t>(n);
    if (used_ + bytes < capacity_) {
      std::memcpy(text_ + used_, part, bytes + 1);
    }
    used_ += bytes;
  }
  size_t used() const { return used_; }

 private:
  char* const text_;
  const size_t capacity_;
  size_t used_ = 0;
};

bool hasRange(const OptionRow& row) {
  return row.type == OptionType::kCount || row.type == OptionType::kNumber ||
         row.type == OptionType::kList;
}

// The table's texts have nothing that JSON escapes (tests/unit/test_settings.cpp).
void writeRow(const OptionRow& row, TextWriter* out) {
  out->add("{\"name\": \"%s\", \"flag\": \"", row.name);
  for (const char* c = row.flag != nullptr ? row.flag : row.name; *c != '\0'; ++c) {
    out->add("%c", *c == '_' ? '-' : *c);
  }
  out->add("\", \"scope\": \"%s\", \"layer\": \"%s\", \"type\": \"%s\", \"default\": \"%s\"",
           scopeName(row.scope), layerName(row.layer), typeName(row.type), row.standard);
  if (hasRange(row)) {
    out->add(", \"least\": %.17g, \"most\": %.17g", row.least, row.most);
  }
  for (const OptionWord* word = row.words; word != nullptr && word->word != nullptr; ++word) {
    out->add("%s\"%s\"", word == row.words ? ", \"choices\": [" : ", ", word->word);
  }
  out->add("%s, \"help\": \"%s\"}", row.words != nullptr ? "]" : "", row.help);
}

}  // namespace
}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_option_list(char* json, size_t capacity, size_t* needed) {
  if (needed == nullptr || (json == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  TextWriter out(json, capacity);
  out.add("{\"options\": [");
  for (size_t i = 0; i < kOptionCount; ++i) {
    out.add("%s", i == 0 ? "" : ", ");
    writeRow(kOptions[i], &out);
  }
  out.add("]}");
  *needed = out.used() + 1;
  return *needed <= capacity ? ORIEL_OK : ORIEL_ERROR_BUFFER_TOO_SMALL;
}
