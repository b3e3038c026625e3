// Parses calls with arguments in tags, and Python calls.
#include <cstring>

#include "reply/characters.h"
#include "reply/reader.h"

namespace oriel_internal {
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
