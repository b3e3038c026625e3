#include "reply/call_values.h"

#include <algorithm>
#include <cstring>

#include "grammar/grammar.h"
#include "reply/parameter.h"
#include "reply/reader.h"

namespace oriel_internal {
namespace {

/// Keywords that cannot be enforced for text that is not JSON.
constexpr const char* kOfStrings[] = {"pattern", "format", "minLength", "maxLength"};
/// Keywords that only the JSON grammar supports.
constexpr const char* kOfJson[] = {"allOf",
                                   "not",
                                   "if",
                                   "patternProperties",
                                   "propertyNames",
                                   "dependentRequired",
                                   "dependentSchemas",
                                   "prefixItems",
                                   "contains",
                                   "uniqueItems",
                                   "minProperties",
                                   "maxProperties"};

constexpr uint64_t kStepsOfMember = 100;  // to look its name up

constexpr const char* kOfChoices[] = {"anyOf", "oneOf", "enum", "const"};

uint32_t numberOf(const JsonValue* value, uint32_t otherwise) {
  if (value == nullptr || !value->isInteger() || value->text().bytes > 6) {
    return otherwise;
  }
  uint32_t number = 0;
  for (size_t i = 0; i < value->text().bytes; ++i) {
    number = number * 10 + static_cast<uint32_t>(value->text().data[i] - '0');
  }
  return number;
}

}  // namespace

int shownBytes(const JsonText& name) { return static_cast<int>(std::min<size_t>(name.bytes, 100)); }

Status failOfKey(const Log& log, const JsonText& key) {
  return log.fail(ORIEL_ERROR_UNSUPPORTED,
                  "a tool's parameter \"%.*s\" has a name that calls in this model's form have no "
                  "place for: use up to 64 letters, digits and _",
                  shownBytes(key), key.data);
}

const JsonValue** membersOf(Grammar* grammar, const JsonValue* properties,
                            const JsonValue* required) {
  const uint32_t count = properties != nullptr ? properties->count() : 0;
  const uint32_t n_required = required != nullptr ? required->count() : 0;
  const JsonValue** const all = grammar->scratch()->take<const JsonValue*>(uint64_t{count} + 1);
  if (all == nullptr || !grammar->work()->spend((uint64_t{count} + n_required) * kStepsOfMember)) {
    return nullptr;
  }
  for (const JsonValue* one = n_required != 0 ? required->first() : nullptr; one != nullptr;
       one = one->next()) {
    const JsonValue* const property =
        one->isString() && count != 0 ? properties->find(one->text()) : nullptr;
    if (property != nullptr) {
      const_cast<JsonValue*>(property)->note();  // the tools were parsed for this grammar
    }
  }
  uint32_t n = 0;
  for (const JsonValue* one = count != 0 ? properties->first() : nullptr; one != nullptr;
       one = one->next()) {
    all[n++] = one;
  }
  return all;
}

ExprId CallValues::fail(const char* what) {
  if (status_.ok()) {
    status_ =
        log_.fail(ORIEL_ERROR_UNSUPPORTED,
                  "a tool's parameters have \"%s\", which calls in this model's form cannot be "
                  "held to: leave it out, or do not ask for checked calls",
                  what);
  }
  return grammar_.never();
}

bool CallValues::refuses(const JsonValue& schema, const char* const* keywords, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (schema.find(keywords[i]) != nullptr) {
      fail(keywords[i]);
      return true;
    }
  }
  return false;
}

const JsonValue& CallValues::resolved(const JsonValue& schema) const {
  const JsonValue* at = &schema;
  for (uint32_t hops = 0; hops < kMostDepth; ++hops) {
    const JsonValue* const ref = at->find("$ref");
    if (ref == nullptr || !ref->isString() || ref->text().bytes < 2 || ref->text().data[0] != '#') {
      return *at;
    }
    const JsonValue* target = &document_;
    const char* text = ref->text().data + 1;
    const char* const end = ref->text().data + ref->text().bytes;
    while (target != nullptr && text != end && *text == '/') {
      const char* const name = ++text;
      text = std::find(text, end, '/');
      target = target->find(JsonText{name, static_cast<size_t>(text - name)});
    }
    if (target == nullptr) {
      return *at;  // readJsonSchema() logs the fault
    }
    at = target;
  }
  return *at;
}

