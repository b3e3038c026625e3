#include "json/json.h"

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

JsonMade* JsonBuilder::make(JsonKind kind, const JsonText& text) {
  JsonMade* const value = scratch_->take<JsonMade>(1);
  if (value != nullptr) {
    value->text_ = text;
    value->text_.mark = static_cast<uint32_t>(kind) | JsonValue::kMade;
  }
  return value;
}

JsonMade* JsonBuilder::text(const JsonText& text) { return make(JsonKind::kString, text); }

JsonMade* JsonBuilder::boolean(bool is) {
  return make(JsonKind::kBool, {nullptr, is ? size_t{1} : 0});
}

JsonMade* JsonBuilder::number(uint32_t value) {
  constexpr size_t kMostDigits = 10;
  char* const digits = scratch_->takeText(kMostDigits);
  if (digits == nullptr) {
    return nullptr;
  }
  char* at = digits + kMostDigits;
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return make(JsonKind::kNumber, {at, static_cast<size_t>(digits + kMostDigits - at)});
}

JsonMade* JsonBuilder::null() { return make(JsonKind::kNull, {}); }

JsonMade* JsonBuilder::list() { return make(JsonKind::kArray, {}); }

JsonMade* JsonBuilder::object() { return make(JsonKind::kObject, {}); }

void JsonBuilder::append(JsonMade* list, JsonMade* element) {
  if (list == nullptr || element == nullptr) {
    return;
  }
  if (list->last == nullptr) {
    list->point(element);
  } else {
    list->last->after = element;
  }
  list->last = element;
  ++list->text_.bytes;
}

void JsonBuilder::set(JsonMade* object, const JsonText& key, JsonMade* value) {
  if (value != nullptr) {
    value->own_key = key;
    value->set(JsonValue::kMember);
  }
  append(object, value);
}

JsonMade* JsonBuilder::message(const JsonText& role, const JsonText& content) {
  JsonMade* const message = object();
  set(message, "role", text(role));
  set(message, "content", text(content));
  return message;
}

JsonMade* JsonBuilder::listOf(const JsonValue& value) {
  JsonMade* const one = list();
  append(one, copyOf(value));
  return one;
}

JsonMade* JsonBuilder::from(uint32_t origin, JsonMade* value) {
  if (value != nullptr) {
    value->own_origin = origin;
  }
  return value;
}

JsonMade* JsonBuilder::joined(JsonMade* pieces) {
  uint64_t bytes = 0;
  for (const JsonValue* one = pieces != nullptr ? pieces->first() : nullptr; one != nullptr;
       one = one->next()) {
    bytes += one->text().bytes;
  }
  char* const all = pieces != nullptr ? scratch_->takeText(bytes + 1) : nullptr;
  JsonMade* const whole = all != nullptr ? make(JsonKind::kString, {}) : nullptr;
  if (whole == nullptr) {
    return nullptr;
  }
  size_t at = 0;
  for (const JsonValue* one = pieces->first(); one != nullptr; one = one->next()) {
    if (one->text().bytes != 0) {
      std::memcpy(all + at, one->text().data, one->text().bytes);
    }
    at += one->text().bytes;
  }
  whole->text_.data = all;
  whole->text_.bytes = static_cast<uint32_t>(bytes);
  if (pieces->count() != 0) {
    whole->last = static_cast<JsonMade*>(const_cast<JsonValue*>(pieces->first()));
    whole->set(JsonValue::kJoined);
  }
  return whole;
}

JsonMade* JsonBuilder::copyOf(const JsonValue& value) {
  JsonMade* const copy = make(JsonKind::kNull, {});
  if (copy != nullptr) {
    setCopy(copy, value, JsonValue::kMade);
  }
  return copy;
}

void JsonBuilder::setCopy(JsonValue* copy, const JsonValue& value, uint32_t flags) {
  constexpr uint32_t kKept = JsonValue::kKindBits | JsonValue::kTrusted | JsonValue::kAlias;
  copy->text_ = value.text_;
  copy->text_.mark = (value.text_.mark & kKept) | flags;
  if (value.isContainer() && !value.has(JsonValue::kAlias)) {
    copy->point(&value);
    copy->set(JsonValue::kAlias);
  }
}

// In one array: a wrapped element takes five small nodes.
const JsonValue* JsonBuilder::wrapped(const JsonValue& list, const char* key, const char* first_key,
                                      const char* first_text) {
  const auto wraps = [key](const JsonValue& value) { return value.find(key) == nullptr; };
  uint64_t n_nodes = 1;
  for (const JsonValue* one = list.first(); one != nullptr; one = one->next()) {
    n_nodes += wraps(*one) ? 5 : 1;
  }
  JsonValue* const all = scratch_->take<JsonValue>(n_nodes);
  if (all == nullptr) {
    return nullptr;
  }
  JsonValue* at = all;
  const auto put = [&at](JsonKind kind, uint32_t flags, const JsonText& text) {
    at->text_ = text;
    at->text_.mark = static_cast<uint32_t>(kind) | flags;
    return at++;
  };
  put(JsonKind::kArray, JsonValue::kLast, {nullptr, list.count()})->point(all + n_nodes);
  for (const JsonValue* one = list.first(); one != nullptr; one = one->next()) {
    uint32_t flags = one->next() == nullptr ? uint32_t{JsonValue::kLast} : 0;
    if (wraps(*one)) {
      JsonValue* const object = put(JsonKind::kObject, flags, {nullptr, 2});
      object->point(object + 5);
      put(JsonKind::kNull, 0, first_key);
      put(JsonKind::kString, JsonValue::kMember, first_text);
      put(JsonKind::kNull, 0, key);
      flags = JsonValue::kMember | JsonValue::kLast;
    }
    setCopy(at++, *one, flags);
  }
  return all;
}

}  // namespace oriel_internal
