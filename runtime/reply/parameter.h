// Arguments of tool calls: values in several notations, and parameters.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"
#include "reply/forms.h"

namespace oriel_internal {

// Converts argument values as models write them to JSON, byte by byte: JSON, Python literals, and Gemma's notation.
// Also accepts common deviations: single quotes, True, False and None, raw line ends and quotes in strings, bare keys
// and words, a trailing comma.

/// Receives converted bytes.
struct ByteSink {
  void (*write)(char byte, void* user) = nullptr;
  void* user = nullptr;

  void put(char byte) const {
    if (write != nullptr) {
      write(byte, user);
    }
  }
  void put(const char* text) const;
};

/// One byte inside a JSON string.
void putJsonByte(char byte, const ByteSink& to);

/// The type of a whole text read as one JSON value: "None" is null, "True" and "False" are booleans.
enum class WordKind : uint8_t { kNone, kNull, kBool, kNumber };
WordKind kindOfWord(const char* text, size_t bytes);

enum class ValueStep : uint8_t {
  kMore,
  kEnded,        ///< the value ended with this byte
  kEndedBefore,  ///< the value ended before this byte, which is not consumed
  kWrong,
};

enum class ValueNotation : uint8_t {
  kLoose,
  kPython,  ///< the same, with Python's escapes in every string
  kGemma,   ///< the same, with strings between two <|"|>
  kStrict,  ///< JSON with Python's constants; anything else is an error
  kPlain,   ///< a string, written without quotes and escapes
};

/// Reads one value. Fixed memory: nesting that is too deep is an error, and a word over kMostWord bytes is a string.
class ValueReader {
 public:
  static constexpr uint32_t kMostDepth = 63;
  static constexpr uint32_t kMostWord = 128;

  void start(ValueNotation notation);
  ValueStep push(char c, const ByteSink& out);
  /// True if the value has ended, followed only by white space.
  bool complete() const { return state_ == State::kCommaOrEnd && depth_ == 0; }

 private:
  enum class State : uint8_t {
    kValue,       ///< a value must follow
    kValueOrEnd,  ///< in a list
    kKeyOrEnd,    ///< in an object
    kColon,
    kCommaOrEnd,
    kString,
    kMaybeEnd,    ///< after a quote: it ends the string if it is not part of the text
    kMaybeEmpty,  ///< after two quotes: a third one starts a long string
    kEscape,
    kHex,
    kGemmaOpen,
    kWord,
    kLongWord,  ///< already shown as a string
  };

  ValueStep pushValue(char c, const ByteSink& out);
  ValueStep pushString(char c, const ByteSink& out);
  ValueStep pushLongString(char c, const ByteSink& out);
  ValueStep pushGemmaQuote(char c, const ByteSink& out);
  ValueStep pushEscape(char c, const ByteSink& out);
  ValueStep pushHex(char c, const ByteSink& out);
  void putUnreadEscape(const ByteSink& out);
  ValueStep pushWord(char c, const ByteSink& out);
  ValueStep close(char c, const ByteSink& out);
  ValueStep afterValue(ValueStep at_the_end);
  void beginString(char quote, const ByteSink& out);
  ValueStep endString(const ByteSink& out, ValueStep at_the_end);
  bool endWord(const ByteSink& out);
  void putSeparator(const ByteSink& out);
  void putText(char c, const ByteSink& out) const;
  void putCodePoint(uint32_t code, const ByteSink& out) const;
  void putLoneHalf(const ByteSink& out);
  bool inObject() const { return depth_ != 0 && (objects_ >> (depth_ - 1) & 1) != 0; }
  void open(bool object);
  bool loose() const {
    return notation_ == ValueNotation::kLoose || notation_ == ValueNotation::kPython;
  }
  /// Python's escapes apply in Python calls and between single quotes, which JSON lacks.
  bool hasPythonEscapes() const { return notation_ == ValueNotation::kPython || quote_ == '\''; }

