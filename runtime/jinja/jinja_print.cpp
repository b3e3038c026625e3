// Values as text: Python's str() and repr().
#include <cstdio>
#include <cstring>

#include "jinja/jinja_number.h"
#include "jinja/jinja_scope.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint32_t kMaxPrintDepth = 64;

bool isPrintable(const Utf8Char& c) {
  const CharClass of = charClass(c.code_point);
  return c.code_point == ' ' || (of != CharClass::kOther && of != CharClass::kSpace);
}

size_t writeEscape(uint32_t c, char quote, char* out) {
  switch (c) {
    case '\n':
      std::strcpy(out, "\\n");
      return 2;
    case '\r':
      std::strcpy(out, "\\r");
      return 2;
    case '\t':
      std::strcpy(out, "\\t");
      return 2;
    default:
      break;
  }
  if (c == '\\' || c == static_cast<uint8_t>(quote)) {
    out[0] = '\\';
    out[1] = static_cast<char>(c);
    return 2;
  }
  const char* const format = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
  return static_cast<size_t>(std::snprintf(out, 16, format, c));
}

void writeQuoted(const Str& text, TextBuilder* out) {
  const bool single = std::memchr(text.data, '\'', text.bytes) != nullptr;
  const bool twofold = std::memchr(text.data, '"', text.bytes) != nullptr;
  out->reserve(text.bytes + 2);
  const char quote[] = {single && !twofold ? '"' : '\'', '\0'};
  forEachRun(text, 0, text.bytes < 1 ? 0 : 1,
             [&](size_t, size_t, TextOrigin source) { out->append(quote, source); });
  if (text.bytes == 0) {
    out->append("''", text.source);
    return;
  }
  forEachRun(text, 0, text.bytes, [&](size_t begin, size_t end, TextOrigin source) {
    size_t plain = begin;
    for (size_t at = begin; at < end;) {
      if (text[at] >= ' ' && text[at] < 0x7F && text[at] != '\\' && text[at] != quote[0]) {
        ++at;
        continue;
      }
      const Utf8Char c = decodeUtf8(text.data + at, end - at);
      const bool escape =
          c.valid && (c.code_point == '\\' || c.code_point == uint8_t(quote[0]) || !isPrintable(c));
      if (escape) {
        char escaped[16] = "";
        const size_t n = writeEscape(c.code_point, quote[0], escaped);
        out->append(text.data + plain, at - plain, source);
        out->append(escaped, n, source);
        plain = at + c.bytes;
      }
      at += c.bytes;
    }
    out->append(text.data + plain, end - plain, source);
  });
  forEachRun(text, text.bytes - 1, text.bytes,
             [&](size_t, size_t, TextOrigin source) { out->append(quote, source); });
}

}  // namespace

namespace {

const char* shapeName(Shape shape) {
  static constexpr const char* kNames[] = {"list",      "tuple",       "generator",
                                           "dict_keys", "dict_values", "dict_items"};
  return kNames[static_cast<int>(shape)];
}

}  // namespace

const char* Interpreter::typeName(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
    case Kind::kAsWritten:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kView:
    case Kind::kText:
      return "str";
    case Kind::kJsonDict:
    case Kind::kDict:
      return "dict";
    case Kind::kJsonList:
      return "list";
    case Kind::kList:
      return shapeName(value.object()->shape);
    case Kind::kRange:
      return "range";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kMacro:
      return "macro";
    case Kind::kLoop:
      return "loop";
    default:
      return "function";
  }
}

bool Interpreter::write(const Value& value, TextBuilder* out) {
  if (value.isUndefined()) {
    return true;
  }
  if (!value.isText()) {
    return repr(value, out);
  }
  const Str text = strOf(value);
  out->append(text);
  return !out->failed() || failMemory();
}

bool Interpreter::toText(const Value& value, Value* out) {
  if (value.isText()) {
    *out = value;
    return true;
  }
  TextBuilder text(heap_);
  return write(value, &text) && finish(&text, out);
}