ExprId CallValues::value(const JsonValue& schema, ArgumentNotation notation, const char* end_mark) {
  switch (notation) {
    case ArgumentNotation::kJson:
      return json(schema);
    case ArgumentNotation::kRaw:
      return raw(schema, end_mark);
    case ArgumentNotation::kGemma:
      return gemma(schema);
  }
  return grammar_.never();
}

ExprId CallValues::json(const JsonValue& schema) {
  ExprId value = grammar_.never();
  if (status_.ok()) {
    status_ = readJsonSchema(schema, document_, rules_, log_, &grammar_, &value);
  }
  return value;
}

const JsonValue& CallValues::members(const JsonValue& given) {
  const JsonValue& schema = resolved(given);
  const JsonValue* const type = schema.find("type");
  const bool is_plain = type == nullptr || (type->isString() && type->text().is("object"));
  if (!is_plain || schema.find("$ref") != nullptr) {
    (void)json(given);  // logs the fault
  }
  if ((typesOf(&schema) & kTypeObject) == 0) {
    fail("type");
  } else if (!refuses(schema, kOfJson, sizeof(kOfJson) / sizeof(kOfJson[0])) &&
             !refuses(schema, kOfChoices, sizeof(kOfChoices) / sizeof(kOfChoices[0]))) {
    checkRequired(schema);
  }
  return schema;
}

void CallValues::checkRequired(const JsonValue& schema) {
  const JsonValue* const required = schema.find("required");
  const JsonValue* const properties = schema.find("properties");
  const JsonValue* name = required == nullptr ? nullptr : required->first();
  for (; name != nullptr; name = name->next()) {
    if (name->isString() && (properties == nullptr || properties->find(name->text()) == nullptr)) {
      fail("required");
      return;
    }
  }
}

ExprId CallValues::jsonObject(const JsonValue& schema) {
  const ExprId value = json(schema);
  return (typesOf(&resolved(schema)) & kTypeObject) != 0 ? value : fail("type");
}

bool CallValues::listed(const JsonValue& schema, uint8_t types, const char* before,
                        const char* behind, ExprId* out) {
  const JsonValue* const constant = schema.find("const");
  const JsonValue* const list = schema.find("enum");
  const JsonValue* one = constant != nullptr ? constant : list != nullptr ? list->first() : nullptr;
  *out = grammar_.never();
  if (one == nullptr) {
    return false;
  }
  for (; one != nullptr; one = constant != nullptr ? nullptr : one->next()) {
    ExprId value = grammar_.never();
    if (one->isString() && (types & kTypeString) != 0) {
      const JsonText& text = one->text();
      const char* const end = text.data + text.bytes;
      const bool has_mark =
          std::search(text.data, end, behind, behind + std::strlen(behind)) != end;
      value = has_mark ? fail("enum") : grammar_.bytes(text.data, text.bytes);
      value =
          grammar_.sequence(grammar_.text(before), grammar_.sequence(value, grammar_.text(behind)));
    } else if (one->isNumber() && (types & kTypeNumber) != 0) {
      value = grammar_.bytes(one->text().data, one->text().bytes);
    } else if (one->isBool() && (types & kTypeBool) != 0) {
      value = grammar_.text(one->boolean() ? "true" : "false");
    } else if (one->isNull() && (types & kTypeNull) != 0) {
      value = grammar_.text("null");
    } else if (one->isArray() || one->isObject()) {
      value = fail("enum");
    }
    *out = grammar_.choice(*out, value);
  }
  return true;
}

/// Strings between tags are written verbatim; everything else as JSON.
ExprId CallValues::raw(const JsonValue& given, const char* end_mark) {
  const JsonValue& schema = resolved(given);
  const uint8_t types = typesOf(&schema);
  ExprId all = 0;
  if ((types & kTypeString) == 0) {
    return grammar_.sequence(json(schema), grammar_.text(end_mark));
  }
  if (types == kTypeString && listed(schema, types, "", end_mark, &all)) {
    return all;
  }
  if ((types & ~(kTypeString | kTypeNull)) != 0) {
    return fail("several types besides string");
  }
  return refuses(schema, kOfStrings, sizeof(kOfStrings) / sizeof(kOfStrings[0]))
             ? grammar_.never()
             : textUpTo(&grammar_, end_mark);
}

