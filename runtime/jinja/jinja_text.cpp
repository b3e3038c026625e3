#include "jinja/jinja_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "text/unicode.h"

namespace oriel_internal::jinja {
namespace {

constexpr size_t kMostTextBytes = size_t{1} << 30;
constexpr size_t kFirstBytes = 96;
constexpr uint32_t kFirstRuns = 4;
constexpr uint64_t kUnitsOfRun = 8;      // to read and write it
constexpr uint64_t kUnitsOfAppend = 16;  // besides the bytes
constexpr uint64_t kUnitsOfChar = 4;     // to find its end
constexpr size_t kComparedAUnit = 4;     // bytes

Ref<Buffer> makeBuffer(Heap* heap, size_t bytes) {
  if (bytes > kMostTextBytes) {
    heap->take(SIZE_MAX);
    return {};
  }
  const size_t all = Heap::roundUp(sizeof(Buffer) + bytes);
  Buffer* const buffer = make<Buffer>(heap, Kind::kBuffer, all - sizeof(Buffer));
  if (buffer != nullptr) {
    buffer->capacity = static_cast<uint32_t>(all - sizeof(Buffer));
  }
  return Ref<Buffer>(buffer);
}

Ref<Runs> makeRuns(Heap* heap, uint32_t capacity) {
  Runs* const runs = make<Runs>(heap, Kind::kRuns, size_t{capacity} * sizeof(Run));
  if (runs != nullptr) {
    runs->capacity = capacity;
  }
  return Ref<Runs>(runs);
}

void pushRun(Runs* runs, size_t end, TextOrigin source) {
  if (runs->count > 0 && runs->run()[runs->count - 1].source == source) {
    runs->run()[runs->count - 1].end = static_cast<uint32_t>(end);
    return;
  }
  runs->run()[runs->count++] = {static_cast<uint32_t>(end), source};
}

uint32_t countRuns(const Str& text) {
  uint32_t n = 0;
  forEachRun(text, 0, text.bytes, [&](size_t, size_t, TextOrigin) { ++n; });
  return n;
}

// Runs of a + b; null if all bytes have one source.
bool joinRuns(Heap* heap, const Str& a, const Str& b, Ref<Runs>* out) {
  const uint32_t count = countRuns(a) + countRuns(b);
  Ref<Runs> runs = makeRuns(heap, count);
  if (!runs || !heap->spend(kUnitsOfRun * count)) {
    return false;
  }
  forEachRun(a, 0, a.bytes,
             [&](size_t, size_t end, TextOrigin source) { pushRun(runs.get(), end, source); });
  forEachRun(b, 0, b.bytes, [&](size_t, size_t end, TextOrigin source) {
    pushRun(runs.get(), a.bytes + end, source);
  });
  *out = std::move(runs);
  return true;
}

Value textOf(Heap* heap, const char* data, size_t bytes, Ref<Buffer> buffer, Ref<Runs> runs,
             TextOrigin source) {
  Text* const text = make<Text>(heap, Kind::kText);
  if (text == nullptr) {
    return {};
  }
  text->data = data;
  text->bytes = static_cast<uint32_t>(bytes);
  text->source = source;
  text->buffer = buffer.handOver();
  text->runs = runs.handOver();
  return Value::object(text);
}

bool endsBuffer(const Value& a, const Value& b) {
  if (!a.is(Kind::kText)) {
    return false;
  }
  Text* const text = a.as<Text>();
  Buffer* const buffer = text->buffer;
  return buffer != nullptr && text->data + text->bytes == buffer->data() + buffer->used &&
         buffer->capacity - buffer->used >= strOf(b).bytes;
}

bool isAscii(char c) { return static_cast<uint8_t>(c) < 0x80; }

bool isAsciiSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
}

// memchr() processes many bytes at once.
constexpr size_t kBytesAtOnce = 16;

bool spend(size_t bytes, uint64_t* work) {
  *work -= bytes < *work ? bytes : *work;
  return *work > 0;
}

bool standsAt(const Str& text, const Str& part, size_t at, uint64_t* work) {
  size_t same = 0;
  while (same < part.bytes && text[at + same] == part[same]) {
    ++same;
  }
  return spend(same + 1, work) && same == part.bytes;
}

}  // namespace