bool Interpreter::reprList(const Value& value, TextBuilder* out, uint32_t depth) {
  Ref<List> list;
  if (value.hasShape(Shape::kGenerator)) {
    return fail("a value of type %s is printed", typeName(value));
  }
  if (!toList(value, &list)) {
    return false;
  }
  const bool tuple = value.hasShape(Shape::kTuple);
  const bool view = !tuple && !value.isList();
  const TextOrigin source = value.source();
  out->append(view ? typeName(value) : "", source);
  out->append(view ? "(" : "", source);
  out->append(tuple ? "(" : "[", source);
  for (uint32_t i = 0; i < list->count; ++i) {
    out->append(i > 0 ? ", " : "", source);
    if (!repr(list->items()[i], out, depth + 1)) {
      return false;
    }
  }
  out->append(!tuple ? "]" : list->count == 1 ? ",)" : ")", source);
  out->append(view ? ")" : "", source);
  return true;
}

bool Interpreter::reprDict(const Value& value, TextBuilder* out, uint32_t depth) {
  Ref<List> pairs;
  if (!toPairs(value, &pairs)) {
    return false;
  }
  const TextOrigin source = value.source();
  out->append("{", source);
  for (uint32_t i = 0; i < pairs->count; ++i) {
    Value* const pair = pairs->items()[i].as<List>()->items();
    out->append(i > 0 ? ", " : "", source);
    if (!repr(pair[0], out, depth + 1)) {
      return false;
    }
    out->append(": ", source);
    if (!repr(pair[1], out, depth + 1)) {
      return false;
    }
  }
  out->append("}", source);
  return true;
}

bool Interpreter::reprNumber(const Value& value, TextBuilder* out) {
  char text[kMaxNumberBytes] = "";
  if (value.is(Kind::kAsWritten)) {
    out->append(value.text()->data, value.text()->bytes, value.source());
    return charge(1);
  }
  const size_t n =
      value.is(Kind::kFloat) ? writeFloat(value.real(), text) : writeInteger(value.integer(), text);
  out->append(text, n, value.source());
  return charge(value.is(Kind::kFloat) ? 16 : 2);
}

bool Interpreter::reprRange(const Range& range, TextBuilder* out) {
  char text[96];
  const long long stop = range.stop;
  const int n = range.step == 1 ? std::snprintf(text, sizeof text, "range(%lld, %lld)",
                                                static_cast<long long>(range.start), stop)
                                : std::snprintf(text, sizeof text, "range(%lld, %lld, %lld)",
                                                static_cast<long long>(range.start), stop,
                                                static_cast<long long>(range.step));
  out->append(text, static_cast<size_t>(n), 0);
  return true;
}

bool Interpreter::repr(const Value& value, TextBuilder* out, uint32_t depth) {
  if (depth > kMaxPrintDepth) {
    return fail("a value that nests too deep is printed");
  }
  if (out->failed() || !charge(1)) {
    return out->failed() ? failMemory() : false;
  }
  switch (value.kind()) {
    case Kind::kNone:
      out->append("None", value.source());
      return true;
    case Kind::kBool:
      out->append(value.boolean() ? "True" : "False", value.source());
      return true;
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kAsWritten:
      return reprNumber(value, out);
    case Kind::kView:
    case Kind::kText:
      writeQuoted(strOf(value), out);
      return charge(strOf(value).bytes / 8);
    case Kind::kJsonList:
    case Kind::kList:
      return reprList(value, out, depth);
    case Kind::kJsonDict:
    case Kind::kDict:
      return reprDict(value, out, depth);
    case Kind::kRange:
      return reprRange(*value.as<Range>(), out);
    case Kind::kUndefined:
      out->append("Undefined", 0);
      return true;
    default:
      return fail("a value of type %s is printed", typeName(value));
  }
}

}  // namespace oriel_internal::jinja
