// JSON: a reader of an app's texts, and a writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/arena.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/steps.h"

namespace oriel_internal {

// JSON from an app: tools, messages, schemas. Parsed in linear time into one array of small nodes.

struct JsonName;

/// Bytes of a text, at most 4 GiB; longer texts are truncated.
struct JsonText {
  constexpr JsonText() = default;
  constexpr JsonText(const char* text, size_t n)
      : data(text), bytes(n < UINT32_MAX ? static_cast<uint32_t>(n) : UINT32_MAX) {}

  JsonText(const char* text)
      : JsonText(text, std::strlen(text)) {}  // NOLINT(google-explicit-constructor)

  const char* data = nullptr;
  uint32_t bytes = 0;
  uint32_t mark = 0;  ///< JsonValue's

  bool is(const char* other) const;
  bool operator==(const JsonText& other) const;
};

enum class JsonKind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

/// A value: a node in parseJson()'s array, or made by a JsonBuilder (JsonMade).
//
/// In the array a key precedes its member's value, and a list or object precedes its elements or members:
//
///     {"a": [1, 2], "b": 3}    object | key a | array | 1 | 2 | key b | 3
//
/// An object with many members has an index after the last one.
class JsonValue {
 public:
  JsonValue() = default;  ///< null
  explicit JsonValue(bool boolean) : text_(nullptr, boolean ? 1 : 0) {
    text_.mark = static_cast<uint32_t>(JsonKind::kBool);
  }

  JsonKind kind() const { return static_cast<JsonKind>(text_.mark & kKindBits); }
  bool isString() const { return kind() == JsonKind::kString; }
  bool isObject() const { return kind() == JsonKind::kObject; }
  bool isArray() const { return kind() == JsonKind::kArray; }
  bool isNumber() const { return kind() == JsonKind::kNumber; }
  bool isBool() const { return kind() == JsonKind::kBool; }
  bool isNull() const { return kind() == JsonKind::kNull; }
  /// True for a number without fraction and exponent.
  bool isInteger() const;

  bool boolean() const { return isBool() && text_.bytes != 0; }
  /// For a string: decoded UTF-8. For a number: as written. Otherwise undefined.
  const JsonText& text() const { return text_; }
  uint32_t textBytes() const { return isString() || isNumber() ? text_.bytes : 0; }
  /// Elements or members.
  uint32_t count() const { return isContainer() ? text_.bytes : 0; }
  bool hasKey() const { return has(kMember); }
  /// For a member: the decoded key. Otherwise empty.
  const JsonText& key() const;
  /// The elements or members in order; null at the end. A repeated member is at the place of its first occurrence with
  /// its last value, as in a Python dict.
  const JsonValue* first() const;
  const JsonValue* next() const;
  /// The member of that name. Null: missing, or not an object. Takes a few comparisons even with many members.
  const JsonValue* find(const char* name) const;
  const JsonValue* find(const JsonText& name) const;

  /// A trusted string was checked and may appear among control tokens.
  bool trusted() const { return has(kTrusted); }
  void trust() { set(kTrusted); }
  /// A mark for the reader's use.
  bool noted() const { return has(kNoted); }
  void note() { set(kNoted); }
  /// The source that a JsonBuilder gave the value and everything in it; 0: inherited.
  uint32_t origin() const;
  /// The first piece of a string made by JsonBuilder::joined(); next() gives the others. Null: the string is in one
  /// piece.
  const JsonValue* pieces() const;

 protected:
  friend class JsonReader;
  friend class JsonBuilder;

