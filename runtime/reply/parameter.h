// A parameter value between tags: raw text, typed by the tool's schema or by its contents.
#pragma once

#include "json/json.h"
#include "reply/forms.h"
#include "reply/value.h"

namespace oriel_internal {

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
