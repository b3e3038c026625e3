#include "json/json.h"

#include <cstring>

#include "text/hex.h"
#include "text/utf8.h"

namespace oriel_internal {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

class JsonReader {
 public:
  JsonReader(const char* text, size_t bytes, Scratch* scratch)
      : text_(text), bytes_(bytes), scratch_(scratch) {}

  const JsonValue* read() {
    skipSpace();
    JsonValue* const value = readValue(0);
    skipSpace();
    return value != nullptr && at_ == bytes_ ? value : nullptr;
  }
  size_t at() const { return at_; }
  bool tooDeep() const { return too_deep_; }

 private:
  bool has(char c) const { return at_ < bytes_ && text_[at_] == c; }
  bool take(char c) {
    const bool there = has(c);
    at_ += there ? 1 : 0;
    return there;
  }
  void skipSpace() {
    while (has(' ') || has('\n') || has('\r') || has('\t')) {
      ++at_;
    }
  }
  bool takeWord(const char* word) {
    const size_t n = std::strlen(word);
    if (bytes_ - at_ < n || std::memcmp(text_ + at_, word, n) != 0) {
      return false;
    }
    at_ += n;
    return true;
  }

  JsonValue* readValue(uint32_t depth) {
    if (depth > kMaxJsonDepth) {
      too_deep_ = true;
      return nullptr;
    }
    JsonValue* const value = scratch_->take<JsonValue>(1);
    return value != nullptr && fill(value, depth) ? value : nullptr;
  }

  bool fill(JsonValue* value, uint32_t depth) {
    if (has('{') || has('[')) {
      return readChildren(value, depth);
    }
    if (has('"')) {
      value->kind = JsonKind::kString;
      return readString(&value->text);
    }
    if (takeWord("true") || takeWord("false")) {
      value->kind = JsonKind::kBool;
      value->boolean = text_[at_ - 2] == 'u';
      return true;
    }
    if (takeWord("null")) {
      return true;
    }
    value->kind = JsonKind::kNumber;
    return readNumber(&value->text);
  }

  bool readChildren(JsonValue* value, uint32_t depth) {
    const bool object = has('{');
    const char close = object ? '}' : ']';
    value->kind = object ? JsonKind::kObject : JsonKind::kArray;
    ++at_;
    skipSpace();
    if (take(close)) {
      return true;
    }
    JsonValue* last = nullptr;
    do {
      skipSpace();
      JsonText key;
      if (object && !readKey(&key)) {
        return false;
      }
      JsonValue* const child = readValue(depth + 1);
      if (child == nullptr) {
        return false;
      }
      child->key = key;
      child->has_key = object;
      (last != nullptr ? last->next : value->first) = child;
      last = child;
      ++value->count;
      skipSpace();
    } while (take(','));
    return take(close);
  }

  bool readKey(JsonText* key) {
    if (!has('"') || !readString(key)) {
      return false;
    }
    skipSpace();
    if (!take(':')) {
      return false;
    }
    skipSpace();
    return true;
  }

  bool readNumber(JsonText* out) {
    const size_t begin = at_;
    take('-');
    const size_t digits = at_;
    if (!skipDigits() || (text_[digits] == '0' && at_ - digits > 1)) {
      return false;
    }
    if (take('.') && !skipDigits()) {
      return false;
    }
    if (take('e') || take('E')) {
      if (!take('+')) {
        take('-');
      }
      if (!skipDigits()) {
        return false;
      }
    }
    *out = {text_ + begin, at_ - begin};
    return true;
  }
  bool skipDigits() {
    const size_t begin = at_;
    while (at_ < bytes_ && isDigit(text_[at_])) {
      ++at_;
    }
    return at_ != begin;
  }

  // In place where there are no escapes, else decoded: never longer than it is written.
  bool readString(JsonText* out) {
    const size_t begin = ++at_;
    bool escapes = false;
    while (at_ < bytes_ && text_[at_] != '"') {
      if (static_cast<uint8_t>(text_[at_]) < 0x20) {
        return false;
      }
      if (text_[at_] == '\\') {
        escapes = true;
        ++at_;
        if (at_ == bytes_) {
          return false;
        }
        ++at_;
        continue;
      }
      const Utf8Char c = decodeUtf8(text_ + at_, bytes_ - at_);
      if (!c.valid) {
        return false;
      }
      at_ += c.bytes;
    }
    if (at_ >= bytes_) {
      return false;
    }
    const size_t end = at_++;
    *out = {text_ + begin, end - begin};
    return !escapes || decode(begin, end, out);
  }

