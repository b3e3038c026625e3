// Values of a running template. Immutable except for namespaces, so unreferenced values are freed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "jinja/jinja.h"
#include "jinja/jinja_heap.h"

namespace oriel_internal::jinja {

struct Node;
struct Symbol;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kAsWritten,  ///< an input number that neither type holds: it can only be printed
  kView,       ///< a string in the template or the input, not copied
  kJsonList,   ///< of the input
  kJsonDict,
  kBuiltin,  ///< a built-in function of Jinja
  kMethod,   ///< a method that was not called
  // Reference-counted objects:
  kText,
  kList,
  kDict,
  kRange,
  kNamespace,
  kMacro,
  kLoop,
  kScope,   ///< never a value
  kBuffer,  ///< never a value
  kRuns,    ///< never a value
};
constexpr Kind kFirstObject = Kind::kText;

/// The kind of a list. Most Jinja filters return generators, which can only be iterated once.
enum class Shape : uint8_t { kList, kTuple, kGenerator, kKeys, kValues, kItems };

struct Object {
  uint32_t refs = 1;
  Kind kind = Kind::kUndefined;
  Shape shape = Shape::kList;
  union {
    Heap* heap = nullptr;
    Object* next_dead;
  };
};

/// Frees an object and its references.
void destroy(Object* object, Heap* heap);

inline void retain(Object* object) {
  if (object != nullptr) {
    ++object->refs;
  }
}
inline void release(Object* object) {
  if (object != nullptr && --object->refs == 0) {
    object->heap->bury(object);
  }
}

