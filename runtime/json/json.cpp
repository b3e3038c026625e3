#include "json/json.h"

#include <algorithm>
#include <cstring>

#include "base/byte_order_mark.h"
#include "text/special_tokens.h"
#include "text/unicode.h"

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

// Parses JSON into an array of nodes in two passes: the first finds errors and counts nodes, the second writes them.

class JsonReader {
 public:
  enum class Error : uint8_t { kWrong, kTooDeep, kTooManyNames, kNameTwice };

  JsonReader(const char* text, size_t bytes, JsonRules rules, const StopCheck& stop,
             Scratch* scratch)
      : text_(text), bytes_(bytes), rules_(rules), scratch_(scratch), stop_(stop) {}

  /// Without nodes it only counts.
  bool read(JsonValue* nodes) {
    nodes_ = nodes;
    n_nodes_ = 0;
    at_ = next_look_ = byteOrderMarkBytes(text_, bytes_);
    skipSpace();
    const bool ok = readValue(0, JsonValue::kLast);
    skipSpace();
    return ok && at_ == bytes_ && !stopped_;
  }
  size_t at() const { return at_; }
  uint32_t nodes() const { return n_nodes_; }
  Error error() const { return error_; }
  bool stopped() const { return stopped_; }
  const JsonText& twice() const { return twice_; }