  bool decode(size_t begin, size_t end, JsonText* out) {
    char* const copy = scratch_->takeText(end - begin);
    if (copy == nullptr) {
      return false;
    }
    size_t n = 0;
    for (size_t at = begin; at < end; ++at) {
      if (text_[at] != '\\') {
        copy[n++] = text_[at];
        continue;
      }
      const char c = text_[++at];
      if (c == 'u') {
        uint32_t code = 0;
        if (!readHex(at + 1, end, &code)) {
          at_ = at;
          return false;
        }
        at += 4;
        uint32_t low = 0;
        if (code >= 0xD800 && code < 0xDC00 && end - at > 6 && text_[at + 1] == '\\' &&
            text_[at + 2] == 'u' && readHex(at + 3, end, &low) && low >= 0xDC00 && low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          at += 6;
        }
        const bool lone = code >= 0xD800 && code < 0xE000;
        n += encodeUtf8(lone ? kReplacementCharacter : code, copy + n);
        continue;
      }
      static constexpr char kFrom[] = "\"\\/bfnrt";
      static constexpr char kTo[] = "\"\\/\b\f\n\r\t";
      const char* const known = c != '\0' ? std::strchr(kFrom, c) : nullptr;
      if (known == nullptr) {
        at_ = at;
        return false;
      }
      copy[n++] = kTo[known - kFrom];
    }
    *out = {copy, n};
    return true;
  }

  bool readHex(size_t at, size_t end, uint32_t* code) const {
    *code = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const int digit = i < end ? hexDigit(text_[i]) : -1;
      if (digit < 0) {
        return false;
      }
      *code = *code << 4 | static_cast<uint32_t>(digit);
    }
    return true;
  }

  const char* const text_;
  const size_t bytes_;
  Scratch* const scratch_;
  size_t at_ = 0;
  bool too_deep_ = false;
};

void put(const char* text, const JsonSink& sink) { sink.write(text, std::strlen(text), sink.user); }

}  // namespace

bool JsonText::is(const char* other) const {
  return bytes == std::strlen(other) && std::memcmp(data, other, bytes) == 0;
}

bool JsonText::operator==(const JsonText& other) const {
  return bytes == other.bytes && (bytes == 0 || std::memcmp(data, other.data, bytes) == 0);
}

bool JsonValue::isInteger() const {
  return isNumber() && std::memchr(text.data, '.', text.bytes) == nullptr &&
         std::memchr(text.data, 'e', text.bytes) == nullptr &&
         std::memchr(text.data, 'E', text.bytes) == nullptr;
}

const JsonValue* JsonValue::find(const JsonText& name) const {
  const JsonValue* found = nullptr;
  for (const JsonValue* member = isObject() ? first : nullptr; member != nullptr;
       member = member->next) {
    found = member->key == name ? member : found;
  }
  return found;
}

const JsonValue* JsonValue::find(const char* name) const {
  return find(JsonText{name, std::strlen(name)});
}

Status parseJson(const char* text, size_t bytes, const char* what, const Log& log, Scratch* scratch,
                 const JsonValue** value) {
  *value = nullptr;
  if (bytes > kMaxJsonBytes) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "more than %zu bytes in %s: give less", kMaxJsonBytes,
                    what);
  }
  JsonReader reader(text, bytes, scratch);
  *value = reader.read();
  if (*value != nullptr) {
    return kOk;
  }
  if (scratch->failed()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to read %s: give less", what);
  }
  if (reader.tooDeep()) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "more than %u levels in %s: nest less", kMaxJsonDepth,
                    what);
  }
  return log.fail(ORIEL_ERROR_ARGUMENT, "no valid JSON at byte %zu of %s: correct it there",
                  reader.at(), what);
}

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

// Recursion is as deep as parseJson() allows.
void writeJson(const JsonValue& value, const JsonSink& sink) {
  switch (value.kind) {
    case JsonKind::kNull:
      put("null", sink);
      return;
    case JsonKind::kBool:
      put(value.boolean ? "true" : "false", sink);
      return;
    case JsonKind::kNumber:
      sink.write(value.text.data, value.text.bytes, sink.user);
      return;
    case JsonKind::kString:
      writeJsonString(value.text, sink);
      return;
    case JsonKind::kArray:
    case JsonKind::kObject:
      break;
  }
  put(value.isObject() ? "{" : "[", sink);
  for (const JsonValue* child = value.first; child != nullptr; child = child->next) {
    if (child != value.first) {
      put(",", sink);
    }
    if (value.isObject()) {
      writeJsonString(child->key, sink);
      put(":", sink);
    }
    writeJson(*child, sink);
  }
  put(value.isObject() ? "}" : "]", sink);
}

}  // namespace oriel_internal
