// JSON as it comes from an app: tools, messages, schemas. Read in linear time into one array of small nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/log.h"
#include "base/scratch.h"
#include "base/stop_check.h"

namespace oriel_internal {

struct JsonName;

/// Bytes of somebody's text; of more than 4 GiB the first.
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

/// One value: a node in the array that parseJson() makes, or one that a JsonBuilder made (JsonMade).
///
/// In the array a key stands before its member's value, and elements and members behind their list or object:
///
///     {"a": [1, 2], "b": 3}    object | key a | array | 1 | 2 | key b | 3
///
/// An object of many members has an index of them behind the last one.
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
  /// A number without fraction and exponent.
  bool isInteger() const;

  bool boolean() const { return isBool() && text_.bytes != 0; }
  /// Of a string: decoded, UTF-8. Of a number: as it is written. Of anything else it means nothing.
  const JsonText& text() const { return text_; }
  uint32_t textBytes() const { return isString() || isNumber() ? text_.bytes : 0; }
  /// Elements or members.
  uint32_t count() const { return isContainer() ? text_.bytes : 0; }
  bool hasKey() const { return has(kMember); }
  /// Of a member: decoded. Of anything else: empty.
  const JsonText& key() const;
  /// The elements or members in their order; null at the end. Members that come again stand where they stood first,
  /// with the last value, as in a Python dict.
  const JsonValue* first() const;
  const JsonValue* next() const;
  /// The member of that name. Null: there is none, or this is no object. Takes a few comparisons, also of many members.
  const JsonValue* find(const char* name) const;
  const JsonValue* find(const JsonText& name) const;

  /// A trusted string was checked, and may stand where control tokens do.
  bool trusted() const { return has(kTrusted); }
  void trust() { set(kTrusted); }
  /// A mark of whoever reads it.
  bool noted() const { return has(kNoted); }
  void note() { set(kNoted); }
  /// The source that a JsonBuilder gave the value and all inside it; 0: none of its own.
  uint32_t origin() const;
  /// The first piece of a string that JsonBuilder::joined() made; next() leads on. Null: the string is of one piece.
  const JsonValue* pieces() const;

 protected:
  friend class JsonReader;
  friend class JsonBuilder;

  enum Flag : uint32_t {
    kKindBits = 7,
    kMember = 1u << 3,   ///< it has a key
    kLast = 1u << 4,     ///< of its siblings in the array
    kSkipped = 1u << 5,  ///< a member whose name comes again, or came before
    kReplaced =
        1u
        << 6,  ///< the first of a name: the last one counts, `mark` of the key is how far behind it stands
    kMoved =
        1u << 7,  ///< that last one: `mark` of its key is how far in front the first one stands
    kTrusted = 1u << 8,
    kIndexed = 1u << 9,
    kAlias = 1u << 10,  ///< a container that has what another one has
    kMade = 1u << 11,   ///< it is a JsonMade
    kNoted = 1u << 12,
    kJoined = 1u << 13,  ///< a JsonMade string: `last` is its first piece
  };
  bool has(uint32_t flags) const { return (text_.mark & flags) != 0; }
  void set(uint32_t flags) { text_.mark |= flags; }
  /// Where the index of an object of so many members lies.
  JsonName* names(uint32_t count) const;
  bool isContainer() const {
    return (text_.mark & kKindBits) >= static_cast<uint32_t>(JsonKind::kArray);
  }
  /// Where a container's `data` leads: of an alias to the other one, of a JsonMade to its first element, else to the node
  /// behind it in the array.
  const JsonValue* pointed() const {
    return static_cast<const JsonValue*>(static_cast<const void*>(text_.data));
  }
  void point(const JsonValue* to) {
    text_.data = static_cast<const char*>(static_cast<const void*>(to));
  }
  /// In the array, the sibling behind, whether it counts or not. There is one.
  const JsonValue* beside() const {
    return (isContainer() && !has(kAlias) ? pointed() : this + 1) + (has(kMember) ? 1 : 0);
  }
  const JsonValue* counting() const;
  const JsonValue* findByIndex(const JsonText& name) const;

  JsonText text_;  ///< of a container `bytes` is its count
};
static_assert(sizeof(JsonValue) <= 16, "JSON of N bytes has up to N / 2 nodes");

/// A value that stands by itself.
struct JsonMade : JsonValue {
  JsonText own_key;
  JsonMade* after = nullptr;  ///< the next of its siblings
  JsonMade* last = nullptr;   ///< element
  uint32_t own_origin = 0;    ///< origin()
};

/// JSON is refused beyond these, wherever it comes from (oriel.h, "JSON").
constexpr uint32_t kMaxJsonDepth = 64;        ///< lists and objects within each other
constexpr size_t kMaxJsonBytes = 64u << 20;   ///< of one text
constexpr uint32_t kMaxJsonNames = 1u << 20;  ///< of one object
/// What a byte of JSON takes at most, besides kJsonBaseBytes.
constexpr size_t kJsonBytesPerByte = 8;
constexpr size_t kJsonBaseBytes = 64u << 10;
/// Somebody is asked whether to stop at least once in so many bytes, or comparisons of names.
constexpr uint32_t kJsonWorkBetweenStops = 1u << 16;

enum class JsonRules : uint8_t {
  kTolerant,  ///< of names that come again the last value counts; half of a surrogate pair is U+FFFD
  kStrict,    ///< either is refused
};

/// Reads one value, as RFC 8259 has it: nothing but white space may stand before and behind, and a byte order mark before. Strings point into `text`
/// where they have no escapes, so it must stay. `what` names the text in messages ("the tools").
/// ORIEL_ERROR_ARGUMENT with the byte where it goes wrong, ORIEL_ERROR_OUT_OF_MEMORY, ORIEL_ERROR_CANCELLED.
Status parseJson(const char* text, size_t bytes, const char* what, const StopCheck& stop,
                 const Log& log, Scratch* scratch, const JsonValue** value,
                 JsonRules rules = JsonRules::kTolerant);
inline Status parseJson(const char* text, size_t bytes, const char* what, const Log& log,
                        Scratch* scratch, const JsonValue** value) {
  return parseJson(text, bytes, what, {}, log, scratch, value);
}

/// Where written JSON goes; `write` is called with stretches of it.
struct JsonSink {
  void (*write)(const char* text, size_t bytes, void* user) = nullptr;
  void* user = nullptr;
};
/// Bytes of JSON that are counted, and copied if there is a place for them. Write twice: to count, then to copy.
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
/// A string between quotes, escapes as short as they are; UTF-8 and U+007F stay as they are.
void writeJsonString(const JsonText& text, const JsonSink& sink);
/// What writeJsonString() writes for a stretch of a string, without the quotes.
void writeJsonEscaped(const JsonText& text, const JsonSink& sink);
/// Without blanks; numbers as they were written.
void writeJson(const JsonValue& value, const JsonSink& sink);

}  // namespace oriel_internal