  enum Flag : uint32_t {
    kKindBits = 7,
    kMember = 1u << 3,   ///< it has a key
    kLast = 1u << 4,     ///< of its siblings in the array
    kSkipped = 1u << 5,  ///< a member whose name is repeated, earlier or later
    kReplaced =
        1u << 6,  ///< the first of a repeated name: the last one counts; the key's `mark` is its
                  ///< distance
    kMoved = 1u << 7,  ///< that last one: the key's `mark` is the distance back to the first
    kTrusted = 1u << 8,
    kIndexed = 1u << 9,
    kAlias = 1u << 10,  ///< a container that shares another one's contents
    kMade = 1u << 11,   ///< it is a JsonMade
    kNoted = 1u << 12,
    kJoined = 1u << 13,  ///< a JsonMade string: `last` is its first piece
  };
  bool has(uint32_t flags) const { return (text_.mark & flags) != 0; }
  void set(uint32_t flags) { text_.mark |= flags; }
  /// The index of an object with `count` members.
  JsonName* names(uint32_t count) const;
  bool isContainer() const {
    return (text_.mark & kKindBits) >= static_cast<uint32_t>(JsonKind::kArray);
  }
  /// A container's contents: for an alias the other container, for a JsonMade its first element, otherwise the next node
  /// in the array.
  const JsonValue* pointed() const {
    return static_cast<const JsonValue*>(static_cast<const void*>(text_.data));
  }
  void point(const JsonValue* to) {
    text_.data = static_cast<const char*>(static_cast<const void*>(to));
  }
  /// The next sibling in the array, counted or not. There must be one.
  const JsonValue* beside() const {
    return (isContainer() && !has(kAlias) ? pointed() : this + 1) + (has(kMember) ? 1 : 0);
  }
  const JsonValue* counting() const;
  const JsonValue* findByIndex(const JsonText& name) const;

  JsonText text_;  ///< `bytes` is the count of a container
};
static_assert(sizeof(JsonValue) <= 16, "JSON of N bytes has up to N / 2 nodes");

/// A value outside an array.
struct JsonMade : JsonValue {
  JsonText own_key;
  JsonMade* after = nullptr;  ///< the next sibling
  JsonMade* last = nullptr;   ///< element
  uint32_t own_origin = 0;    ///< origin()
};

/// Limits of accepted JSON (oriel.h, "JSON").
constexpr uint32_t kMaxJsonDepth = 64;        ///< nesting of lists and objects
constexpr size_t kMaxJsonBytes = 64u << 20;   ///< of one text
constexpr uint32_t kMaxJsonNames = 1u << 20;  ///< of one object
/// Memory per byte of JSON, besides kJsonBaseBytes.
constexpr size_t kJsonBytesPerByte = 8;
constexpr size_t kJsonBaseBytes = 64u << 10;
/// Checks for a stop at least once per this many bytes or name comparisons.
constexpr uint32_t kJsonWorkBetweenStops = 1u << 16;

enum class JsonRules : uint8_t {
  kTolerant,  ///< the last of repeated names counts; half of a surrogate pair becomes U+FFFD
  kStrict,    ///< refuses both
};

/// Parses one value (RFC 8259). Only white space may surround it, and a byte order mark may precede it. Strings without
/// escapes point into `text`, so it must stay valid. `what` names the text in messages ("the tools").
/// ORIEL_ERROR_ARGUMENT with the byte offset of the fault, ORIEL_ERROR_OUT_OF_MEMORY, ORIEL_ERROR_CANCELLED.
Status parseJson(const char* text, size_t bytes, const char* what, const StopCheck& stop,
                 const Log& log, Scratch* scratch, const JsonValue** value,
                 JsonRules rules = JsonRules::kTolerant);
inline Status parseJson(const char* text, size_t bytes, const char* what, const Log& log,
                        Scratch* scratch, const JsonValue** value) {
  return parseJson(text, bytes, what, {}, log, scratch, value);
}

/// The destination of written JSON; `write` receives pieces of it.
struct JsonSink {
  void (*write)(const char* text, size_t bytes, void* user) = nullptr;
  void* user = nullptr;
};
/// Counts bytes of JSON, and copies them if it has a buffer. Write twice: first to count, then to copy.
struct JsonRoom {
  char* to = nullptr;  ///< null: counts
  size_t bytes = 0;

