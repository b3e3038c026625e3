#include "jinja/jinja_value.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace oriel_internal::jinja {
namespace {

// Capacity of a list or dict; more than any heap holds.
constexpr size_t kMost = size_t{1} << 27;
constexpr uint64_t kUnitsOfElement = 16;  // to append and drop it
constexpr uint64_t kUnitsOfName = 8;      // to look it up
constexpr uint32_t kFewEntries = 8;       // searched linearly

template <typename T>
size_t bytesOf(const T& object, size_t element_bytes) {
  return sizeof(T) + object.capacity * element_bytes;
}

void dropEntries(Scope* scope, Heap* heap) {
  for (uint32_t i = 0; i < scope->count; ++i) {
    scope->entries[i].~ScopeEntry();
  }
  if (scope->entries != nullptr) {
    heap->give(scope->entries, scope->capacity * sizeof(ScopeEntry));
  }
  if (scope->slots != nullptr) {
    heap->give(scope->slots, scope->capacity * 2 * sizeof(uint32_t));
  }
  release(scope->parent);
}

size_t destroyList(List* list) {
  for (uint32_t i = 0; i < list->count; ++i) {
    list->items()[i].~Value();
  }
  return bytesOf(*list, sizeof(Value));
}

size_t destroyDict(Dict* dict) {
  for (uint32_t i = 0; i < dict->count; ++i) {
    dict->entries()[i].~DictEntry();
  }
  return bytesOf(*dict, sizeof(DictEntry));
}

size_t destroyText(Text* text) {
  release(text->buffer);
  release(text->runs);
  return sizeof(Text);
}

size_t destroyLoop(Loop* loop) {
  loop->previous.~Value();
  loop->current.~Value();
  loop->next.~Value();
  loop->changed.~Value();
  return sizeof(Loop);
}

size_t destroyParts(Object* object, Heap* heap) {
  switch (object->kind) {
    case Kind::kText:
      return destroyText(static_cast<Text*>(object));
    case Kind::kList:
      return destroyList(static_cast<List*>(object));
    case Kind::kDict:
      return destroyDict(static_cast<Dict*>(object));
    case Kind::kMacro:
      release(static_cast<Macro*>(object)->scope);
      return sizeof(Macro);
    case Kind::kLoop:
      return destroyLoop(static_cast<Loop*>(object));
    case Kind::kNamespace:
    case Kind::kScope:
      dropEntries(static_cast<Scope*>(object), heap);
      return sizeof(Scope);
    case Kind::kBuffer:
      return bytesOf(*static_cast<Buffer*>(object), 1);
    case Kind::kRuns:
      return bytesOf(*static_cast<Runs*>(object), sizeof(Run));
    default:
      return sizeof(Range);
  }
}

}  // namespace

void destroy(Object* object, Heap* heap) { heap->give(object, destroyParts(object, heap)); }

void Value::swap(Value* other) noexcept {
  std::swap(kind_, other->kind_);
  std::swap(safe_, other->safe_);
  std::swap(source_, other->source_);
  std::swap(bits_, other->bits_);
}

Value Value::undefined(const JsonText* name) {
  Value value;
  value.bits_.text = name;
  return value;
}

Value Value::none() {
  Value value;
  value.kind_ = Kind::kNone;
  return value;
}

Value Value::boolean(bool boolean) {
  Value value;
  value.kind_ = Kind::kBool;
  value.bits_.integer = boolean ? 1 : 0;
  return value;
}

Value Value::integer(int64_t integer) {
  Value value;
  value.kind_ = Kind::kInt;
  value.bits_.integer = integer;
  return value;
}

Value Value::real(double real) {
  Value value;
  value.kind_ = Kind::kFloat;
  value.bits_.real = real;
  return value;
}

Value Value::view(const JsonText* text, TextOrigin source) {
  Value value;
  value.kind_ = Kind::kView;
  value.source_ = source;
  value.bits_.text = text;
  return value;
}

