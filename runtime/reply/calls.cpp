// Parses calls: their marks, names and separators.
#include <algorithm>
#include <cstring>

#include "reply/reader.h"

namespace oriel_internal {
namespace {

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool isOfName(char c) {
  return isLetter(c) || isDigit(c) || c == '.' || c == '-' || c == ':' || c == '/' || c == '$';
}

}  // namespace

void ReplyReader::beginCall(uint8_t row) {
  const Mark& mark = kMarks[row];
  from_thought_ = mode_ == Mode::kThought;
  keep_space_ = !from_thought_ && !after_call_;
  mode_ = Mode::kCall;
  bare_ = false;
  section_row_ = row;
  call_row_ = kNoRow;
  section_ = true;
  section_calls_ = 0;
  list_ = (mark.flags & kListBegun) != 0;
  items_ = fenced_ = false;
  committed_ = false;
  name_bytes_ = 0;
  at_ = list_ ? At::kListItem : (mark.kinds & kMarkSkip) != 0 ? At::kSkipped : At::kStart;
  matched_ = 0;
  if ((mark.kinds & kMarkCall) != 0) {
    call_row_ = row;
    at_ = mark.name_end != '\0' ? At::kMarkedName : At::kName;
  }
}

/// The last held byte, after white space, may begin a call without a mark.
void ReplyReader::beginBareCall() {
  const char c = hold_[--held_];
  space_bytes_ = held_;
  from_thought_ = keep_space_ = false;
  mode_ = Mode::kCall;
  bare_ = true;
  section_row_ = call_row_ = kNoRow;
  section_ = true;
  section_calls_ = 0;
  list_ = items_ = fenced_ = committed_ = false;
  name_bytes_ = 0;
  at_ = At::kStart;
  call(c);
}

void ReplyReader::call(char c) {
  if (at_ == At::kParameterValue) {
    if (!parameterValue(c)) {
      held_ = 0;
      fail();
    }
    return;
  }
  if (!hold(c)) {
    fail();
    pushByte(c);
    return;
  }
  if (mark_from_ != kNoMark) {
    if (!stepMark()) {
      at_ == At::kBetween ? leave() : fail();
    }
    return;
  }
  callByte(c);
}

void ReplyReader::callByte(char c) {
  bool good = false;
  switch (at_) {
    case At::kStart:
    case At::kAgain:
      good = callStart(c);
      break;
    case At::kListItem:
      good = listItem(c);
      break;
    case At::kName:
      good = name(c);
      break;
    case At::kMarkedName:
      good = markedName(c);
      break;
    case At::kNameRest:
      good = nameRest(c);
      break;
    case At::kSkipped:
      good = skipped(c);
      break;
    case At::kAfterName:
      good = afterName(c);
      break;
    case At::kSeparated:
    case At::kId:
      good = separated(c);
      break;
    case At::kFence:
      good = fence(c);
      break;
    case At::kItem:
    case At::kItemKey:
    case At::kItemColon:
    case At::kItemValue:
    case At::kItemInside:
    case At::kItemNext:
      good = item(c);
      break;
    case At::kArguments:
      good = arguments(c);
      break;
    case At::kParameters:
      good = parameters(c);
      break;
    case At::kParameterKey:
      good = parameterKey(c);
      break;
    case At::kParameterRest:
      good = parameterRest(c);
      break;
    case At::kParameterTail:
      good = parameterTail(c);
      break;
    case At::kPythonArgument:
    case At::kPythonKey:
    case At::kPythonEquals:
    case At::kPythonValue:
    case At::kPythonNext:
      good = python(c);
      break;
    case At::kBetween:
      if (!between(c)) {
        leave();
      }
      return;
    case At::kParameterValue:
      return;
  }
  if (!good) {
    fail();
  } else if (committed_ && mode_ == Mode::kCall && mark_from_ == kNoMark && at_ != At::kBetween) {
    held_ = 0;  // can no longer become text
  }
}

/// Each function below reads the last held byte; false: not a call.
bool ReplyReader::callStart(char c) {
  if (isSpace(c)) {
    return true;
  }
  if (from_thought_) {  // only calls in tags count there
    return markHere(c, kMarkCall);
  }
  if (c == '{') {
    beginItem();
    return true;
  }
  if (at_ == At::kAgain) {
    return false;
  }
  if (c == '[') {
    list_ = true;
    at_ = At::kListItem;
    return true;
  }
  if (isLetter(c) ? !bare_ || (settings_.forms & kFormRecipient) != 0 : !bare_ && isDigit(c)) {
    at_ = At::kName;
    return name(c);
  }
  return !bare_ && markHere(c, kMarkCall | kMarkFence);
}

bool ReplyReader::listItem(char c) {
  const bool json = !bare_ || (settings_.forms & kFormBareJson) != 0;
  if (isSpace(c)) {
    return true;
  }
  if (c == '{' && json) {
    beginItem();
    return true;
  }
  if (c == ']' && (section_calls_ != 0 || !bare_)) {
    list_ = false;
    held_ = 0;
    at_ = At::kBetween;
    return true;
  }
  if (isLetter(c) ? !bare_ || (settings_.forms & kFormBarePython) != 0 : !bare_ && isDigit(c)) {
    at_ = At::kName;
    return name(c);
  }
  return false;
}

bool ReplyReader::name(char c) {
  if (isOfName(c) || goesOnAsGemmaName(c)) {
    putName(c, this);
    return !too_long_;
  }
  const bool to_all = name_bytes_ == 3 && std::memcmp(name_, "all", 3) == 0 && c == '\n';
  if (to_all && (settings_.forms & kFormRecipient) != 0) {  // Functionary's name for the user
    held_ = 0;
    mode_ = Mode::kText;
    at_start_ = after_call_ = drop_space_ = false;
    return true;
  }
  if (call_row_ != kNoRow && kMarks[call_row_].open_end != nullptr) {
    at_ = At::kNameRest;
    matched_ = 0;
    return nameRest(c);
  }
  at_ = At::kAfterName;
  return afterName(c);
}

/// After "call:" everything up to the arguments is a name, which may contain blanks.
bool ReplyReader::goesOnAsGemmaName(char c) const {
  constexpr char kCall[] = "call:";
  constexpr uint32_t kBytes = sizeof(kCall) - 1;
  const bool gemma = section_row_ != kNoRow && kMarks[section_row_].forms == kFormGemma4;
  return gemma && name_bytes_ > kBytes && std::memcmp(name_, kCall, kBytes) == 0 &&
         std::strchr("{(<\n", c) == nullptr;
}

bool ReplyReader::markedName(char c) {
  const Mark& mark = kMarks[call_row_];
  if (c == mark.name_end) {
    matched_ = 0;
    at_ = mark.open_end != nullptr ? At::kNameRest : At::kParameters;
    return name_bytes_ != 0;
  }
  if (c == '\n' || c == '<' || c == '>' || c == '"') {
    return false;
  }
  putName(c, this);
  return !too_long_;
}

bool ReplyReader::nameRest(char c) {
  const Mark& mark = kMarks[call_row_];
  matched_ = matchOn(mark.open_end, matched_, c);
  if (mark.open_end[matched_] == '\0') {
    at_ = mark.name_end != '\0' ? At::kParameters : At::kSeparated;
  }
  return true;
}

bool ReplyReader::skipped(char c) {
  const char* const until = kMarks[section_row_].open_end;
  matched_ = matchOn(until, matched_, c);
  if (until[matched_] == '\0') {
    held_ = 0;
    mode_ = Mode::kText;
  }
  return held_ < kMostSpace;
}

bool ReplyReader::afterName(char c) {
  if (c == '(') {
    at_ = At::kPythonArgument;
    members_ = 0;
    return true;
  }
  if (isSpace(c)) {
    return !list_ || !bare_;
  }
  if (list_) {
    return false;
  }
  if (c == '{') {
    return beginArguments(c);
  }
  return !bare_ && markHere(c, kMarkName | kMarkId | kMarkArguments | kMarkParameter |
                                   kMarkCallEnd | kMarkSectionEnd | kMarkFence);
}

/// After a mark: arguments, or a name.
bool ReplyReader::separated(char c) {
  if (at_ == At::kId && isOfName(c)) {
    return true;
  }
  if (isSpace(c)) {
    return true;
  }
  if (c == '{' && at_ == At::kSeparated) {
    return beginArguments(c);
  }
  if (c == '"' && at_ == At::kSeparated) {
    return beginArgumentsText(c);
  }
  if (at_ == At::kSeparated && (isLetter(c) || isDigit(c))) {
    name_bytes_ = 0;
    at_ = At::kName;
    return name(c);
  }
  return markHere(c, kMarkArguments | kMarkParameter | kMarkCallEnd | kMarkFence);
}

/// The language after a fence.
bool ReplyReader::fence(char c) {
  if (isLetter(c)) {
    return true;
  }
  at_ = fence_back_;
  callByte(c);
  return true;
}

bool ReplyReader::beginArguments(char c) {
  if (!commit()) {
    return false;
  }
  const bool gemma = section_row_ != kNoRow && kMarks[section_row_].forms == kFormGemma4;
  value_.start(gemma ? ValueNotation::kGemma : ValueNotation::kLoose);
  arguments_shown_ = true;
  item_part_ = ItemPart::kArguments;
  at_ = At::kArguments;
  return arguments(c);
}

/// JSON inside a JSON string.
bool ReplyReader::beginArgumentsText(char c) {
  name_known_ = true;
  arguments_shown_ = inner_wrong_ = false;
  item_part_ = ItemPart::kArgumentsText;
  startInner();
  value_.start(ValueNotation::kPlain);
  at_ = At::kArguments;
  return arguments(c);
}

bool ReplyReader::arguments(char c) {
  const bool text = item_part_ == ItemPart::kArgumentsText;
  const ValueStep step = value_.push(c, text ? ByteSink{putInner, this} : argumentSink());
  if (step == ValueStep::kWrong || (text && inner_wrong_)) {
    return false;
  }
  if (step == ValueStep::kMore) {
    return true;
  }
  if (text && !(endItemValue() && commit())) {
    return false;
  }
  endCall();
  return true;
}

/// Removes text that templates write around names.
void ReplyReader::fixName() {
  const auto drop = [this](const char* prefix) {
    const uint32_t bytes = static_cast<uint32_t>(std::strlen(prefix));
    if (name_bytes_ > bytes && std::memcmp(name_, prefix, bytes) == 0) {
      name_bytes_ -= bytes;
      std::memmove(name_, name_ + bytes, name_bytes_);
    }
  };
  const ReplyForms forms = section_row_ == kNoRow ? 0 : kMarks[section_row_].forms;
  if (forms == kFormGemma4) {
    drop("call:");
    while (name_bytes_ != 0 && isSpace(name_[name_bytes_ - 1])) {
      --name_bytes_;
    }
  }
  if (forms == kFormKimi) {
    drop("functions.");
    uint32_t end = name_bytes_;
    while (end > 0 && isDigit(name_[end - 1])) {
      --end;
    }
    if (end > 1 && end < name_bytes_ && name_[end - 1] == ':') {
      name_bytes_ = end - 1;
    }
  }
  if (forms == kFormPythonTag && name_bytes_ > 5 &&
      std::memcmp(name_ + name_bytes_ - 5, ".call", 5) == 0) {
    name_bytes_ -= 5;
  }
}

/// Reports the call: from here on it cannot become text.
bool ReplyReader::commit() {
  if (committed_) {
    return true;
  }
  fixName();
  if (name_bytes_ == 0 || too_long_) {
    return false;
  }
  if (keep_space_) {
    putHeld(PartKind::kText, 0, space_bytes_);
  }
  flush();
  committed_ = true;
  from_thought_ = keep_space_ = at_start_ = drop_space_ = false;
  arguments_shown_ = false;
  members_ = 0;
  ++calls_;
  ++section_calls_;
  properties_ = propertiesOf(findTool(settings_.tools, {name_, name_bytes_}));
  tell(PartKind::kCallBegun, name_, name_bytes_);
  return true;
}

void ReplyReader::endCall() {
  if (!arguments_shown_) {
    put(PartKind::kCallArguments, '{');
    put(PartKind::kCallArguments, '}');
  }
  flush();
  tell(PartKind::kCallEnded, "", 0);
  committed_ = false;
  name_bytes_ = 0;
  call_row_ = kNoRow;
  held_ = space_bytes_ = 0;
  keep_space_ = false;
  at_ = At::kBetween;
}

bool ReplyReader::between(char c) {
  if (isSpace(c)) {
    return held_ < kMostSpace;
  }
  if (list_ && (c == ',' || c == ']')) {
    list_ = c == ',';
    held_ = 0;
    at_ = list_ ? At::kListItem : At::kBetween;
    return true;
  }
  if (section_ && !list_ && items_) {
    if (c == '{') {
      held_ = 0;
      hold(c);
      beginItem();
      return true;
    }
    if (c == ';' || c == ',') {
      at_ = At::kAgain;
      return true;
    }
  }
  return markHere(c, kMarkCallEnd | kMarkSectionEnd | kMarkCall | (fenced_ ? kMarkFence : 0));
}

/// True if the last held byte starts a mark of these kinds.
bool ReplyReader::markHere(char c, int kinds) {
  mark_kinds_ = static_cast<uint16_t>(kinds);
  --held_;
  const bool begins = beginsMark(c);
  if (!begins) {
    hold(c);
  }
  return begins;
}

void ReplyReader::takeCallMark(uint8_t row) {
  const Mark& mark = kMarks[row];
  if ((mark.kinds & kMarkFence) != 0) {
    fenced_ = !fenced_;
    fence_back_ = at_;
    at_ = At::kFence;
    held_ = fence_back_ == At::kBetween ? 0 : held_;
    at_ = fence_back_ == At::kBetween ? At::kBetween : At::kFence;
    return;
  }
  if ((mark.kinds & (kMarkCallEnd | kMarkSectionEnd)) != 0) {
    if (at_ != At::kBetween) {
      const bool known = settings_.tools == nullptr || committed_ ||
                         findTool(settings_.tools, {name_, name_bytes_}) != nullptr;
      if (!known || !commit()) {
        mark_from_ = kNoMark;
        fail();
        return;
      }
      if (arguments_shown_) {
        put(PartKind::kCallArguments, '}');
      }
      endCall();
    }
    section_ = section_ && (mark.kinds & kMarkSectionEnd) == 0;
    list_ = list_ && section_;
    held_ = 0;
    return;
  }
  if ((mark.kinds & kMarkCall) != 0) {
    call_row_ = row;
    name_bytes_ = 0;
    at_ = mark.name_end != '\0' ? At::kMarkedName : At::kName;
    return;
  }
  if ((mark.kinds & kMarkParameter) != 0) {
    if (!beginParameter(row)) {
      fail();
    }
    return;
  }
  at_ = (mark.kinds & kMarkId) != 0 ? At::kId : At::kSeparated;
}

/// The held text is not a call, or the current call is invalid: shows it as answer or thought.
void ReplyReader::fail() {
  const uint32_t shown = mark_from_ != kNoMark      ? mark_from_
                         : committed_ || held_ == 0 ? 0
                                                    : held_ - 1;
  const PartKind kind = from_thought_ ? PartKind::kThought : PartKind::kText;
  mode_ = from_thought_ ? Mode::kThought : Mode::kText;
  thought_shown_ = thought_shown_ || from_thought_;
  at_start_ = after_call_ = drop_space_ = from_thought_ = committed_ = false;
  too_long_ = false;
  mark_from_ = kNoMark;
  best_row_ = kNoRow;
  name_bytes_ = 0;
  call_row_ = kNoRow;
  putHeld(kind, 0, shown);
  const uint32_t rest = held_ - shown;
  std::memmove(hold_, hold_ + shown, rest);
  held_ = rest;
  pushAgain(0);
}

/// The calls are over; the answer follows.
void ReplyReader::leave() {
  mode_ = Mode::kText;
  after_call_ = true;
  at_start_ = drop_space_ = false;
  mark_from_ = kNoMark;
  best_row_ = kNoRow;
  pushAgain(0);
}

}  // namespace oriel_internal