  JsonSink sink() {
    return {[](const char* text, size_t n, void* user) {
              JsonRoom& self = *static_cast<JsonRoom*>(user);
              if (self.to != nullptr && n != 0) {
                std::memcpy(self.to + self.bytes, text, n);
              }
              self.bytes += n;
            },
            this};
  }
};
/// A quoted string with the shortest escapes; UTF-8 and U+007F are not escaped.
void writeJsonString(const JsonText& text, const JsonSink& sink);
/// The output of writeJsonString() for part of a string, without quotes.
void writeJsonEscaped(const JsonText& text, const JsonSink& sink);
/// Without blanks; numbers keep their spelling.
void writeJson(const JsonValue& value, const JsonSink& sink);

// The name index of an object with many members: sorted by hash, length, bytes and place.

struct JsonName {
  uint32_t hash = 0;
  uint32_t place = 0;  ///< of the member's value: nodes after the object
};

/// Up to this many names are compared one by one.
constexpr uint32_t kMostNamesWithoutIndex = 16;

inline uint32_t nodesOfNames(uint32_t count) {
  return static_cast<uint32_t>((uint64_t{count} * sizeof(JsonName) + sizeof(JsonValue) - 1) /
                               sizeof(JsonValue));
}

inline uint32_t hashOfName(const JsonText& name) {
  return static_cast<uint32_t>(hashBytes(name.data, name.bytes) >> 32);
}

/// Below, at or above 0; equal hashes are compared by bytes.
inline int compareNames(uint32_t hash_a, const JsonText& a, uint32_t hash_b, const JsonText& b) {
  if (hash_a != hash_b) {
    return hash_a < hash_b ? -1 : 1;
  }
  if (a.bytes != b.bytes) {
    return a.bytes < b.bytes ? -1 : 1;
  }
  return a.bytes != 0 ? std::memcmp(a.data, b.data, a.bytes) : 0;
}

inline int compareNames(const JsonValue* object, const JsonName& a, const JsonName& b) {
  return compareNames(a.hash, object[a.place].key(), b.hash, object[b.place].key());
}

// Writes JSON on one line to a caller's buffer, or only counts it.

class JsonWriter {
 public:
  static constexpr uint32_t kMostDepth = 8;

  /// The text is NUL-terminated after finish() if there was room.
  JsonWriter(char* text, size_t capacity) : text_(text), capacity_(capacity) {}

  /// `name` is null in a list and for the outermost value.
  void object(const char* name = nullptr) { open(name, '{', '}'); }
  void list(const char* name) { open(name, '[', ']'); }
  void end();
  void text(const char* name, const JsonText& value);
  void whole(const char* name, uint64_t value);
  void signedWhole(const char* name, int64_t value);
  /// Writes null if not finite.
  void real(const char* name, double value);
  void flag(const char* name, bool value);
  void null(const char* name);
  /// For bytes that are already JSON.
  JsonSink sink();

  /// ORIEL_ERROR_BUFFER_TOO_SMALL without room; *needed includes the NUL.
  oriel_status finish(size_t* needed);

 private:
  void open(const char* name, char begin, char end);
  void key(const char* name);
  void add(const char* bytes, size_t count);

  char* const text_;
  const size_t capacity_;
  size_t used_ = 0;
  char ends_[kMostDepth] = {};
  bool first_[kMostDepth + 1] = {true};
  uint32_t depth_ = 0;
};

// Builds JSON values.

class JsonBuilder {
 public:
  explicit JsonBuilder(Scratch* scratch) : scratch_(scratch) {}
  /// Null if memory ran out. Adding to null, or adding null, is a no-op.
  JsonMade* text(const JsonText& text);
  JsonMade* boolean(bool value);
  JsonMade* number(uint32_t value);
  JsonMade* null();
  JsonMade* list();
  JsonMade* object();
  void append(JsonMade* list, JsonMade* element);
  void set(JsonMade* object, const JsonText& key, JsonMade* value);
  /// {"role": role, "content": content}
  JsonMade* message(const JsonText& role, const JsonText& content);
  /// A list with a copy of the value.
  JsonMade* listOf(const JsonValue& value);
  /// Sets the source of a value (JinjaVariable); overrides the source of its list.
  static JsonMade* from(uint32_t origin, JsonMade* value);
  /// One string from the strings in `pieces`, a list filled by append(); each piece keeps its source.
  JsonMade* joined(JsonMade* pieces);
  /// A second reference to the value, for another list.
  JsonMade* copyOf(const JsonValue& value);
  /// The list with each element that lacks a member `key` wrapped as {first_key: first_text, key: element}. Null: out of
  /// memory.
  const JsonValue* wrapped(const JsonValue& list, const char* key, const char* first_key,
                           const char* first_text);

 private:
  static void setCopy(JsonValue* copy, const JsonValue& value, uint32_t flags);
  JsonMade* make(JsonKind kind, const JsonText& text);

  Scratch* const scratch_;
};

}  // namespace oriel_internal