  ValueNotation notation_ = ValueNotation::kLoose;
  State state_ = State::kValue;
  bool is_key_ = false;
  bool comma_ = false;   ///< write a comma before the next element
  bool wanted_ = false;  ///< a comma was read last
  bool raw_ = false;     ///< escapes do not apply in this string
  bool long_ = false;    ///< it ends with three quotes
  char quote_ = 0;
  uint8_t n_quotes_ = 0;  ///< quotes of its end read so far
  uint8_t n_hex_ = 0;     ///< remaining hex digits
  uint8_t n_word_ = 0;    ///< bytes of word_
  uint8_t depth_ = 0;
  uint32_t code_ = 0;
  uint32_t high_half_ = 0;     ///< first half of a pair of \u escapes
  uint64_t objects_ = 0;       ///< one bit per level: 1 for an object, 0 for a list
  char word_[kMostWord] = {};  ///< a word, or the current escape without its backslash
};

// A parameter value between tags: raw text, typed by the tool's schema or by its contents.

/// JSON types, as bits.
enum TypeMask : uint8_t {
  kTypeString = 1 << 0,
  kTypeNumber = 1 << 1,
  kTypeBool = 1 << 2,
  kTypeNull = 1 << 3,
  kTypeObject = 1 << 4,
  kTypeArray = 1 << 5,
  kTypeAny = 63,
};

/// The function of that name among tools in the OpenAI form; null: none.
const JsonValue* findTool(const JsonValue* tools, const JsonText& name);
/// The "properties" of its parameters; null: none.
const JsonValue* propertiesOf(const JsonValue* function);
/// Types that the schema allows; null: any.
uint8_t typesOf(const JsonValue* schema);

/// Incremental search for `wanted`: returns how much of it matches after `c`, when `matched` bytes matched before. The
/// other matched + 1 bytes minus the result are then known not to be part of it.
uint32_t matchOn(const char* wanted, uint32_t matched, char c);

/// Reads a value up to its closing mark.
class Parameter {
 public:
  /// `types`: allowed by the schema.
  void start(const Mark& mark, uint8_t types);
  /// True: the mark was read, and the value has been written. Undecided bytes are kept in hold[0..capacity).
  bool push(char c, char* hold, uint32_t capacity, const ByteSink& out);
  /// The value turned out to have another type than was already shown.
  bool wrong() const { return wrong_; }

 private:
  enum class As : uint8_t { kNotKnown, kString, kJson };

  bool pushRaw(char c, const ByteSink& out);
  void content(char c, const ByteSink& out);
  void put(char c, const ByteSink& out);
  void begin(As as, const ByteSink& out);
  void end(const ByteSink& out);
  As decide() const;
  bool mayBe(uint8_t type) const;
  ValueNotation notation() const;

  const Mark* mark_ = nullptr;
  const char* close_ = nullptr;
  uint8_t types_ = kTypeAny;
  As as_ = As::kNotKnown;
  bool begun_ = false;
  bool paired_ =
      false;           ///< a line end after the opening mark was dropped, so one before the end is
                       ///< dropped, too
  bool line_ = false;  ///< a line end that may belong to the mark
  bool cdata_ = false;
  bool closed_ = false;  ///< the CDATA has ended
  bool wrong_ = false;
  uint32_t matched_ = 0;
  uint32_t cdata_matched_ = 0;
  uint32_t held_ = 0;
  char* hold_ = nullptr;
  uint32_t capacity_ = 0;
  ValueReader value_;
};

// A parameter value between tags: text, or nested tags, which form an object or a list.

/// Reads a value up to its closing mark. If the mark nests (kNests), inner tags are members of an object. They are list
/// elements if the schema requires a list, or has no type and the first tag is <item>.
class TagValue {
 public:
  static constexpr uint32_t kMostDepth = 16;

  /// `types`: allowed types.
  void start(const Mark& mark, uint8_t types);
  /// `schema`: the value's; null: unknown.
  void start(const Mark& mark, const JsonValue* schema);
  /// Like Parameter::push.
  bool push(char c, char* hold, uint32_t capacity, const ByteSink& out);
  bool wrong() const { return wrong_ || text_.wrong(); }

 private:
  static constexpr uint32_t kMostLead = 64;
  enum class At : uint8_t {
    kBegin,  ///< after an opening tag: text or a tag follows
    kText,
    kTail,  ///< in a closing tag
    kNext,  ///< after a closing tag: another one, or an opening one
    kKey,   ///< in an opening tag
  };
  struct Level {
    const JsonValue* schema = nullptr;
    bool list = false;
    bool begun = false;  ///< has a member
  };

  bool begin(char c, const ByteSink& out);
  bool text(char c, const ByteSink& out);
  bool next(char c, const ByteSink& out);
  void key(char c, const ByteSink& out);
  void beginMember(const ByteSink& out);
  void beginValue(const JsonValue* schema);
  bool endLevel(const ByteSink& out);

  const Mark* mark_ = nullptr;
  const JsonValue* schema_ = nullptr;  ///< of the current value
  At at_ = At::kText;
  bool wrong_ = false;
  uint32_t depth_ = 0;
  uint32_t matched_ = 0;
  uint32_t lead_bytes_ = 0;  ///< white space, then part of a mark
  uint32_t key_bytes_ = 0;
  char* hold_ = nullptr;
  uint32_t capacity_ = 0;
  Level levels_[kMostDepth] = {};
  char lead_[kMostLead] = {};
  char key_[kMostLead * 2] = {};
  Parameter text_;
};

}  // namespace oriel_internal
