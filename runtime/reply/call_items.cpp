// Parses JSON calls: {"name": ..., "arguments": ...}, in any order, with other keys.
#include <cstring>

#include "reply/characters.h"
#include "reply/reader.h"

namespace oriel_internal {
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

}  // namespace oriel_internal