Value Value::json(const JsonValue* json, TextOrigin source) {
  source = json->origin() != 0 ? json->origin() : source;
  Value value;
  switch (json->kind()) {
    case JsonKind::kNull:
      value.kind_ = Kind::kNone;
      break;
    case JsonKind::kBool:
      value = boolean(json->boolean());
      break;
    case JsonKind::kNumber:
      value = numberOf(*json);
      break;
    case JsonKind::kString:
      return view(&json->text(), json->trusted() ? 0 : source);
    case JsonKind::kArray:
    case JsonKind::kObject:
      value.kind_ = json->isArray() ? Kind::kJsonList : Kind::kJsonDict;
      value.bits_.json = json;
      break;
  }
  value.source_ = source;
  return value;
}

Value Value::asWritten(const JsonText* number) {
  Value value = undefined(number);
  value.kind_ = Kind::kAsWritten;
  return value;
}

Value Value::builtin(uint32_t id) {
  Value value = integer(id);
  value.kind_ = Kind::kBuiltin;
  return value;
}

Value Value::method(const JsonText* name) {
  Value value = undefined(name);
  value.kind_ = Kind::kMethod;
  return value;
}

Value Value::object(Object* object) {
  Value value;
  if (object != nullptr) {
    value.kind_ = object->kind;
    value.bits_.object = object;
  }
  return value;
}

Ref<List> makeList(Heap* heap, size_t capacity) {
  const size_t bytes =
      Heap::roundUp(sizeof(List) + (capacity < kMost ? capacity : kMost) * sizeof(Value));
  List* const list = make<List>(heap, Kind::kList, bytes - sizeof(List));
  if (list != nullptr) {
    list->capacity = static_cast<uint32_t>((bytes - sizeof(List)) / sizeof(Value));
  }
  return Ref<List>(list);
}

void pushTo(List* list, Value value) {
  (void)list->heap->spend(kUnitsOfElement);
  new (list->items() + list->count) Value(std::move(value));
  ++list->count;
}

bool growList(Heap* heap, Ref<List>* list, Value value) {
  List* const old = list->get();
  if (old->count == old->capacity) {
    Ref<List> larger = makeList(heap, size_t{old->capacity} * 2 + 4);
    if (!larger) {
      return false;
    }
    for (uint32_t i = 0; i < old->count; ++i) {
      pushTo(larger.get(), std::move(old->items()[i]));
    }
    larger->shape = old->shape;
    *list = std::move(larger);
  }
  pushTo(list->get(), std::move(value));
  return true;
}

Ref<Dict> makeDict(Heap* heap, size_t capacity) {
  const size_t places = capacity < kMost ? capacity : kMost;
  Dict* const dict = make<Dict>(heap, Kind::kDict, places * sizeof(DictEntry));
  if (dict != nullptr) {
    dict->capacity = static_cast<uint32_t>(places);
  }
  return Ref<Dict>(dict);
}

uint32_t Scope::slotOf(const Symbol* name) const {
  const uint32_t mask = 2 * capacity - 1;
  uint32_t slot = static_cast<uint32_t>(
                      (reinterpret_cast<uintptr_t>(name) * uint64_t{0x9E3779B97F4A7C15}) >> 32) &
                  mask;
  while (slots[slot] != 0 && entries[slots[slot] - 1].name != name) {
    slot = (slot + 1) & mask;
    (void)heap->spend(1);
  }
  return slot;
}

Value* Scope::find(const Symbol* name) {
  (void)heap->spend(kUnitsOfName);
  if (slots != nullptr) {
    const uint32_t place = slots[slotOf(name)];
    return place != 0 ? &entries[place - 1].value : nullptr;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (entries[i].name == name) {
      return &entries[i].value;
    }
  }
  return nullptr;
}