ExprId CallValues::gemmaString(const JsonValue& schema) {
  return refuses(schema, kOfStrings, sizeof(kOfStrings) / sizeof(kOfStrings[0]))
             ? grammar_.never()
             : grammar_.sequence(grammar_.text(kGemmaQuote), textUpTo(&grammar_, kGemmaQuote));
}

ExprId CallValues::gemmaArray(const JsonValue& schema) {
  const JsonValue* const items = schema.find("items");
  if (items == nullptr || !items->isObject()) {
    return fail("an array without items");
  }
  const uint32_t least = numberOf(schema.find("minItems"), 0);
  const uint32_t most = numberOf(schema.find("maxItems"), kAnyTimes);
  if (most < least || most == 0) {
    return most == 0 && least == 0 ? grammar_.text("[]") : fail("minItems above maxItems");
  }
  const ExprId one = gemma(*items);
  const ExprId more = grammar_.sequence(grammar_.text(","), one);
  const ExprId rest =
      grammar_.repeat(more, least == 0 ? 0 : least - 1, most == kAnyTimes ? kAnyTimes : most - 1);
  const ExprId list = grammar_.sequence(one, rest);
  return grammar_.sequence(
      grammar_.text("["),
      grammar_.sequence(least == 0 ? grammar_.optional(list) : list, grammar_.text("]")));
}

ExprId CallValues::gemmaObject(const JsonValue& schema) {
  const JsonValue* const properties = schema.find("properties");
  const JsonValue* each = properties == nullptr ? nullptr : properties->first();
  for (; each != nullptr && status_.ok(); each = each->next()) {
    status_ = isGemmaKey(each->key()) ? kOk : failOfKey(log_, each->key());
  }
  checkRequired(schema);
  const ExprId members = membersInOrder(
      &grammar_, properties, schema.find("required"), ",", [this](const JsonValue& property) {
        return grammar_.sequence(grammar_.bytes(property.key().data, property.key().bytes),
                                 grammar_.sequence(grammar_.text(":"), gemma(property)));
      });
  return grammar_.sequence(grammar_.text("{"), grammar_.sequence(members, grammar_.text("}")));
}

ExprId CallValues::gemma(const JsonValue& given) {
  const JsonValue& schema = resolved(given);
  if (!status_.ok() || ++depth_ > kMostDepth) {
    return fail("parameters nested too deeply");
  }
  ExprId value = grammar_.never();
  const uint8_t types = typesOf(&schema);
  const JsonValue* choices = schema.find("anyOf");
  choices = choices != nullptr ? choices : schema.find("oneOf");
  if (refuses(schema, kOfJson, sizeof(kOfJson) / sizeof(kOfJson[0]))) {
    value = grammar_.never();
  } else if (choices != nullptr) {
    for (const JsonValue* one = choices->first(); one != nullptr; one = one->next()) {
      value = grammar_.choice(value, gemma(*one));
    }
  } else if (types == kTypeAny) {
    value = fail("a parameter without a type");
  } else if (types == kTypeNumber || !listed(schema, types, kGemmaQuote, kGemmaQuote, &value)) {
    value = gemmaOf(schema, types);
  }
  --depth_;
  return value;
}

/// A value of any of these types.
ExprId CallValues::gemmaOf(const JsonValue& schema, uint8_t types) {
  ExprId value = grammar_.never();
  if ((types & kTypeString) != 0) {
    value = grammar_.choice(value, gemmaString(schema));
  }
  if ((types & kTypeObject) != 0) {
    value = grammar_.choice(value, gemmaObject(schema));
  }
  if ((types & kTypeArray) != 0) {
    value = grammar_.choice(value, gemmaArray(schema));
  }
  if ((types & kTypeNull) != 0) {
    value = grammar_.choice(value, grammar_.text("null"));
  }
  if ((types & kTypeBool) != 0) {
    value = grammar_.choice(value, grammar_.choice(grammar_.text("true"), grammar_.text("false")));
  }
  if ((types & kTypeNumber) != 0) {
    value = types == kTypeNumber ? grammar_.choice(value, json(schema))
                                 : fail("number among several types");
  }
  return value;
}

// Parses JSON calls: {"name": ..., "arguments": ...}, in any order, with other keys.

void ReplyReader::beginItem() {
  items_ = true;
  nested_ = 0;
  name_bytes_ = 0;
  name_known_ = arguments_known_ = arguments_shown_ = false;
  arguments_are_text_ = inner_wrong_ = too_long_ = false;
  arguments_from_ = arguments_to_ = 0;
  at_ = At::kItem;
}

