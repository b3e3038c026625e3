// Values of a running template: memory, strings, and objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/arena.h"
#include "base/steps.h"
#include "jinja/jinja.h"

namespace oriel_internal::jinja {

// A running template's memory. Freed memory is reused; all of it comes from a Scratch.

struct Object;

constexpr uint64_t kUnitsBetweenStops = 1u << 18;

/// Small pieces, in sizes 16 bytes apart, are cut from slabs and keep their size. Larger ones know their neighbours, and
/// free neighbours are merged.
class Heap {
 public:
  explicit Heap(Scratch* scratch) : scratch_(scratch) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Counts the work of a running template. The primitives count: taking memory, appending to lists and texts, comparing
  /// texts, looking up names. Filters therefore cannot skip it. After the last unit the primitives fail.
  Steps& meter() { return meter_; }
  /// Counts work; false: the limit is reached.
  bool spend(uint64_t units) { return meter_.spend(units); }
  /// The size that take() allocates for `bytes`.
  static size_t roundUp(size_t bytes);
  /// Null if the scratch refuses or the work has ended. Uninitialised.
  void* take(size_t bytes);
  /// `bytes` as given to take(), or rounded by roundUp().
  void give(void* piece, size_t bytes);
  /// Returns the bytes after the first `bytes` of a piece of `old_bytes`, if possible; returns the remaining size.
  size_t shrink(void* piece, size_t old_bytes, size_t bytes);

  /// Frees an unreferenced object and everything only it refers to. Iterative, since lists may nest without limit.
  void bury(Object* object);

 private:
  static constexpr uint32_t kSmallClasses = 32;
  static constexpr uint32_t kLargeClasses = 4 * 24;
  struct Small {
    Small* next;
  };
  /// Header of a large piece. A region ends with a header that is never free.
  struct alignas(16) Block {
    uint32_t bytes;   ///< including this header
    uint32_t before;  ///< size of the previous block; 0: first
    bool free;
  };
  struct FreeBlock : Block {
    FreeBlock* next;
    FreeBlock* previous;
  };

  static uint32_t largeClass(size_t bytes);
  static Block* blockAfter(Block* block);
  void* takeSmall(size_t rounded);
  void keepSmall(void* piece, size_t rounded);
  void* takeLarge(size_t rounded);
  FreeBlock* findFree(size_t bytes);
  FreeBlock* addRegion(size_t bytes);
  void cut(Block* block, size_t bytes);
  void addFree(Block* block);
  void removeFree(FreeBlock* block);
  void giveLarge(Block* block);

  Scratch* const scratch_;
  Steps meter_;
  Small* small_[kSmallClasses] = {};
  FreeBlock* large_[kLargeClasses] = {};
  uint8_t* slab_ = nullptr;
  size_t slab_left_ = 0;
  size_t regions_bytes_ = 0;
  Object* dead_ = nullptr;
  bool burying_ = false;
};

// Values of a running template. Immutable except for namespaces, so unreferenced values are freed at once.

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

// Strings that track the source of each byte.

/// A readable view of a string. The original must stay alive.
struct Str {
  const char* data = "";
  size_t bytes = 0;
  TextOrigin source = 0;
  Runs* runs = nullptr;
  uint32_t offset = 0;

  char operator[](size_t at) const { return data[at]; }
  bool is(const char* other) const;
};

/// The view of a string value.
Str strOf(const Value& value);
bool equal(Heap* heap, const Str& a, const Str& b);
/// Below, at or above 0. Comparing bytes is comparing code points.
int compare(Heap* heap, const Str& a, const Str& b);
constexpr size_t kNotFound = SIZE_MAX;
/// The first occurrence of `part` at or after `from`. Subtracts compared bytes from `work` and gives up at 0.
size_t find(const Str& text, const Str& part, size_t from, uint64_t* work);
/// The last occurrence of `part` that ends at or before `end`.
size_t findLast(const Str& text, const Str& part, size_t end, uint64_t* work);
/// Code points; invalid UTF-8 counts by bytes.
size_t countChars(Heap* heap, const Str& text);
/// The start of the next character.
size_t nextChar(const Str& text, size_t at);
size_t previousChar(const Str& text, size_t at);
/// Python's str.isspace().
bool isSpace(uint32_t code_point);
/// skipSpace(): end of the white space that begins at `at`. The other: start of the white space that ends at `end`.
size_t skipSpace(const char* data, size_t bytes, size_t at);
size_t spaceBefore(const char* data, size_t end);

/// The bytes [begin, end) of a string, without copying. Undefined if memory ran out (heap->failed()).
Value sub(Heap* heap, const Value& text, size_t begin, size_t end);

/// Calls `visit(begin, end, source)` for each run of [begin, end) of a string.
template <typename Visit>
void forEachRun(const Str& text, size_t begin, size_t end, const Visit& visit) {
  if (text.runs == nullptr || begin == end) {
    if (begin != end) {
      visit(begin, end, text.source);
    }
    return;
  }
  const Run* const run = text.runs->run();
  uint32_t low = 0;
  uint32_t high = text.runs->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (run[middle].end <= begin + text.offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; begin < end && low < text.runs->count; ++low) {
    const size_t run_end = run[low].end - text.offset;
    const size_t stop = run_end < end ? run_end : end;
    visit(begin, stop, run[low].source);
    begin = stop;
  }
}

/// Builds a string. After memory ran out it drops everything, and finish() fails.
class TextBuilder {
 public:
  explicit TextBuilder(Heap* heap) : heap_(heap) {}
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  void reserve(size_t bytes);
  void append(const char* data, size_t bytes, TextOrigin source);
  void append(const char* text, TextOrigin source);
  void append(const Str& text) { append(text, 0, text.bytes); }
  void append(const Str& text, size_t begin, size_t end);
  size_t bytes() const { return buffer_ ? buffer_->used : 0; }
  bool failed() const { return failed_; }
  /// Returns the text and empties the builder. False: out of memory.
  bool finish(Value* text);
  /// The text so far, valid until the next write.
  Str written() const;

 private:
  bool makeRoom(size_t bytes);
  bool note(size_t bytes, TextOrigin source);
  bool growRuns();

  Heap* const heap_;
  Ref<Buffer> buffer_;
  Ref<Runs> runs_;
  TextOrigin source_ = 0;
  bool failed_ = false;
};

/// a + b. Copies only b if a was the last string appended to. False: out of memory.
bool concat(Heap* heap, const Value& a, const Value& b, Value* out);

// Characters that a template writes by their escape.

constexpr uint32_t kNoEscape = 0xFFFFFFFF;    ///< a literal backslash
constexpr uint32_t kLineJoined = 0xFFFFFFFE;  ///< a backslash at a line end: nothing

/// A backslash escape as in Python literals. Returns its length, 0 if invalid.
size_t readEscape(const char* text, size_t bytes, uint32_t* code_point);

}  // namespace oriel_internal::jinja
