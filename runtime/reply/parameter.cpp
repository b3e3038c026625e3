#include "reply/parameter.h"

#include <cstring>
#include <initializer_list>

#include "reply/characters.h"

namespace oriel_internal {
namespace {

constexpr char kCDataOpen[] = "<![CDATA[";
constexpr char kCDataClose[] = "]]>";

uint8_t typeNamed(const JsonValue& name) {
  const struct {
    const char* name;
    TypeMask type;
  } kNames[] = {{"string", kTypeString}, {"number", kTypeNumber}, {"integer", kTypeNumber},
                {"boolean", kTypeBool},  {"null", kTypeNull},     {"object", kTypeObject},
                {"array", kTypeArray}};
  for (const auto& each : kNames) {
    if (name.isString() && name.text().is(each.name)) {
      return each.type;
    }
  }
  return kTypeAny;
}

uint8_t typeOfValue(const JsonValue& value) {
  switch (value.kind()) {
    case JsonKind::kNull:
      return kTypeNull;
    case JsonKind::kBool:
      return kTypeBool;
    case JsonKind::kNumber:
      return kTypeNumber;
    case JsonKind::kString:
      return kTypeString;
    case JsonKind::kArray:
      return kTypeArray;
    case JsonKind::kObject:
      return kTypeObject;
  }
  return kTypeAny;
}

/// Union over the elements of a list.
template <typename TypesOfOne>
uint8_t typesOfAll(const JsonValue& list, const TypesOfOne& types_of_one) {
  uint8_t types = 0;
  for (const JsonValue* each = list.first(); each != nullptr; each = each->next()) {
    types |= types_of_one(*each);
  }
  return types == 0 ? static_cast<uint8_t>(kTypeAny) : types;
}

}  // namespace

const JsonValue* findTool(const JsonValue* tools, const JsonText& name) {
  if (tools == nullptr || !tools->isArray()) {
    return nullptr;
  }
  for (const JsonValue* tool = tools->first(); tool != nullptr; tool = tool->next()) {
    const JsonValue* const inner = tool->find("function");
    const JsonValue* const function = inner != nullptr && inner->isObject() ? inner : tool;
    const JsonValue* const own = function->find("name");
    if (own != nullptr && own->isString() && own->text() == name) {
      return function;
    }
  }
  return nullptr;
}

const JsonValue* propertiesOf(const JsonValue* function) {
  if (function == nullptr) {
    return nullptr;
  }
  const JsonValue* schema = function->find("parameters");
  schema = schema != nullptr ? schema : function->find("input_schema");
  const JsonValue* const properties = schema != nullptr ? schema->find("properties") : nullptr;
  return properties != nullptr && properties->isObject() ? properties : nullptr;
}

uint8_t typesOf(const JsonValue* schema) {
  if (schema == nullptr || !schema->isObject()) {
    return kTypeAny;
  }
  if (const JsonValue* const value = schema->find("const"); value != nullptr) {
    return typeOfValue(*value);
  }
  if (const JsonValue* const type = schema->find("type"); type != nullptr) {
    const JsonValue* const nullable = schema->find("nullable");
    const uint8_t more =
        nullable != nullptr && nullable->isBool() && nullable->boolean() ? kTypeNull : 0;
    return more | (type->isArray() ? typesOfAll(*type, typeNamed) : typeNamed(*type));
  }
  if (const JsonValue* const values = schema->find("enum");
      values != nullptr && values->isArray()) {
    return typesOfAll(*values, typeOfValue);
  }
  for (const char* const choice : {"anyOf", "oneOf"}) {
    const JsonValue* const list = schema->find(choice);
    if (list != nullptr && list->isArray()) {
      return typesOfAll(*list, [](const JsonValue& one) { return typesOf(&one); });
    }
  }
  return kTypeAny;
}

uint32_t matchOn(const char* wanted, uint32_t matched, char c) {
  if (c == wanted[matched]) {
    return matched + 1;
  }
  // The longest prefix that the bytes so far end with.
  for (uint32_t n = matched; n > 0; --n) {
    if (wanted[n - 1] == c && std::memcmp(wanted, wanted + matched + 1 - n, n - 1) == 0) {
      return n;
    }
  }
  return 0;
}

void Parameter::start(const Mark& mark, uint8_t types) {
  *this = Parameter();
  mark_ = &mark;
  close_ = mark.value_end;
  types_ = types;
}

bool Parameter::push(char c, char* hold, uint32_t capacity, const ByteSink& out) {
  hold_ = hold;
  capacity_ = capacity;
  if ((mark_->flags & kCData) == 0 || begun_ || cdata_) {
    return pushRaw(c, out);
  }
  if (c == kCDataOpen[cdata_matched_]) {
    if (kCDataOpen[++cdata_matched_] == '\0') {
      cdata_ = true;
      close_ = kCDataClose;
    }
    return false;
  }
  // The closing tag begins with the same byte, and may follow immediately.
  begun_ = true;
  bool ended = false;
  for (uint32_t i = 0; i < cdata_matched_; ++i) {
    ended = pushRaw(kCDataOpen[i], out);
  }
  return pushRaw(c, out) || ended;
}

bool Parameter::pushRaw(char c, const ByteSink& out) {
  const uint32_t before = matched_;
  matched_ = matchOn(close_, matched_, c);
  if (close_[matched_] == '\0') {
    matched_ = 0;
    if (cdata_ && !closed_) {
      closed_ = true;
      close_ = mark_->value_end;
      return false;
    }
    end(out);
    return true;
  }
  if (closed_) {
    return false;
  }
  const uint32_t known = before + 1 - matched_;  // bytes that are not part of the mark
  for (uint32_t i = 0; i < known; ++i) {
    content(i < before ? close_[i] : c, out);
  }
  return false;
}

void Parameter::content(char c, const ByteSink& out) {
  const bool trims = (mark_->flags & kTrimsLine) != 0;
  const bool first = !begun_;
  begun_ = true;
  if (trims && first && c == '\n') {
    paired_ = true;
    return;
  }
  if (line_) {
    put('\n', out);
  }
  line_ = paired_ && c == '\n';
  if (!line_) {
    put(c, out);
  }
}

void Parameter::put(char c, const ByteSink& out) {
  if (as_ == As::kNotKnown && types_ == kTypeString) {
    begin(As::kString, out);
  }
  if (as_ == As::kString) {
    putJsonByte(c, out);
  } else if (as_ == As::kJson) {
    wrong_ = value_.push(c, out) == ValueStep::kWrong || wrong_;
  } else {
    hold_[held_++] = c;
    if (held_ == capacity_) {
      begin(decide(), out);
    }
  }
}

bool Parameter::mayBe(uint8_t type) const {
  return (types_ & kTypeString) == 0 || (types_ & type) != 0;
}

ValueNotation Parameter::notation() const {
  return (types_ & kTypeString) == 0 ? ValueNotation::kLoose : ValueNotation::kStrict;
}

/// The known type of the held text.
Parameter::As Parameter::decide() const {
  uint32_t from = 0;
  uint32_t to = held_;
  while (from < to && isSpace(hold_[from])) {
    ++from;
  }
  while (to > from && isSpace(hold_[to - 1])) {
    --to;
  }
  if (from == to) {
    return As::kString;
  }
  const char first = hold_[from];
  if (first != '{' && first != '[') {
    const WordKind kind = kindOfWord(hold_ + from, to - from);
    const uint8_t type = kind == WordKind::kNull     ? kTypeNull
                         : kind == WordKind::kBool   ? kTypeBool
                         : kind == WordKind::kNumber ? kTypeNumber
                                                     : 0;
    return type != 0 && mayBe(type) ? As::kJson : As::kString;
  }
  if (!mayBe(first == '{' ? kTypeObject : kTypeArray)) {
    return As::kString;
  }
  ValueReader trial;
  trial.start(notation());
  ValueStep step = ValueStep::kMore;
  for (uint32_t i = from; i < to && step == ValueStep::kMore; ++i) {
    step = trial.push(hold_[i], ByteSink());
    if (step == ValueStep::kEnded && i + 1 != to) {
      step = ValueStep::kWrong;
    }
  }
  const bool whole = held_ < capacity_;
  return step == ValueStep::kEnded || (step == ValueStep::kMore && !whole) ? As::kJson
                                                                           : As::kString;
}

void Parameter::begin(As as, const ByteSink& out) {
  as_ = as;
  if (as == As::kString) {
    out.put('"');
  } else {
    value_.start(notation());
  }
  bool ended = false;
  for (uint32_t i = 0; i < held_; ++i) {
    if (as == As::kString) {
      putJsonByte(hold_[i], out);
    } else if (!ended) {
      ended = value_.push(hold_[i], out) == ValueStep::kEnded;
    }
  }
  held_ = 0;
}

void Parameter::end(const ByteSink& out) {
  if (as_ == As::kNotKnown) {
    begin(types_ == kTypeString ? As::kString : decide(), out);
  }
  if (as_ == As::kString) {
    out.put('"');
    return;
  }
  value_.push(' ', out);  // ends a word
  wrong_ = wrong_ || !value_.complete();
}

}  // namespace oriel_internal