namespace {

// The capacity is a power of two.
bool hashEntries(Heap* heap, Scope* scope) {
  const size_t bytes = size_t{scope->capacity} * 2 * sizeof(uint32_t);
  scope->slots = static_cast<uint32_t*>(heap->take(bytes));
  if (scope->slots == nullptr) {
    return false;
  }
  std::memset(scope->slots, 0, bytes);
  (void)heap->spend(scope->capacity * kUnitsOfName);
  for (uint32_t i = 0; i < scope->count; ++i) {
    scope->slots[scope->slotOf(scope->entries[i].name)] = i + 1;
  }
  return true;
}

}  // namespace

bool setIn(Heap* heap, Scope* scope, const Symbol* name, Value value) {
  if (Value* const known = scope->find(name); known != nullptr) {
    *known = std::move(value);
    return true;
  }
  if (scope->count == scope->capacity) {
    const uint32_t capacity = scope->capacity == 0 ? 2 : scope->capacity * 2;
    auto* const larger = static_cast<ScopeEntry*>(heap->take(capacity * sizeof(ScopeEntry)));
    if (larger == nullptr) {
      return false;
    }
    for (uint32_t i = 0; i < scope->count; ++i) {
      new (larger + i) ScopeEntry(std::move(scope->entries[i]));
      scope->entries[i].~ScopeEntry();
    }
    if (scope->entries != nullptr) {
      heap->give(scope->entries, scope->capacity * sizeof(ScopeEntry));
    }
    if (scope->slots != nullptr) {
      heap->give(scope->slots, scope->capacity * 2 * sizeof(uint32_t));
      scope->slots = nullptr;
    }
    scope->entries = larger;
    scope->capacity = capacity;
    if (capacity > kFewEntries && !hashEntries(heap, scope)) {
      return false;
    }
  }
  new (scope->entries + scope->count) ScopeEntry{name, std::move(value)};
  ++scope->count;
  if (scope->slots != nullptr) {
    scope->slots[scope->slotOf(name)] = scope->count;
  }
  return true;
}

namespace {

constexpr int kMaxDigits = 17;              // of a double
constexpr size_t kMaxReadBytes = 400;       // of a parsed number
constexpr double kFewDigitsBelow = 1e-290;  // doubles have fewer than 15 digits there

struct Decimal {
  char digits[kMaxDigits + 1] = "";
  int n = 0;
  int exponent = 0;  // of the first digit
};

Decimal digitsOf(double value, int precision) {
  char text[64] = "";
  std::snprintf(text, sizeof text, "%.*e", precision - 1, value);
  Decimal decimal;
  const char* at = text;
  for (; *at != '\0' && *at != 'e'; ++at) {
    if (*at >= '0' && *at <= '9' && decimal.n < kMaxDigits) {
      decimal.digits[decimal.n++] = *at;
    }
  }
  decimal.exponent = *at == 'e' ? std::atoi(at + 1) : 0;
  while (decimal.n > 1 && decimal.digits[decimal.n - 1] == '0') {
    --decimal.n;
  }
  decimal.digits[decimal.n] = '\0';
  return decimal;
}

bool givesAgain(double value, int precision) {
  char text[64] = "";
  std::snprintf(text, sizeof text, "%.*e", precision - 1, value);
  return std::strtod(text, nullptr) == value;  // snprintf and strtod use the same decimal point
}

Decimal shortest(double value) {
  int precision = value < kFewDigitsBelow ? 1 : 15;
  while (precision < kMaxDigits && !givesAgain(value, precision)) {
    ++precision;
  }
  return digitsOf(value, precision);
}

int layOut(const Decimal& d, char* out) {
  if (d.exponent < -4 || d.exponent >= 16) {
    return std::snprintf(out, kMaxNumberBytes, "%c%s%se%+03d", d.digits[0], d.n > 1 ? "." : "",
                         d.digits + 1, d.exponent);
  }
  if (d.exponent < 0) {
    return std::snprintf(out, kMaxNumberBytes, "0.%.*s%s", -d.exponent - 1, "0000", d.digits);
  }
  const int whole = d.exponent + 1;
  if (d.n <= whole) {
    return std::snprintf(out, kMaxNumberBytes, "%s%.*s.0", d.digits, whole - d.n,
                         "0000000000000000");
  }
  return std::snprintf(out, kMaxNumberBytes, "%.*s.%s", whole, d.digits, d.digits + whole);
}

// The locale's decimal point.
size_t decimalPoint(char* out) {
  char half[16] = "";
  const int n = std::snprintf(half, sizeof half, "%.1f", 0.5);
  const size_t bytes = n > 2 ? static_cast<size_t>(n) - 2 : 0;
  std::memcpy(out, half + 1, bytes);
  return bytes;
}

bool isNumberByte(char c) {
  return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

bool isWord(const char* text, size_t bytes, const char* word) {
  for (size_t i = 0; i < bytes; ++i) {
    const char c = text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 32) : text[i];
    if (c != word[i]) {
      return false;
    }
  }
  return bytes > 0 && word[bytes] == '\0';
}

}  // namespace