bool ReplyReader::keyIs(const char* word) const {
  return key_bytes_ == std::strlen(word) && std::memcmp(key_, word, key_bytes_) == 0;
}

bool ReplyReader::item(char c) {
  switch (at_) {
    case At::kItemKey:
      return itemKey(c);
    case At::kItemValue:
      return itemValue(c);
    case At::kItemInside:
      return itemInside(c);
    case At::kItemNext:
      return itemNext(c);
    case At::kItemColon:
      if (c == ':') {
        at_ = At::kItemValue;
      }
      return c == ':' || isSpace(c);
    default:
      break;
  }
  if (c == '}') {
    return endItem();
  }
  if (c == '"' || c == '\'') {
    key_bytes_ = 0;
    value_.start(ValueNotation::kPlain);
    at_ = At::kItemKey;
    return itemKey(c);
  }
  return isSpace(c);
}

bool ReplyReader::itemKey(char c) {
  const ValueStep step = value_.push(c, {putKey, this});
  if (step == ValueStep::kEnded) {
    if (too_long_) {
      key_bytes_ = 0;
      too_long_ = false;
    }
    at_ = At::kItemColon;
  }
  return step != ValueStep::kWrong;
}

bool ReplyReader::itemValue(char c) {
  if (isSpace(c)) {
    return true;
  }
  const bool text = c == '"' || c == '\'';
  const bool is_name = keyIs("name") || keyIs("tool_name") || (keyIs("function") && text);
  const bool is_arguments = keyIs("arguments") || keyIs("parameters") || keyIs("args");
  const bool keyed = section_row_ != kNoRow && (kMarks[section_row_].flags & kKeyed) != 0;
  item_part_ = ItemPart::kOther;
  if ((keyIs("function") || keyIs("tool_call")) && c == '{' && !name_known_) {
    ++nested_;
    at_ = At::kItem;
    return nested_ < 4;
  }
  if (is_name && text && !name_known_) {
    item_part_ = ItemPart::kName;
    name_bytes_ = 0;
  } else if (keyed && c == '{' && !name_known_) {
    std::memcpy(name_, key_, key_bytes_);
    name_bytes_ = key_bytes_;
    name_known_ = true;
    item_part_ = ItemPart::kArguments;
  } else if (is_arguments && !arguments_known_ && (c == '{' || text)) {
    item_part_ = text ? ItemPart::kArgumentsText : ItemPart::kArguments;
  } else if (is_arguments && !arguments_known_ && c == 'n') {
    arguments_known_ = arguments_are_text_ = true;  // like an empty text: {}
    arguments_from_ = arguments_to_ = 0;
  } else if (bare_ && !keyIs("type") && !keyIs("id") && !keyIs("tool_call_id") &&
             !keyIs("call_id")) {
    return false;
  }
  const bool plain = item_part_ == ItemPart::kName || item_part_ == ItemPart::kArgumentsText;
  if (item_part_ == ItemPart::kArguments || item_part_ == ItemPart::kArgumentsText) {
    arguments_known_ = true;
    arguments_are_text_ = plain;
    arguments_from_ = held_ - 1;
    if (name_known_ && !plain) {
      if (!commit()) {
        return false;
      }
      arguments_shown_ = true;
    }
    startInner();
  }
  value_.start(plain ? ValueNotation::kPlain : ValueNotation::kLoose);
  at_ = At::kItemInside;
  return itemInside(c);
}

bool ReplyReader::itemInside(char c) {
  ByteSink out;
  if (item_part_ == ItemPart::kName) {
    out = {putName, this};
  } else if (item_part_ == ItemPart::kArgumentsText) {
    out = {putInner, this};
  } else if (item_part_ == ItemPart::kArguments && committed_) {
    out = argumentSink();
  }
  const ValueStep step = value_.push(c, out);
  if (step == ValueStep::kWrong || too_long_ || inner_wrong_) {
    return false;
  }
  if (step == ValueStep::kMore) {
    return true;
  }
  at_ = At::kItemNext;
  return endItemValue() && (step == ValueStep::kEnded || itemNext(c));
}

