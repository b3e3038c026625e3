// Iteration, indexing and slicing.
#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "jinja/jinja_parser.h"
#include "jinja/jinja_run.h"
#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint64_t kUnitsOfMember = 24;  // to find it in the input

struct Cut {
  int64_t start;
  int64_t stop;
  int64_t step;
};

int64_t clampTo(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

// Python's slice.indices().
Cut cutOf(const Value parts[3], int64_t n) {
  Cut cut = {0, n, parts[2].isNone() ? 1 : parts[2].integer()};
  const bool back = cut.step < 0;
  const int64_t low = back ? -1 : 0;
  const int64_t high = back ? n - 1 : n;
  const auto place = [&](const Value& part, int64_t otherwise) {
    if (part.isNone()) {
      return otherwise;
    }
    return clampTo(part.integer() < 0 ? part.integer() + n : part.integer(), low, high);
  };
  cut.start = place(parts[0], back ? high : low);
  cut.stop = place(parts[1], back ? low : high);
  return cut;
}

uint64_t countOf(const Cut& cut) {
  const int64_t distance = cut.step > 0 ? cut.stop - cut.start : cut.start - cut.stop;
  const uint64_t step = cut.step > 0 ? static_cast<uint64_t>(cut.step)
                                     : uint64_t{0} - static_cast<uint64_t>(cut.step);
  return distance > 0 ? (static_cast<uint64_t>(distance) - 1) / step + 1 : 0;
}

}  // namespace

bool Interpreter::textToList(const Value& text, Ref<List>* out) {
  const Str all = strOf(text);
  const size_t n = countChars(heap_, all);
  if (!charge(2 * n)) {
    return false;
  }
  *out = makeList(heap_, n);
  for (size_t at = 0; *out && at < all.bytes;) {
    const size_t end = nextChar(all, at);
    Value part = sub(heap_, text, at, end);
    if (part.isUndefined()) {
      return failMemory();
    }
    pushTo(out->get(), std::move(part));
    at = end;
  }
  return *out || failMemory();
}

bool Interpreter::jsonToList(const Value& json, Ref<List>* out) {
  const JsonValue& all = *json.json();
  *out = makeList(heap_, all.count());
  if (!*out || !heap_->spend(kUnitsOfMember * all.count())) {
    return failMemory();
  }
  for (const JsonValue* child = all.first(); child != nullptr; child = child->next()) {
    pushTo(out->get(), all.isArray() ? Value::json(child, json.source())
                                     : Value::view(&child->key(), json.source()));
  }
  return charge(0);
}

bool Interpreter::drain(List* generator, Ref<List>* out) {
  *out = makeList(heap_, generator->count);
  if (!*out) {
    return failMemory();
  }
  for (uint32_t i = 0; i < generator->count; ++i) {
    pushTo(out->get(), std::move(generator->items()[i]));
    generator->items()[i].~Value();
  }
  generator->count = 0;
  return charge(0);
}

bool Interpreter::toList(const Value& value, Ref<List>* out) {
  switch (value.kind()) {
    case Kind::kUndefined:
      *out = makeList(heap_, 0);
      return *out || failMemory();
    case Kind::kView:
    case Kind::kText:
      return textToList(value, out);
    case Kind::kJsonList:
    case Kind::kJsonDict:
      return jsonToList(value, out);
    case Kind::kList:
      *out = Ref<List>::share(value.as<List>());
      return !value.hasShape(Shape::kGenerator) || drain(value.as<List>(), out);
    case Kind::kDict: {
      Dict* const dict = value.as<Dict>();
      *out = makeList(heap_, dict->count);
      for (uint32_t i = 0; *out && i < dict->count; ++i) {
        pushTo(out->get(), dict->entries()[i].key);
      }
      return *out || failMemory();
    }
    case Kind::kRange: {
      const Range* const range = value.as<Range>();
      *out = makeList(heap_, range->count);
      for (uint32_t i = 0; *out && i < range->count; ++i) {
        pushTo(out->get(), Value::integer(range->start + range->step * i));
      }
      return *out || failMemory();
    }
    default:
      return fail("a value of type %s cannot be looped over", typeName(value));
  }
}

