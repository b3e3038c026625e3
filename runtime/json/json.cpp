#include "json/json.h"

#include <cstring>

#include "json/json_names.h"

namespace oriel_internal {
namespace {

void put(const char* text, const JsonSink& sink) { sink.write(text, std::strlen(text), sink.user); }

}  // namespace

bool JsonText::is(const char* other) const {
  return bytes == std::strlen(other) && std::memcmp(data, other, bytes) == 0;
}

bool JsonText::operator==(const JsonText& other) const {
  return bytes == other.bytes && (bytes == 0 || std::memcmp(data, other.data, bytes) == 0);
}

bool JsonValue::isInteger() const {
  return isNumber() && std::memchr(text_.data, '.', text_.bytes) == nullptr &&
         std::memchr(text_.data, 'e', text_.bytes) == nullptr &&
         std::memchr(text_.data, 'E', text_.bytes) == nullptr;
}

const JsonText& JsonValue::key() const {
  static constexpr JsonText kNone;
  return !has(kMember) ? kNone
         : has(kMade)  ? static_cast<const JsonMade*>(this)->own_key
                       : this[-1].text_;
}

// The first counted node from here on.
const JsonValue* JsonValue::counting() const {
  const JsonValue* at = this;
  for (; at->has(kSkipped); at = at->beside()) {
    if (at->has(kLast)) {
      return nullptr;
    }
  }
  return at->has(kReplaced) ? at + at[-1].text_.mark : at;
}

const JsonValue* JsonValue::first() const {
  if (count() == 0) {
    return nullptr;
  }
  if (has(kAlias)) {
    return pointed()->first();
  }
  return has(kMade) ? pointed() : (this + (isObject() ? 2 : 1))->counting();
}

const JsonValue* JsonValue::next() const {
  if (has(kMade)) {
    return static_cast<const JsonMade*>(this)->after;
  }
  const JsonValue* const at = has(kMoved) ? this - this[-1].text_.mark : this;
  return at->has(kLast) ? nullptr : at->beside()->counting();
}

const JsonValue* JsonValue::find(const JsonText& name) const {
  if (!isObject()) {
    return nullptr;
  }
  if (has(kAlias)) {
    return pointed()->find(name);
  }
  if (has(kIndexed)) {
    return findByIndex(name);
  }
  const JsonValue* member = first();
  while (member != nullptr && !(member->key() == name)) {
    member = member->next();
  }
  return member;
}

JsonName* JsonValue::names(uint32_t count) const {
  const void* const begin = pointed() - nodesOfNames(count);
  return static_cast<JsonName*>(const_cast<void*>(begin));
}

const JsonValue* JsonValue::findByIndex(const JsonText& name) const {
  const JsonName* const all = names(count());
  const uint32_t hash = hashOfName(name);
  uint32_t begin = 0;
  for (uint32_t end = count(); begin < end;) {
    const uint32_t middle = begin + (end - begin) / 2;
    const JsonValue* const member = this + all[middle].place;
    const int order = compareNames(all[middle].hash, member->key(), hash, name);
    if (order == 0) {
      return member;
    }
    begin = order < 0 ? middle + 1 : begin;
    end = order < 0 ? end : middle;
  }
  return nullptr;
}

uint32_t JsonValue::origin() const {
  return has(kMade) ? static_cast<const JsonMade*>(this)->own_origin : 0;
}

const JsonValue* JsonValue::pieces() const {
  return has(kJoined) ? static_cast<const JsonMade*>(this)->last : nullptr;
}

const JsonValue* JsonValue::find(const char* name) const { return find(JsonText(name)); }

void writeJsonEscaped(const JsonText& text, const JsonSink& sink) {
  size_t begin = 0;
  for (size_t at = 0; at < text.bytes; ++at) {
    const uint8_t c = static_cast<uint8_t>(text.data[at]);
    if (c >= 0x20 && c != '"' && c != '\\') {
      continue;
    }
    if (at != begin) {
      sink.write(text.data + begin, at - begin, sink.user);
    }
    begin = at + 1;
    static constexpr char kHex[] = "0123456789abcdef";
    char escape[7] = {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15], '\0'};
    static constexpr char kFrom[] = "\"\\\b\f\n\r\t";
    static constexpr char kTo[] = "\"\\bfnrt";
    if (const char* const known = c != 0 ? std::strchr(kFrom, c) : nullptr; known != nullptr) {
      escape[1] = kTo[known - kFrom];
      escape[2] = '\0';
    }
    put(escape, sink);
  }
  if (begin != text.bytes) {
    sink.write(text.data + begin, text.bytes - begin, sink.user);
  }
}

void writeJsonString(const JsonText& text, const JsonSink& sink) {
  put("\"", sink);
  writeJsonEscaped(text, sink);
  put("\"", sink);
}

// The recursion depth is limited by parseJson().
void writeJson(const JsonValue& value, const JsonSink& sink) {
  switch (value.kind()) {
    case JsonKind::kNull:
      put("null", sink);
      return;
    case JsonKind::kBool:
      put(value.boolean() ? "true" : "false", sink);
      return;
    case JsonKind::kNumber:
      sink.write(value.text().data, value.text().bytes, sink.user);
      return;
    case JsonKind::kString:
      writeJsonString(value.text(), sink);
      return;
    case JsonKind::kArray:
    case JsonKind::kObject:
      break;
  }
  put(value.isObject() ? "{" : "[", sink);
  for (const JsonValue* child = value.first(); child != nullptr; child = child->next()) {
    if (child != value.first()) {
      put(",", sink);
    }
    if (value.isObject()) {
      writeJsonString(child->key(), sink);
      put(":", sink);
    }
    writeJson(*child, sink);
  }
  put(value.isObject() ? "}" : "]", sink);
}

}  // namespace oriel_internal
