#include "reply/parameter.h"

#include <cstring>
#include <initializer_list>

#include "reply/reader.h"

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

void TagValue::start(const Mark& mark, uint8_t types) {
  *this = TagValue();
  mark_ = &mark;
  text_.start(mark, types);
}

void TagValue::start(const Mark& mark, const JsonValue* schema) {
  start(mark, typesOf(schema));
  if ((mark.flags & kNests) != 0) {
    beginValue(schema);
  }
}

void TagValue::beginValue(const JsonValue* schema) {
  schema_ = schema;
  at_ = At::kBegin;
  lead_bytes_ = matched_ = 0;
  text_.start(*mark_, typesOf(schema));
}

bool TagValue::push(char c, char* hold, uint32_t capacity, const ByteSink& out) {
  hold_ = hold;
  capacity_ = capacity;
  switch (at_) {
    case At::kBegin:
      return begin(c, out);
    case At::kText:
      return text(c, out);
    case At::kTail:
      matched_ = matchOn(mark_->tail_end, matched_, c);
      if (mark_->tail_end[matched_] == '\0') {
        at_ = At::kNext;
        matched_ = 0;
      }
      return false;
    case At::kNext:
      return next(c, out);
    case At::kKey:
      key(c, out);
      return false;
  }
  return false;
}

/// White space and an opening tag start a level. A closing tag ends an empty level if the schema allows one. Anything
/// else, including the bytes held for the tag, is text.
bool TagValue::begin(char c, const ByteSink& out) {
  const bool whole = mark_->text[matched_] == '\0';
  if (whole && c != '/') {
    if (depth_ == kMostDepth) {
      wrong_ = true;
      return false;
    }
    levels_[depth_++] = {schema_, false, false};
    at_ = At::kKey;
    key_bytes_ = 0;
    key(c, out);
    return false;
  }
  const uint8_t types = typesOf(schema_);
  if (whole && (types == kTypeArray || types == kTypeObject)) {
    out.put(types == kTypeArray ? "[]" : "{}");
    at_ = At::kTail;
    matched_ = 0;
    return depth_ == 0;
  }
  const bool goes_on = !whole && (c == mark_->text[matched_] || (isSpace(c) && matched_ == 0));
  if (goes_on && lead_bytes_ < kMostLead) {
    matched_ += isSpace(c) ? 0 : 1;
    lead_[lead_bytes_++] = c;
    return false;
  }
  at_ = At::kText;
  bool ended = false;
  for (uint32_t i = 0; i < lead_bytes_ && !ended; ++i) {
    ended = text(lead_[i], out);
  }
  return ended || text(c, out);
}

bool TagValue::text(char c, const ByteSink& out) {
  if (!text_.push(c, hold_, capacity_, out)) {
    return false;
  }
  at_ = At::kTail;
  matched_ = 0;
  return depth_ == 0;
}

/// The bytes that start a tag, after which a closing tag or a member's name follows.
bool TagValue::next(char c, const ByteSink& out) {
  if (mark_->text[matched_] != '\0') {
    wrong_ = wrong_ || !(c == mark_->text[matched_] || (isSpace(c) && matched_ == 0));
    matched_ += isSpace(c) ? 0 : 1;
    return false;
  }
  if (c == '/') {
    return endLevel(out);
  }
  at_ = At::kKey;
  key_bytes_ = 0;
  key(c, out);
  return false;
}

bool TagValue::endLevel(const ByteSink& out) {
  out.put(levels_[--depth_].list ? ']' : '}');
  at_ = At::kTail;
  matched_ = 0;
  return depth_ == 0;
}

void TagValue::key(char c, const ByteSink& out) {
  if (c == mark_->name_end) {
    beginMember(out);
  } else if (key_bytes_ == sizeof(key_) || c == '<' || c == '\n') {
    wrong_ = true;
  } else {
    key_[key_bytes_++] = c;
  }
}

void TagValue::beginMember(const ByteSink& out) {
  constexpr char kItem[] = "item";
  Level& level = levels_[depth_ - 1];
  if (!level.begun) {
    const uint8_t types = typesOf(level.schema) & (kTypeObject | kTypeArray);
    const bool named_item =
        key_bytes_ == sizeof(kItem) - 1 && std::memcmp(key_, kItem, sizeof(kItem) - 1) == 0;
    level.list = types == kTypeArray || (types != kTypeObject && named_item);
    out.put(level.list ? '[' : '{');
  } else {
    out.put(',');
  }
  level.begun = true;
  const JsonValue* inner = nullptr;
  if (level.list) {
    inner = level.schema == nullptr ? nullptr : level.schema->find("items");
  } else {
    out.put('"');
    for (uint32_t i = 0; i < key_bytes_; ++i) {
      putJsonByte(key_[i], out);
    }
    out.put("\":");
    const JsonValue* const members =
        level.schema == nullptr ? nullptr : level.schema->find("properties");
    inner = members == nullptr ? nullptr : members->find(JsonText{key_, key_bytes_});
  }
  beginValue(inner);
}

}  // namespace oriel_internal
