// The value of a parameter between tags: raw text, of which the tool's schema or the text itself says what it is.
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

/// The function of that name out of tools in the OpenAI form; null: there is none.
const JsonValue* findTool(const JsonValue* tools, const JsonText& name);
/// The "properties" of its parameters; null: none.
const JsonValue* propertiesOf(const JsonValue* function);
/// Types that a value by this schema may have; null: any.
uint8_t typesOf(const JsonValue* schema);

/// Goes on in a text that is waited for: how much of it has been read behind `c`, when `matched` bytes had been. With
/// matched + 1 less that many bytes it is known that they are no part of it.
uint32_t matchOn(const char* wanted, uint32_t matched, char c);

/// Reads a value up to the mark that ends it.
class Parameter {
 public:
  /// `types`: those that the schema allows.
  void start(const Mark& mark, uint8_t types);
  /// True: the mark was read, and the value has been written. What has to be held back until then is in
  /// hold[0..capacity).
  bool push(char c, char* hold, uint32_t capacity, const ByteSink& out);
  /// It turned out not to be what it had begun to be shown as.
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
      false;           ///< a line end behind the opening mark was dropped: so is one before the end
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

}  // namespace oriel_internal
