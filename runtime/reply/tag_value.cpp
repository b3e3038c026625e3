#include "reply/tag_value.h"

#include <cstring>

#include "reply/characters.h"

namespace oriel_internal {

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