/// A counted reference to an object of one kind.
template <typename T>
class Ref {
 public:
  Ref() = default;
  /// Takes over the reference that the new `object` has.
  explicit Ref(T* object) : object_(object) {}
  Ref(const Ref& other) : object_(other.object_) { retain(object_); }
  Ref(Ref&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  ~Ref() { release(object_); }
  Ref& operator=(Ref other) noexcept {
    T* const mine = object_;
    object_ = other.object_;
    other.object_ = mine;
    return *this;
  }
  static Ref share(T* object) {
    retain(object);
    return Ref(object);
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* handOver() {
    T* const object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  T* object_ = nullptr;
};

class Value {
 public:
  Value() : bits_{} {}
  Value(const Value& other)
      : kind_(other.kind_), safe_(other.safe_), source_(other.source_), bits_(other.bits_) {
    if (isObject()) {
      retain(bits_.object);
    }
  }
  Value(Value&& other) noexcept
      : kind_(other.kind_), safe_(other.safe_), source_(other.source_), bits_(other.bits_) {
    other.kind_ = Kind::kUndefined;
  }
  ~Value() {
    if (isObject()) {
      release(bits_.object);
    }
  }
  Value& operator=(const Value& other) {
    Value copy(other);
    swap(&copy);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    swap(&other);
    return *this;
  }

  static Value undefined(const JsonText* name);
  static Value none();
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  static Value view(const JsonText* text, TextOrigin source = 0);
  static Value json(const JsonValue* value, TextOrigin source);
  static Value asWritten(const JsonText* number);
  static Value builtin(uint32_t id);
  static Value method(const JsonText* name);
  /// Takes over the reference; undefined for null.
  static Value object(Object* object);
  template <typename T>
  static Value of(Ref<T> ref) {
    return object(ref.handOver());
  }

  /// Drops the pointer without releasing the object.
  void leave() { kind_ = Kind::kUndefined; }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool isObject() const { return kind_ >= kFirstObject; }
  bool isUndefined() const { return kind_ == Kind::kUndefined; }
  bool isNone() const { return kind_ == Kind::kNone; }
  bool isText() const { return kind_ == Kind::kView || kind_ == Kind::kText; }
  /// A list or a tuple.
  bool isList() const {
    return kind_ == Kind::kJsonList ||
           (kind_ == Kind::kList && bits_.object->shape <= Shape::kTuple);
  }
  bool hasShape(Shape shape) const { return kind_ == Kind::kList && bits_.object->shape == shape; }
  bool isDict() const { return kind_ == Kind::kDict || kind_ == Kind::kJsonDict; }
  /// Python's bool is an int.
  bool isInteger() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool isNumber() const {
    return isInteger() || kind_ == Kind::kFloat || kind_ == Kind::kAsWritten;
  }

  bool boolean() const { return bits_.integer != 0; }
  int64_t integer() const { return bits_.integer; }
  double real() const { return bits_.real; }
  const JsonText* text() const { return bits_.text; }
  const JsonValue* json() const { return bits_.json; }
  Object* object() const { return bits_.object; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(bits_.object);
  }
  /// The value's source; a kText has it in its runs.
  TextOrigin source() const { return source_; }
  void setSource(TextOrigin source) { source_ = source; }
  /// Marked by the filter `safe`: text added to it is escaped.
  bool safe() const { return safe_; }
  void setSafe(bool safe) { safe_ = safe; }

 private:
  void swap(Value* other) noexcept;

  Kind kind_ = Kind::kUndefined;
  bool safe_ = false;
  TextOrigin source_ = 0;
  union {
    int64_t integer;
    double real;
    const JsonText* text;
    const JsonValue* json;
    Object* object;
  } bits_;
};
static_assert(sizeof(Value) == 16, "lists are made of them");

/// Bytes that only grow at the end.
struct Buffer : Object {
  uint32_t capacity = 0;
  uint32_t used = 0;
  char* data() { return reinterpret_cast<char*>(this + 1); }
};

/// A source for a range of bytes; each run ends where the next begins.
struct Run {
  uint32_t end;
  TextOrigin source;
};
struct Runs : Object {
  uint32_t count = 0;
  uint32_t capacity = 0;
  Run* run() { return reinterpret_cast<Run*>(this + 1); }
};

/// A string that is not a part of the template or the input.
struct Text : Object {
  uint32_t bytes = 0;
  TextOrigin source = 0;  ///< source of all bytes, if the text has no runs
  uint32_t offset = 0;    ///< offset of the first byte in the runs' count
  const char* data = nullptr;
  Buffer* buffer = nullptr;  ///< null: `data` is not shared
  Runs* runs = nullptr;
};

struct List : Object {
  uint32_t count = 0;
  uint32_t capacity = 0;
  Value* items() { return reinterpret_cast<Value*>(this + 1); }
};

struct DictEntry {
  Value key;
  Value value;
};
struct Dict : Object {
  uint32_t count = 0;
  uint32_t capacity = 0;
  DictEntry* entries() { return reinterpret_cast<DictEntry*>(this + 1); }
};

struct Range : Object {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  uint32_t count = 0;
};

struct ScopeEntry {
  const Symbol* name;
  Value value;
};
/// Variables of a block, or of a namespace.
struct Scope : Object {
  Scope* parent = nullptr;
  ScopeEntry* entries = nullptr;
  uint32_t* slots =
      nullptr;  ///< for many entries: a hash table of 2 * capacity; entry index plus 1; 0: free
  uint32_t count = 0;
  uint32_t capacity = 0;

  Value* find(const Symbol* name);
  uint32_t slotOf(const Symbol* name) const;
};

struct Macro : Object {
  const Node* node = nullptr;
  Scope* scope = nullptr;  ///< scope of its definition
};

struct Loop : Object {
  uint32_t index = 0;  ///< from 0
  uint32_t count = 0;
  Value previous;
  Value current;
  Value next;
  Value changed;  ///< latest arguments of loop.changed(), a list
};

/// An object followed by `extra_bytes`; null if memory ran out.
template <typename T>
T* make(Heap* heap, Kind kind, size_t extra_bytes = 0) {
  void* const memory = heap->take(sizeof(T) + extra_bytes);
  if (memory == nullptr) {
    return nullptr;
  }
  T* const object = new (memory) T;
  object->kind = kind;
  object->heap = heap;
  return object;
}

/// With room for `capacity` elements, filled by pushTo().
Ref<List> makeList(Heap* heap, size_t capacity);
/// The list must have room.
void pushTo(List* list, Value value);
/// Grows a list that the caller owns exclusively.
bool growList(Heap* heap, Ref<List>* list, Value value);
Ref<Dict> makeDict(Heap* heap, size_t capacity);
/// False if memory ran out.
bool setIn(Heap* heap, Scope* scope, const Symbol* name, Value value);

// Numbers as Python writes and reads them, in every locale.

constexpr size_t kMaxNumberBytes = 40;

/// A JSON number: an integer, a float, or kept as written if neither can hold it.
Value numberOf(const JsonValue& number);
/// repr() of a float: the fewest digits that round-trip. Returns the bytes written.
size_t writeFloat(double value, char* out);
size_t writeInteger(int64_t value, char* out);
/// Digits with an optional sign; false if it is anything else or exceeds 64 bits.
bool readInteger(const char* text, size_t bytes, uint32_t base, int64_t* value);
/// Python's float(): false if it is not a number.
bool readFloat(const char* text, size_t bytes, double* value);

}  // namespace oriel_internal::jinja