bool ReplyReader::endItemValue() {
  const bool blank = !inner_begun_ && (inner_null_ == 0 || inner_null_ == 4);
  if (item_part_ == ItemPart::kArgumentsText && !blank && !inner_.complete()) {
    return false;
  }
  if (item_part_ == ItemPart::kArguments || item_part_ == ItemPart::kArgumentsText) {
    arguments_to_ = held_;
  }
  if (item_part_ == ItemPart::kName) {
    name_known_ = true;
    return !arguments_known_ || replayArguments();
  }
  return true;
}

void ReplyReader::startInner() {
  inner_.start(ValueNotation::kLoose);
  inner_step_ = ValueStep::kMore;
  inner_begun_ = false;
  inner_null_ = 0;
}

/// A byte of arguments given as text: an object, or white space or null, which mean {}.
void ReplyReader::pushInner(char c) {
  if (!inner_begun_) {
    constexpr char kNull[] = "null";
    if (isSpace(c)) {
      return;
    }
    if (inner_null_ < 4 && c == kNull[inner_null_]) {
      ++inner_null_;
      return;
    }
    inner_begun_ = true;
    if (c != '{' || inner_null_ != 0 || (name_known_ && !commit())) {
      inner_wrong_ = true;
      return;
    }
    arguments_shown_ = name_known_;
  }
  if (inner_step_ == ValueStep::kMore || inner_.complete()) {
    inner_step_ = inner_.push(c, committed_ ? argumentSink() : ByteSink());
    inner_wrong_ = inner_wrong_ || inner_step_ == ValueStep::kWrong;
  }
}

/// Arguments that came before the name are still held.
bool ReplyReader::replayArguments() {
  const uint32_t held = held_;
  const uint32_t from = arguments_from_;
  if (!commit()) {
    return false;
  }
  arguments_shown_ = !arguments_are_text_;
  startInner();
  value_.start(arguments_are_text_ ? ValueNotation::kPlain : ValueNotation::kLoose);
  const ByteSink out = arguments_are_text_ ? ByteSink{putInner, this} : argumentSink();
  for (uint32_t i = from; i < arguments_to_ && i < held; ++i) {
    value_.push(hold_[i], out);
  }
  return true;
}

bool ReplyReader::itemNext(char c) {
  if (c == ',') {
    at_ = At::kItem;
    return true;
  }
  return c == '}' ? endItem() : isSpace(c);
}

bool ReplyReader::endItem() {
  if (nested_ != 0) {
    --nested_;
    at_ = At::kItemNext;
    return true;
  }
  if (!name_known_ || (bare_ && !arguments_known_) || !commit()) {
    return false;
  }
  endCall();
  return true;
}

// Parses calls with arguments in tags, and Python calls.

