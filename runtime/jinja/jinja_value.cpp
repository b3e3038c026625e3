#include "jinja/jinja_value.h"

#include <cstring>
#include <utility>

#include "jinja/jinja_number.h"

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

}  // namespace oriel_internal::jinja