size_t writeFloat(double value, char* out) {
  if (std::isnan(value) || std::isinf(value)) {
    std::strcpy(out, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return std::strlen(out);
  }
  size_t n = 0;
  if (std::signbit(value)) {
    out[n++] = '-';
    value = -value;
  }
  return n + static_cast<size_t>(layOut(shortest(value), out + n));
}

size_t writeInteger(int64_t value, char* out) {
  return static_cast<size_t>(std::snprintf(out, kMaxNumberBytes, "%" PRId64, value));
}

bool readInteger(const char* text, size_t bytes, uint32_t base, int64_t* value) {
  const bool negative = bytes > 0 && text[0] == '-';
  const size_t begin = negative || (bytes > 0 && text[0] == '+') ? 1 : 0;
  uint64_t all = 0;
  for (size_t i = begin; i < bytes; ++i) {
    const char c = text[i];
    const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                           : c >= 'a' && c <= 'z' ? static_cast<uint32_t>(c - 'a' + 10)
                           : c >= 'A' && c <= 'Z' ? static_cast<uint32_t>(c - 'A' + 10)
                                                  : 99;
    if (digit >= base || all > (static_cast<uint64_t>(INT64_MAX) - digit) / base) {
      return false;
    }
    all = all * base + digit;
  }
  *value = negative ? -static_cast<int64_t>(all) : static_cast<int64_t>(all);
  return bytes > begin;
}

bool readFloat(const char* text, size_t bytes, double* value) {
  const size_t sign = bytes > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (isWord(text + sign, bytes - sign, "inf") || isWord(text + sign, bytes - sign, "infinity")) {
    *value = text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
  }
  if (isWord(text + sign, bytes - sign, "nan")) {
    *value = std::nan("");
    return true;
  }
  char copy[kMaxReadBytes + 16] = "";
  size_t n = 0;
  for (size_t i = 0; i < bytes; ++i) {
    if (!isNumberByte(text[i]) || n >= kMaxReadBytes) {
      return false;
    }
    if (text[i] == '.') {
      n += decimalPoint(copy + n);
    } else {
      copy[n++] = text[i];
    }
  }
  char* end = nullptr;
  *value = std::strtod(copy, &end);
  return n > 0 && end == copy + n;
}

Value numberOf(const JsonValue& number) {
  int64_t integer = 0;
  if (number.isInteger() && readInteger(number.text().data, number.text().bytes, 10, &integer)) {
    return Value::integer(integer);
  }
  double real = 0;
  if (!number.isInteger() && readFloat(number.text().data, number.text().bytes, &real)) {
    return Value::real(real);
  }
  return Value::asWritten(&number.text());
}

}  // namespace oriel_internal::jinja