bool Str::is(const char* other) const {
  return bytes == std::strlen(other) && std::memcmp(data, other, bytes) == 0;
}

Str strOf(const Value& value) {
  if (value.is(Kind::kView)) {
    const JsonText* const text = value.text();
    return {text->bytes > 0 ? text->data : "", text->bytes, value.source(), nullptr, 0};
  }
  const Text* const text = value.as<Text>();
  return {text->data, text->bytes, text->source, text->runs, text->offset};
}

bool equal(Heap* heap, const Str& a, const Str& b) {
  return a.bytes == b.bytes && heap->spend(1 + a.bytes / kComparedAUnit) &&
         std::memcmp(a.data, b.data, a.bytes) == 0;
}

int compare(Heap* heap, const Str& a, const Str& b) {
  if (!heap->spend(1 + std::min(a.bytes, b.bytes) / kComparedAUnit)) {
    return 0;
  }
  const int order = std::memcmp(a.data, b.data, a.bytes < b.bytes ? a.bytes : b.bytes);
  return order != 0 ? order : a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : 0;
}

size_t find(const Str& text, const Str& part, size_t from, uint64_t* work) {
  if (part.bytes == 0) {
    return from <= text.bytes ? from : kNotFound;
  }
  while (from <= text.bytes && part.bytes <= text.bytes - from) {
    const size_t begin = from;
    const void* const at =
        std::memchr(text.data + from, part.data[0], text.bytes - part.bytes + 1 - from);
    if (at == nullptr) {
      return kNotFound;
    }
    from = static_cast<size_t>(static_cast<const char*>(at) - text.data);
    if (!spend((from - begin) / kBytesAtOnce, work)) {
      return kNotFound;
    }
    if (standsAt(text, part, from, work)) {
      return from;
    }
    ++from;
  }
  return kNotFound;
}

size_t findLast(const Str& text, const Str& part, size_t end, uint64_t* work) {
  if (part.bytes > end) {
    return kNotFound;
  }
  for (size_t at = end - part.bytes + 1; at > 0; --at) {
    if (standsAt(text, part, at - 1, work)) {
      return at - 1;
    }
  }
  return kNotFound;
}

size_t nextChar(const Str& text, size_t at) {
  if (isAscii(text[at])) {
    return at + 1;
  }
  return at + decodeUtf8(text.data + at, text.bytes - at).bytes;
}

size_t previousChar(const Str& text, size_t at) {
  const size_t least = at > kMaxUtf8Bytes ? at - kMaxUtf8Bytes : 0;
  for (size_t begin = at - 1; begin + 1 > least; --begin) {
    if ((static_cast<uint8_t>(text.data[begin]) & 0xC0) != 0x80) {
      const Utf8Char c = decodeUtf8(text.data + begin, at - begin);
      return c.valid && begin + c.bytes == at ? begin : at - 1;
    }
    if (begin == 0) {
      break;
    }
  }
  return at - 1;
}

size_t countChars(Heap* heap, const Str& text) {
  if (!heap->spend(1 + kUnitsOfChar * text.bytes)) {
    return 0;
  }
  size_t n = 0;
  for (size_t at = 0; at < text.bytes; ++n) {
    at = nextChar(text, at);
  }
  return n;
}

bool isSpace(uint32_t code_point) {
  return charClass(code_point) == CharClass::kSpace || (code_point >= 0x1C && code_point <= 0x1F);
}

size_t skipSpace(const char* data, size_t bytes, size_t at) {
  while (at < bytes) {
    if (isAscii(data[at])) {
      if (!isAsciiSpace(data[at])) {
        break;
      }
      ++at;
      continue;
    }
    const Utf8Char c = decodeUtf8(data + at, bytes - at);
    if (!c.valid || !isSpace(c.code_point)) {
      break;
    }
    at += c.bytes;
  }
  return at;
}