bool Interpreter::memberOf(const Value& dict, const JsonValue& member, Value* out) {
  const JsonValue* piece = member.pieces();
  if (piece == nullptr) {
    *out = Value::json(&member, dict.source());
    return true;
  }
  TextBuilder text(heap_);
  for (; piece != nullptr; piece = piece->next()) {
    text.append(strOf(Value::json(piece, dict.source())));
  }
  return (text.finish(out) || failMemory()) && chargeBytes(member.text().bytes);
}

bool Interpreter::toPairs(const Value& dict, Ref<List>* out) {
  const bool is_json = dict.is(Kind::kJsonDict);
  const uint32_t count = is_json ? dict.json()->count() : dict.as<Dict>()->count;
  *out = makeList(heap_, count);
  if (!*out || !heap_->spend(kUnitsOfMember * count)) {
    return failMemory();
  }
  const auto add = [&](const Value& key, Value value) {
    Ref<List> pair = makeList(heap_, 2);
    if (!pair) {
      return failMemory();
    }
    pair->shape = Shape::kTuple;
    pushTo(pair.get(), key);
    pushTo(pair.get(), std::move(value));
    pushTo(out->get(), Value::of(std::move(pair)));
    return true;
  };
  for (uint32_t i = 0; !is_json && i < count; ++i) {
    const DictEntry& entry = dict.as<Dict>()->entries()[i];
    if (!add(entry.key, entry.value)) {
      return false;
    }
  }
  for (const JsonValue* child = is_json ? dict.json()->first() : nullptr; child != nullptr;
       child = child->next()) {
    Value value;
    if (!memberOf(dict, *child, &value) ||
        !add(Value::view(&child->key(), dict.source()), std::move(value))) {
      return false;
    }
  }
  return charge(0);
}

bool Interpreter::textItem(const Value& of, const Value& key, Value* out) {
  const Str text = strOf(of);
  const int64_t wanted = key.integer();
  size_t at = wanted < 0 ? text.bytes : 0;
  int64_t steps = wanted;
  for (; steps > 0 && at < text.bytes; --steps) {
    at = nextChar(text, at);
  }
  for (; steps < 0 && at > 0; ++steps) {
    at = previousChar(text, at);
  }
  *out = Value();
  if (steps == 0 && at < text.bytes) {
    *out = sub(heap_, of, at, nextChar(text, at));
    return !out->isUndefined() ? charge(text.bytes / 16) : failMemory();
  }
  return charge(text.bytes / 16);
}

bool Interpreter::listItem(const Value& of, const Value& key, Value* out) {
  size_t n = 0;
  if (!length(of, &n)) {
    return false;
  }
  const int64_t count = static_cast<int64_t>(n);
  const int64_t at = key.integer() < 0 ? key.integer() + count : key.integer();
  *out = Value();
  if (at < 0 || at >= count) {
    return true;
  }
  if (of.is(Kind::kList)) {
    *out = of.as<List>()->items()[at];
    return true;
  }
  if (of.is(Kind::kRange)) {
    *out = Value::integer(of.as<Range>()->start + of.as<Range>()->step * at);
    return true;
  }
  const JsonValue* element = of.json()->first();
  for (int64_t i = 0; i < at; ++i) {
    element = element->next();
  }
  *out = Value::json(element, of.source());
  return charge(static_cast<uint64_t>(at) / 8);
}