namespace {

bool isOfKey(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool beginsKey(char c) { return isOfKey(c) && (c < '0' || c > '9'); }

const JsonValue* memberAt(const JsonValue* object, uint32_t number) {
  const JsonValue* member = object == nullptr ? nullptr : object->first();
  for (; member != nullptr && number != 0; --number) {
    member = member->next();
  }
  return member;
}

}  // namespace

/// The key is known: writes it, preceded by its separator.
bool ReplyReader::beginMember() {
  if (!commit() || too_long_) {
    return false;
  }
  put(PartKind::kCallArguments, members_++ == 0 ? '{' : ',');
  arguments_shown_ = true;
  put(PartKind::kCallArguments, '"');
  for (uint32_t i = 0; i < key_bytes_; ++i) {
    putJsonByte(key_[i], argumentSink());
  }
  put(PartKind::kCallArguments, '"');
  put(PartKind::kCallArguments, ':');
  return true;
}

// ---- Tags ----------------------------------------------------------------------------------------

bool ReplyReader::beginParameter(uint8_t row) {
  if (!commit()) {
    return false;
  }
  parameter_row_ = row;
  key_bytes_ = 0;
  held_ = 0;
  at_ = At::kParameterKey;
  return true;
}

bool ReplyReader::parameters(char c) {
  if (isSpace(c)) {
    return true;
  }
  if (c == '{' && !(committed_ && arguments_shown_)) {
    return beginArguments(c);
  }
  return markHere(c, kMarkParameter | kMarkCallEnd | kMarkSectionEnd);
}

bool ReplyReader::parameterKey(char c) {
  const Mark& mark = kMarks[parameter_row_];
  if (c != mark.name_end) {
    putKey(c, this);
    return !too_long_;
  }
  if (!beginMember()) {
    return false;
  }
  const JsonValue* const schema =
      properties_ == nullptr ? nullptr : properties_->find(JsonText{key_, key_bytes_});
  types_ = typesOf(schema);
  key_bytes_ = 0;  // from here on, attributes of the tag
  matched_ = 0;
  at_ = At::kParameterRest;
  if (mark.open_end == nullptr) {
    tag_value_.start(mark, schema);
    at_ = At::kParameterValue;
  }
  return true;
}

/// A tag may declare that its value is text.
bool ReplyReader::parameterRest(char c) {
  const Mark& mark = kMarks[parameter_row_];
  if (key_bytes_ < kMostKey) {
    key_[key_bytes_++] = c;
  }
  matched_ = matchOn(mark.open_end, matched_, c);
  if (mark.open_end[matched_] != '\0') {
    return true;
  }
  const auto says = [this](const char* what) {
    const size_t bytes = std::strlen(what);
    for (size_t i = 0; i + bytes <= key_bytes_; ++i) {
      if (std::memcmp(key_ + i, what, bytes) == 0) {
        return true;
      }
    }
    return false;
  };
  if (says("string=\"true\"") || says("type=\"string\"")) {
    types_ = kTypeString;
  } else if (says("string=\"false\"") || says("type=\"")) {
    types_ = kTypeAny & ~kTypeString;
  }
  tag_value_.start(mark, types_);
  at_ = At::kParameterValue;
  return true;
}

bool ReplyReader::parameterValue(char c) {
  if (tag_value_.push(c, hold_, kMostHeld, argumentSink())) {
    const Mark& mark = kMarks[parameter_row_];
    matched_ = 0;
    at_ = mark.tail_end != nullptr ? At::kParameterTail : At::kParameters;
  }
  return !tag_value_.wrong();
}

bool ReplyReader::parameterTail(char c) {
  const Mark& mark = kMarks[parameter_row_];
  matched_ = matchOn(mark.tail_end, matched_, c);
  if (mark.tail_end[matched_] == '\0') {
    at_ = At::kParameters;
  }
  return true;
}

// ---- Python --------------------------------------------------------------------------------------

bool ReplyReader::python(char c) {
  switch (at_) {
    case At::kPythonArgument:
      return pythonArgument(c);
    case At::kPythonNext:
      return pythonNext(c);
    case At::kPythonKey:
      if (isOfKey(c)) {
        putKey(c, this);
        return !too_long_;
      }
      at_ = At::kPythonEquals;
      return python(c);
    case At::kPythonEquals:
      if (isSpace(c)) {
        return true;
      }
      value_.start(ValueNotation::kPython);
      at_ = At::kPythonValue;
      return c == '=' && beginMember();
    default:
      break;
  }
  const ValueStep step = value_.push(c, argumentSink());
  if (step == ValueStep::kEnded || step == ValueStep::kEndedBefore) {
    at_ = At::kPythonNext;
  }
  return step == ValueStep::kEndedBefore ? pythonNext(c) : step != ValueStep::kWrong;
}

bool ReplyReader::pythonArgument(char c) {
  if (isSpace(c)) {
    return true;
  }
  if (c == ')') {
    return pythonNext(c);
  }
  if (beginsKey(c)) {
    key_bytes_ = 0;
    at_ = At::kPythonKey;
    return python(c);
  }
  return pythonPositional(c);
}

/// A positional argument: named by the order of the tool's parameters.
bool ReplyReader::pythonPositional(char c) {
  if (!committed_) {
    members_ = 0;
  }
  const JsonValue* const properties =
      committed_ ? properties_ : propertiesOf(findTool(settings_.tools, {name_, name_bytes_}));
  const JsonValue* const property = memberAt(properties, members_);
  if (property == nullptr || property->key().bytes > kMostKey) {
    return false;
  }
  std::memcpy(key_, property->key().data, property->key().bytes);
  key_bytes_ = static_cast<uint32_t>(property->key().bytes);
  value_.start(ValueNotation::kPython);
  at_ = At::kPythonValue;
  return beginMember() && python(c);
}

bool ReplyReader::pythonNext(char c) {
  if (c == ',') {
    at_ = At::kPythonArgument;
    return true;
  }
  if (c != ')') {
    return isSpace(c);
  }
  if (!commit()) {
    return false;
  }
  if (arguments_shown_) {
    put(PartKind::kCallArguments, '}');
  }
  endCall();
  return true;
}

}  // namespace oriel_internal