size_t spaceBefore(const char* data, size_t end) {
  const Str text = {data, end, 0, nullptr, 0};
  while (end > 0) {
    if (isAscii(data[end - 1])) {
      if (!isAsciiSpace(data[end - 1])) {
        break;
      }
      --end;
      continue;
    }
    const size_t begin = previousChar(text, end);
    const Utf8Char c = decodeUtf8(data + begin, end - begin);
    if (!c.valid || !isSpace(c.code_point)) {
      break;
    }
    end = begin;
  }
  return end;
}

Value sub(Heap* heap, const Value& text, size_t begin, size_t end) {
  const Str whole = strOf(text);
  if (begin == 0 && end == whole.bytes) {
    return text;
  }
  Text* const part = make<Text>(heap, Kind::kText);
  if (part == nullptr) {
    return {};
  }
  part->data = whole.data + begin;
  part->bytes = static_cast<uint32_t>(end - begin);
  part->source = whole.source;
  uint32_t n_runs = 0;
  if (whole.runs != nullptr) {
    forEachRun(whole, begin, end, [&](size_t, size_t, TextOrigin source) {
      ++n_runs;
      part->source = source;
    });
  }
  (void)heap->spend(kUnitsOfRun * n_runs);
  if (n_runs > 1) {
    part->runs = whole.runs;
    part->offset = whole.offset + static_cast<uint32_t>(begin);
    retain(part->runs);
  }
  if (text.is(Kind::kText)) {
    part->buffer = text.as<Text>()->buffer;
    retain(part->buffer);
  }
  Value value = Value::object(part);
  value.setSafe(text.safe());
  return value;
}

void TextBuilder::reserve(size_t bytes) {
  if (!failed_) {
    makeRoom(bytes);
  }
}

bool TextBuilder::makeRoom(size_t bytes) {
  if (buffer_ && buffer_->capacity - buffer_->used >= bytes) {
    return true;
  }
  const size_t used = buffer_ ? buffer_->used : 0;
  const size_t wanted = used + bytes;
  Ref<Buffer> larger =
      makeBuffer(heap_, wanted + used / 2 < kFirstBytes ? kFirstBytes : wanted + used / 2);
  if (!larger || !heap_->spend(used)) {
    failed_ = true;
    return false;
  }
  if (used > 0) {
    std::memcpy(larger->data(), buffer_->data(), used);
  }
  larger->used = static_cast<uint32_t>(used);
  buffer_ = std::move(larger);
  return true;
}

bool TextBuilder::growRuns() {
  Ref<Runs> larger = makeRuns(heap_, runs_ ? runs_->capacity * 2 : kFirstRuns);
  if (!larger) {
    failed_ = true;
    return false;
  }
  if (runs_) {
    std::memcpy(larger->run(), runs_->run(), runs_->count * sizeof(Run));
    larger->count = runs_->count;
  }
  runs_ = std::move(larger);
  return true;
}

// Runs are recorded from the second source on.
bool TextBuilder::note(size_t bytes, TextOrigin source) {
  const size_t used = buffer_->used;
  if (!runs_ && (used == 0 || source == source_)) {
    source_ = source;
    return true;
  }
  if (!runs_) {
    if (!growRuns()) {
      return false;
    }
    pushRun(runs_.get(), used, source_);
  }
  if (runs_->count == runs_->capacity && !growRuns()) {
    return false;
  }
  pushRun(runs_.get(), used + bytes, source);
  return true;
}

void TextBuilder::append(const char* data, size_t bytes, TextOrigin source) {
  if (failed_ || bytes == 0 || !makeRoom(bytes) || !note(bytes, source)) {
    return;
  }
  if (!heap_->spend(kUnitsOfAppend + bytes)) {
    failed_ = true;
    return;
  }
  std::memcpy(buffer_->data() + buffer_->used, data, bytes);
  buffer_->used += static_cast<uint32_t>(bytes);
}

void TextBuilder::append(const char* text, TextOrigin source) {
  append(text, std::strlen(text), source);
}

void TextBuilder::append(const Str& text, size_t begin, size_t end) {
  forEachRun(text, begin, end, [&](size_t from, size_t to, TextOrigin source) {
    append(text.data + from, to - from, source);
  });
}