bool Interpreter::slice(const Value& of, const Value parts[3], Value* out) {
  if (of.isUndefined()) {
    return failUndefined(of);
  }
  for (int i = 0; i < 3; ++i) {
    if (!parts[i].isNone() && !parts[i].isInteger()) {
      return parts[i].isUndefined() ? failUndefined(parts[i])
                                    : fail("a slice has a bound of type %s", typeName(parts[i]));
    }
  }
  if (!of.isText() && !of.isList() && !of.is(Kind::kRange)) {
    return fail("a value of type %s cannot be sliced", typeName(of));
  }
  if (parts[2].isInteger() && parts[2].integer() == 0) {
    return fail("a slice has a step of 0");
  }
  if (of.is(Kind::kRange)) {
    return sliceRange(*of.as<Range>(), parts, out);
  }
  return of.isText() ? sliceText(of, parts, out) : sliceList(of, parts, out);
}

bool Interpreter::sliceText(const Value& of, const Value parts[3], Value* out) {
  const Str text = strOf(of);
  const int64_t n = static_cast<int64_t>(countChars(heap_, text));
  const Cut cut = cutOf(parts, n);
  const int64_t count = static_cast<int64_t>(countOf(cut));
  if (!charge(text.bytes / 16)) {
    return false;
  }
  if (cut.step != 1) {
    Ref<List> chars;
    TextBuilder picked(heap_);
    picked.reserve(static_cast<size_t>(count));
    if (!textToList(of, &chars)) {
      return false;
    }
    for (int64_t i = 0; i < count; ++i) {
      picked.append(strOf(chars->items()[cut.start + i * cut.step]));
    }
    return finish(&picked, out);
  }
  size_t begin = 0;
  for (int64_t i = 0; i < cut.start; ++i) {
    begin = nextChar(text, begin);
  }
  size_t end = begin;
  for (int64_t i = 0; i < count; ++i) {
    end = nextChar(text, end);
  }
  *out = sub(heap_, of, begin, end);
  return !out->isUndefined() || failMemory();
}

bool Interpreter::sliceRange(const Range& of, const Value parts[3], Value* out) {
  const Cut cut = cutOf(parts, of.count);
  Ref<Range> range(make<Range>(heap_, Kind::kRange));
  if (!range) {
    return failMemory();
  }
  // With one number, its end and step may be out of range.
  const auto at = [&](int64_t place, int64_t* number) {
    return checkedSignedMul(of.step, place, number) && checkedSignedAdd(of.start, *number, number);
  };
  if (!at(cut.start, &range->start) || !at(cut.stop, &range->stop) ||
      !checkedSignedMul(of.step, cut.step, &range->step)) {
    return fail("a number gets larger than 64 bits");
  }
  range->count = static_cast<uint32_t>(countOf(cut));
  *out = Value::of(std::move(range));
  return true;
}

bool Interpreter::sliceList(const Value& of, const Value parts[3], Value* out) {
  Ref<List> all;
  if (!toList(of, &all)) {
    return false;
  }
  const Cut cut = cutOf(parts, all->count);
  const uint64_t count = countOf(cut);
  Ref<List> picked = makeList(heap_, static_cast<size_t>(count));
  for (uint64_t i = 0; picked && i < count; ++i) {
    pushTo(picked.get(), all->items()[cut.start + static_cast<int64_t>(i) * cut.step]);
  }
  if (picked) {
    picked->shape = of.hasShape(Shape::kTuple) ? Shape::kTuple : Shape::kList;
  }
  return give(std::move(picked), out);
}

// Dotted names; numbers are indices.
bool Interpreter::path(const Value& of, const Value& path, Value* out) {
  *out = of;
  if (!path.isText()) {
    return item(of, path, out);
  }
  const Str all = strOf(path);
  for (size_t begin = 0; begin <= all.bytes;) {
    size_t end = begin;
    while (end < all.bytes && all[end] != '.') {
      ++end;
    }
    int64_t index = 0;
    Value key = sub(heap_, path, begin, end);
    if (all[begin] != '-' && all[begin] != '+' &&
        readInteger(all.data + begin, end - begin, 10, &index)) {
      key = Value::integer(index);
    }
    const Value from = std::move(*out);
    *out = Value();
    if (!charge(1) || !item(from, key, out)) {
      return false;
    }
    begin = end + 1;
  }
  return true;
}

}  // namespace oriel_internal::jinja