 private:
  /// NUL at the end, which JSON does not allow elsewhere.
  char now() const { return at_ < bytes_ ? text_[at_] : '\0'; }
  bool take(char c) {
    const bool there = now() == c;
    at_ += there ? 1 : 0;
    return there;
  }
  bool ask() {
    stopped_ = stopped_ || stop_();
    return !stopped_;
  }
  bool goesOn() {
    if (at_ < next_look_) {
      return true;
    }
    next_look_ = at_ + kJsonWorkBetweenStops;
    return ask();
  }
  template <typename Is>
  void skipWhile(const Is& is) {
    do {
      const size_t end = std::min(bytes_, next_look_);
      while (at_ < end && is(text_[at_])) {
        ++at_;
      }
    } while (at_ == next_look_ && at_ < bytes_ && goesOn());
  }
  void skipSpace() {
    skipWhile([](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  }
  bool skipDigits() {
    const size_t begin = at_;
    skipWhile([](char c) { return c >= '0' && c <= '9'; });
    return at_ != begin;
  }
  bool takeWord(const char* word) {
    const size_t n = std::strlen(word);
    if (bytes_ - at_ < n || std::memcmp(text_ + at_, word, n) != 0) {
      return false;
    }
    at_ += n;
    return true;
  }
  bool fail(Error error) {
    error_ = error;
    return false;
  }

  uint32_t put(JsonKind kind, uint32_t flags, const JsonText& text) {
    if (nodes_ != nullptr) {
      nodes_[n_nodes_].text_ = text;
      nodes_[n_nodes_].text_.mark = static_cast<uint32_t>(kind) | flags;
    }
    return n_nodes_++;
  }

  bool readValue(uint32_t depth, uint32_t flags) {
    if (!goesOn()) {
      return false;
    }
    const char c = now();
    if (c == '{' || c == '[') {
      return depth < kMaxJsonDepth ? readChildren(depth, flags) : fail(Error::kTooDeep);
    }
    JsonText text;
    JsonKind kind = JsonKind::kNull;
    bool ok = false;
    if (c == '"') {
      kind = JsonKind::kString;
      ok = readString(&text);
    } else if (c == 't' || c == 'f') {
      kind = JsonKind::kBool;
      text.bytes = c == 't' ? 1 : 0;
      ok = takeWord(c == 't' ? "true" : "false");
    } else if (c == 'n') {
      ok = takeWord("null");
    } else {
      kind = JsonKind::kNumber;
      ok = readNumber(&text);
    }
    put(kind, flags, text);
    return ok;
  }

  bool readChildren(uint32_t depth, uint32_t flags) {
    const bool is_object = now() == '{';
    const char close = is_object ? '}' : ']';
    const uint32_t node = put(is_object ? JsonKind::kObject : JsonKind::kArray, flags, {});
    uint32_t count = 0;
    uint32_t last = node;
    ++at_;
    skipSpace();
    if (!take(close)) {
      do {
        skipSpace();
        if (is_object && (count == kMaxJsonNames ? !fail(Error::kTooManyNames) : !readKey())) {
          return false;
        }
        last = n_nodes_;
        if (!readValue(depth + 1, is_object ? uint32_t{JsonValue::kMember} : 0)) {
          return false;
        }
        ++count;
        skipSpace();
      } while (take(','));
      if (!take(close)) {
        return false;
      }
    }
    const bool is_indexed = is_object && count > kMostNamesWithoutIndex;
    n_nodes_ += is_indexed ? nodesOfNames(count) : 0;
    return nodes_ == nullptr || endChildren(node, last, count, is_indexed);
  }

  bool endChildren(uint32_t node, uint32_t last, uint32_t count, bool is_indexed) {
    JsonValue* const value = nodes_ + node;
    value->text_.bytes = count;
    value->point(nodes_ + n_nodes_);
    if (count == 0) {
      return true;
    }
    nodes_[last].set(JsonValue::kLast);
    if (is_indexed) {
      return settleMany(value);
    }
    return !value->isObject() || settleFew(value);
  }

  bool readKey() {
    JsonText key;
    if (now() != '"' || !readString(&key)) {
      return false;
    }
    put(JsonKind::kNull, 0, key);
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
    if ((now() | 0x20) == 'e') {
      ++at_;
      at_ += now() == '+' || now() == '-' ? 1 : 0;
      if (!skipDigits()) {
        return false;
      }
    }
    *out = {text_ + begin, at_ - begin};
    return true;
  }

  // In place without escapes, otherwise decoded; decoding never lengthens it.
  bool readString(JsonText* out) {
    const size_t begin = ++at_;
    bool escapes = false;
    for (;;) {
      skipWhile([](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
      if (now() == '"') {
        break;
      }
      if (static_cast<uint8_t>(now()) < 0x20 || !goesOn()) {
        return false;
      }
      const bool escape = now() == '\\';
      const Utf8Char c = decodeUtf8(text_ + at_, bytes_ - at_);
      if (!c.valid) {
        return false;
      }
      at_ = std::min(bytes_, at_ + (escape ? 2 : c.bytes));
      escapes = escapes || escape;
    }
    const size_t end = at_++;
    *out = {text_ + begin, end - begin};
    return !escapes || decode(begin, end, out);
  }

  bool decode(size_t begin, size_t end, JsonText* out) {
    char* const copy = nodes_ != nullptr ? scratch_->takeText(end - begin) : nullptr;
    if (copy == nullptr && nodes_ != nullptr) {
      return false;
    }
    size_t n = 0;
    for (size_t at = begin; at < end; ++at) {
      char decoded[4] = {text_[at]};
      size_t n_decoded = 1;
      if (text_[at] == '\\' && !decodeEscape(&at, end, decoded, &n_decoded)) {
        at_ = at;
        return false;
      }
      for (size_t i = 0; i < n_decoded && copy != nullptr; ++i) {
        copy[n + i] = decoded[i];
      }
      n += n_decoded;
    }
    *out = {copy, n};
    return true;
  }

  // Leaves *at at the escape's last byte, or at the first wrong one.
  bool decodeEscape(size_t* at, size_t end, char* out, size_t* n) const {
    const char c = text_[++*at];
    if (c != 'u') {
      static constexpr char kFrom[] = "\"\\/bfnrt";
      static constexpr char kTo[] = "\"\\/\b\f\n\r\t";
      const char* const known = c != '\0' ? std::strchr(kFrom, c) : nullptr;
      out[0] = known != nullptr ? kTo[known - kFrom] : '\0';
      return known != nullptr;
    }
    uint32_t code = 0;
    if (!readHex(*at + 1, end, &code)) {
      return false;
    }
    *at += 4;
    uint32_t low = 0;
    if (code >= 0xD800 && code < 0xDC00 && end - *at > 6 && text_[*at + 1] == '\\' &&
        text_[*at + 2] == 'u' && readHex(*at + 3, end, &low) && low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      *at += 6;
    }
    const bool lone = code >= 0xD800 && code < 0xE000;
    if (lone && rules_ == JsonRules::kStrict) {
      return false;
    }
    *n = encodeUtf8(lone ? kReplacementCharacter : code, out);
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

  // ---- Names in an object --------------------------------------------------------------------------

  // `last` replaces the value at the place of `first`.
  bool replace(JsonValue* first, JsonValue* last) {
    const uint32_t distance = static_cast<uint32_t>(last - first);
    first[-1].text_.mark = last[-1].text_.mark = distance;
    first->set(JsonValue::kReplaced);
    last->set(JsonValue::kMoved);
    twice_ = first->key();
    return rules_ != JsonRules::kStrict || fail(Error::kNameTwice);
  }

  // Compares few names pairwise.
  bool settleFew(JsonValue* object) {
    const auto beside = [](JsonValue* of) {
      return of->has(JsonValue::kLast) ? nullptr : const_cast<JsonValue*>(of->beside());
    };
    for (JsonValue* one = object + 2; one != nullptr; one = beside(one)) {
      JsonValue* last = nullptr;
      for (JsonValue* other = beside(one); other != nullptr; other = beside(other)) {
        if (!one->has(JsonValue::kSkipped) && one->key() == other->key()) {
          other->set(JsonValue::kSkipped);
          last = other;
          --object->text_.bytes;
        }
      }
      if (last != nullptr && !replace(one, last)) {
        return false;
      }
    }
    return true;
  }

  // Sorts many names and searches by bisection.
  bool settleMany(JsonValue* object) {
    const uint32_t count = object->count();
    JsonName* const names = object->names(count);
    uint32_t n = 0;
    for (const JsonValue* one = object + 2; n < count; one = one->beside()) {
      names[n++] = {hashOfName(one->key()), static_cast<uint32_t>(one - object)};
      if (one->has(JsonValue::kLast)) {
        break;
      }
    }
    object->set(JsonValue::kIndexed);
    if (!sortNames(object, names, n)) {
      return false;
    }
    uint32_t n_kept = 0;
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t last = i;
      for (; last + 1 < n && compareNames(object, names[i], names[last + 1]) == 0; ++last) {
        object[names[last + 1].place].set(JsonValue::kSkipped);
      }
      if (last != i && !replace(object + names[i].place, object + names[last].place)) {
        return false;
      }
      i = last;
      names[n_kept++] = names[last];
    }
    object->text_.bytes = n_kept;
    std::memmove(object->names(n_kept), names, n_kept * sizeof(JsonName));
    return true;
  }

  // A heap sort: the number of comparisons does not depend on the names.
  bool sortNames(const JsonValue* object, JsonName* names, uint32_t n) {
    for (uint32_t i = n / 2; i-- > 0;) {
      if (!sink(object, names, i, n)) {
        return false;
      }
    }
    for (uint32_t end = n - 1; end > 0; --end) {
      std::swap(names[0], names[end]);
      if (!sink(object, names, 0, end)) {
        return false;
      }
    }
    return true;
  }

  bool sink(const JsonValue* object, JsonName* names, uint32_t at, uint32_t n) {
    const auto isBefore = [&](const JsonName& a, const JsonName& b) {
      if (a.hash != b.hash) {
        return a.hash < b.hash;
      }
      const int order = compareNames(object, a, b);
      return order != 0 ? order < 0 : a.place < b.place;
    };
    for (uint32_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
      compared_ += 2;
      if (compared_ >= kJsonWorkBetweenStops) {
        compared_ = 0;
        if (!ask()) {
          return false;
        }
      }
      child += child + 1 < n && isBefore(names[child], names[child + 1]) ? 1 : 0;
      if (!isBefore(names[at], names[child])) {
        break;
      }
      std::swap(names[at], names[child]);
      at = child;
    }
    return true;
  }

  const char* const text_;
  const size_t bytes_;
  const JsonRules rules_;
  Scratch* const scratch_;
  const StopCheck stop_;
  JsonValue* nodes_ = nullptr;
  uint32_t n_nodes_ = 0;
  size_t at_ = 0;
  size_t next_look_ = 0;
  uint32_t compared_ = 0;
  Error error_ = Error::kWrong;
  JsonText twice_;
  bool stopped_ = false;
};

Status parseJson(const char* text, size_t bytes, const char* what, const StopCheck& stop,
                 const Log& log, Scratch* scratch, const JsonValue** value, JsonRules rules) {
  *value = nullptr;
  if (bytes > kMaxJsonBytes) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "more than %zu bytes in %s: give less", kMaxJsonBytes,
                    what);
  }
  JsonReader reader(text, bytes, rules, stop, scratch);
  if (reader.read(nullptr)) {
    // Every node is fully written.
    void* const room = scratch->takeText(uint64_t{reader.nodes()} * sizeof(JsonValue));
    JsonValue* const nodes = static_cast<JsonValue*>(room);
    if (nodes != nullptr && reader.read(nodes)) {
      *value = nodes;
      return kOk;
    }
  }
  if (reader.stopped()) {
    return ORIEL_ERROR_CANCELLED;
  }
  if (scratch->failed()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to read %s: give less", what);
  }
  switch (reader.error()) {
    case JsonReader::Error::kTooDeep:
      return log.fail(ORIEL_ERROR_ARGUMENT, "more than %u levels in %s: nest less", kMaxJsonDepth,
                      what);
    case JsonReader::Error::kTooManyNames:
      return log.fail(ORIEL_ERROR_ARGUMENT, "more than %u names in one object of %s: give fewer",
                      kMaxJsonNames, what);
    case JsonReader::Error::kNameTwice:
      return log.fail(ORIEL_ERROR_ARGUMENT, "the name \"%.*s\" occurs twice in %s: remove one",
                      static_cast<int>(std::min<uint32_t>(reader.twice().bytes, 60)),
                      reader.twice().data, what);
    case JsonReader::Error::kWrong:
      break;
  }
  return log.fail(ORIEL_ERROR_ARGUMENT, "invalid JSON at byte %zu of %s: correct it there",
                  reader.at(), what);
}

}  // namespace oriel_internal
