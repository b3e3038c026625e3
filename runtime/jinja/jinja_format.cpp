#include "jinja/jinja_format.h"

#include <cstring>

#include "jinja/jinja_number.h"

namespace oriel_internal::jinja {
namespace {

const Value* byName(const Args& args, const Str& name) {
  const Node* node = args.nodes;
  for (uint32_t i = 0; i < args.count; ++i, node = node->next) {
    if (node->name != nullptr && node->name->text == JsonText{name.data, name.bytes}) {
      return &args.values[i];
    }
  }
  return nullptr;
}

// The value for the field between { and }.
const Value* fieldOf(const Args& args, const Str& field, uint32_t* next) {
  int64_t place = 0;
  if (field.bytes == 0) {
    place = (*next)++;
  } else if (!readInteger(field.data, field.bytes, 10, &place)) {
    return byName(args, field);
  }
  return place >= 0 && place < args.places() ? &args.values[place] : nullptr;
}

}  // namespace

bool formatBraces(Interpreter* run, const Value& format, const Args& args, Value* out) {
  const Str text = strOf(format);
  TextBuilder built(run->heap());
  uint32_t next = 0;
  for (size_t at = 0; at < text.bytes;) {
    size_t end = at;
    while (end < text.bytes && text[end] != '{' && text[end] != '}') {
      ++end;
    }
    built.append(text, at, end);
    if (end == text.bytes) {
      break;
    }
    if (end + 1 < text.bytes && text[end + 1] == text[end]) {
      built.append(text, end, end + 1);
      at = end + 2;
      continue;
    }
    size_t close = end + 1;
    while (close < text.bytes && text[close] != '}') {
      ++close;
    }
    const Str field = {text.data + end + 1, close - end - 1, 0, nullptr, 0};
    const Value* const value =
        text[end] == '{' && close < text.bytes ? fieldOf(args, field, &next) : nullptr;
    if (value == nullptr) {
      return run->fail("format is given a field that is not supported, or no value for it");
    }
    if (!run->charge(1) || !run->write(*value, &built)) {
      return false;
    }
    at = close + 1;
  }
  return run->chargeBytes(text.bytes) && run->finish(&built, out);
}

// %s, %d, %r and %%.
bool Interpreter::formatPercent(const Value& format, const Value& values, Value* out) {
  const Str text = strOf(format);
  Value single = values;
  const bool tuple = values.hasShape(Shape::kTuple);
  const Value* const given = tuple ? values.as<List>()->items() : &single;
  const uint32_t count = tuple ? values.as<List>()->count : 1;
  uint32_t next = 0;
  TextBuilder built(heap_);
  for (size_t at = 0; at < text.bytes; ++at) {
    size_t end = at;
    while (end < text.bytes && text[end] != '%') {
      ++end;
    }
    built.append(text, at, end);
    at = end + 1;
    if (end == text.bytes) {
      break;
    }
    const char kind = at < text.bytes ? text[at] : '\0';
    if (kind == '%') {
      built.append(text, at, at + 1);
      continue;
    }
    if (next == count ||
        (kind != 's' && kind != 'r' && (kind != 'd' || !given[next].isInteger()))) {
      return fail("%% is given a format that is not supported, or no value for it");
    }
    const Value value = kind == 'd' ? Value::integer(given[next].integer()) : given[next];
    ++next;
    if (!charge(1) || !(kind == 'r' ? repr(value, &built) : write(value, &built))) {
      return false;
    }
  }
  if (next < count && (tuple || !(values.isDict() || values.isList() || values.isUndefined()))) {
    return fail("%% is given more values than its format has places");
  }
  return chargeBytes(text.bytes) && finish(&built, out);
}

}  // namespace oriel_internal::jinja