Str TextBuilder::written() const {
  if (!buffer_) {
    return {};
  }
  return {buffer_->data(), buffer_->used, source_, runs_.get(), 0};
}

bool TextBuilder::finish(Value* text) {
  if (failed_) {
    return false;
  }
  if (!buffer_) {
    static constexpr JsonText kEmpty = {"", 0};
    *text = Value::view(&kEmpty);
    return true;
  }
  const size_t old_bytes = sizeof(Buffer) + buffer_->capacity;
  const size_t bytes = heap_->shrink(buffer_.get(), old_bytes, sizeof(Buffer) + buffer_->used);
  buffer_->capacity = static_cast<uint32_t>(bytes - sizeof(Buffer));
  const char* const data = buffer_->data();
  const size_t used = buffer_->used;
  *text = textOf(heap_, data, used, std::move(buffer_), std::move(runs_), source_);
  source_ = 0;
  return !text->isUndefined();
}

bool concat(Heap* heap, const Value& a, const Value& b, Value* out) {
  const Str left = strOf(a);
  const Str right = strOf(b);
  if (left.bytes == 0 || right.bytes == 0) {
    *out = left.bytes == 0 ? b : a;
    return true;
  }
  Ref<Buffer> buffer;
  const char* data = left.data;
  if (endsBuffer(a, b)) {
    buffer = Ref<Buffer>::share(a.as<Text>()->buffer);
  } else {
    const size_t again = a.is(Kind::kText) ? left.bytes / 2 : 0;  // appending tends to repeat
    buffer = makeBuffer(heap, left.bytes + right.bytes + again);
    if (!buffer || !heap->spend(left.bytes)) {
      return false;
    }
    std::memcpy(buffer->data(), left.data, left.bytes);
    buffer->used = static_cast<uint32_t>(left.bytes);
    data = buffer->data();
  }
  if (!heap->spend(kUnitsOfAppend + right.bytes)) {
    return false;
  }
  std::memcpy(buffer->data() + buffer->used, right.data, right.bytes);
  buffer->used += static_cast<uint32_t>(right.bytes);
  Ref<Runs> runs;
  const bool one_source =
      left.runs == nullptr && right.runs == nullptr && left.source == right.source;
  if (!one_source && !joinRuns(heap, left, right, &runs)) {
    return false;
  }
  *out =
      textOf(heap, data, left.bytes + right.bytes, std::move(buffer), std::move(runs), left.source);
  return !out->isUndefined();
}

namespace {

size_t readDigits(const char* text, size_t bytes, uint32_t base, size_t most, uint32_t* value) {
  size_t n = 0;
  *value = 0;
  for (; n < most && n < bytes; ++n) {
    const char c = text[n];
    const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                           : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                           : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                                  : 99;
    if (digit >= base) {
      break;
    }
    *value = *value * base + digit;
  }
  return n;
}

bool isCharacter(uint32_t code_point) {
  return code_point <= 0x10FFFF && (code_point < 0xD800 || code_point >= 0xE000);
}

}  // namespace

size_t readEscape(const char* text, size_t bytes, uint32_t* code_point) {
  static constexpr char kFrom[] = "nt\\'\"rabfv";
  static constexpr char kTo[] = "\n\t\\'\"\r\a\b\f\v";
  const char c = text[1];
  if (c == '\n') {
    *code_point = kLineJoined;
    return 2;
  }
  if (const char* const known = c != '\0' ? std::strchr(kFrom, c) : nullptr; known != nullptr) {
    *code_point = static_cast<uint8_t>(kTo[known - kFrom]);
    return 2;
  }
  if (c >= '0' && c <= '7') {
    return 1 + readDigits(text + 1, bytes - 1, 8, 3, code_point);
  }
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0) {
    *code_point = kNoEscape;
    return 1;
  }
  const bool read = readDigits(text + 2, bytes - 2, 16, digits, code_point) == digits;
  return read && isCharacter(*code_point) ? 2 + digits : 0;
}

}  // namespace oriel_internal::jinja
