#include "jinja/jinja_builtins.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {
namespace {

bool filterAbs(Interpreter* run, const Value& in, const Args&, Value* out) {
  if (in.is(Kind::kFloat)) {
    *out = Value::real(std::fabs(in.real()));
    return true;
  }
  if (!in.isInteger()) {
    return in.isUndefined() ? run->failUndefined(in) : run->fail("abs is given no number");
  }
  const Value zero = Value::integer(0);
  return run->binary(in.integer() < 0 ? Op::kSubtract : Op::kAdd, zero, in, out);
}

bool filterAttr(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const name = args.find(0, "name");
  return name != nullptr ? run->item(in, *name, out) : run->fail("attr is given no name");
}

template <Letters how>
bool filterLetters(Interpreter* run, const Value& in, const Args&, Value* out) {
  Value text;
  return run->toText(in, &text) && mapLetters(run, text, how, out);
}

bool filterDefault(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const otherwise = args.find(0, "default_value");
  const Value* const boolean = args.find(1, "boolean");
  const bool also_false = boolean != nullptr && run->truth(*boolean);
  if (!in.isUndefined() && !(also_false && !run->truth(in))) {
    *out = in;
    return true;
  }
  static constexpr JsonText kEmpty = {"", 0};
  *out = otherwise != nullptr ? *otherwise : Value::view(&kEmpty);
  return true;
}

bool filterFirst(Interpreter* run, const Value& in, const Args&, Value* out) {
  Ref<List> all;
  if (!run->toList(in, &all)) {
    return false;
  }
  *out = all->count > 0 ? all->items()[0] : Value();
  return true;
}

bool filterLast(Interpreter* run, const Value& in, const Args&, Value* out) {
  Ref<List> all;
  if (in.hasShape(Shape::kGenerator)) {
    return run->fail("last is given a value of type %s", Interpreter::typeName(in));
  }
  if (!run->toList(in, &all)) {
    return false;
  }
  *out = all->count > 0 ? all->items()[all->count - 1] : Value();
  return true;
}

Str stripped(Interpreter* run, const Value& text) {
  Str all = strOf(text);
  (void)run->chargeBytes(4 * all.bytes);
  all.bytes = spaceBefore(all.data, all.bytes);
  const size_t begin = skipSpace(all.data, all.bytes, 0);
  return {all.data + begin, all.bytes - begin, 0, nullptr, 0};
}

bool filterFloat(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const otherwise = args.find(0, "default");
  double real = 0;
  if (in.isUndefined()) {
    return run->failUndefined(in);
  }
  if (in.is(Kind::kFloat) || in.isInteger()) {
    *out = Value::real(in.is(Kind::kFloat) ? in.real() : static_cast<double>(in.integer()));
    return true;
  }
  const Str text = in.isText() ? stripped(run, in) : Str{};
  if (in.isText() && readFloat(text.data, text.bytes, &real)) {
    *out = Value::real(real);
    return true;
  }
  *out = otherwise != nullptr ? *otherwise : Value::real(0);
  return true;
}

bool toInteger(double real, Value* out) {
  const bool fits = std::fabs(real) < 9.2e18;
  if (fits) {
    *out = Value::integer(static_cast<int64_t>(real));
  }
  return fits;
}

// The digits may have a prefix for the base.
bool readInBase(Str text, int64_t base, int64_t* value) {
  if (text.bytes > 2 && text[0] == '0' && (base == 16 || base == 8 || base == 2)) {
    const char mark = static_cast<char>(text[1] | 0x20);
    const bool prefix = mark == (base == 16 ? 'x' : base == 8 ? 'o' : 'b');
    text.data += prefix ? 2 : 0;
    text.bytes -= prefix ? 2 : 0;
  }
  return base >= 2 && base <= 36 &&
         readInteger(text.data, text.bytes, static_cast<uint32_t>(base), value);
}

bool filterInt(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const otherwise = args.find(0, "default");
  const Value* const base = args.find(1, "base");
  int64_t integer = 0;
  double real = 0;
  if (in.isUndefined()) {
    return run->failUndefined(in);
  }
  if (in.isInteger()) {
    *out = Value::integer(in.integer());
    return true;
  }
  if (in.is(Kind::kFloat) && toInteger(in.real(), out)) {
    return true;
  }
  const Str text = in.isText() ? stripped(run, in) : Str{};
  if (in.isText() &&
      readInBase(text, base != nullptr && base->isInteger() ? base->integer() : 10, &integer)) {
    *out = Value::integer(integer);
    return true;
  }
  if (in.isText() && readFloat(text.data, text.bytes, &real) && toInteger(real, out)) {
    return true;
  }
  *out = otherwise != nullptr ? *otherwise : Value::integer(0);
  return true;
}

bool filterItems(Interpreter* run, const Value& in, const Args&, Value* out) {
  Ref<List> pairs;
  if (!in.isDict() && !in.isUndefined()) {
    return run->fail("items is given a value of type %s", Interpreter::typeName(in));
  }
  return (in.isDict() ? run->toPairs(in, &pairs) : run->toList(in, &pairs)) &&
         giveGenerator(run, std::move(pairs), out);
}

bool filterLength(Interpreter* run, const Value& in, const Args&, Value* out) {
  size_t n = 0;
  const bool ok = run->length(in, &n);
  *out = Value::integer(static_cast<int64_t>(n));
  return ok;
}

bool filterList(Interpreter* run, const Value& in, const Args&, Value* out) {
  Ref<List> all;
  if (!run->toList(in, &all)) {
    return false;
  }
  Ref<List> list = makeList(run->heap(), all->count);
  for (uint32_t i = 0; list && i < all->count; ++i) {
    pushTo(list.get(), all->items()[i]);
  }
  return run->give(std::move(list), out);
}

// Rounds the exact value to the nearest decimal, as Python does.
double roundDecimals(double value, int64_t decimals) {
  if (!std::isfinite(value) || (decimals >= 0 && std::fabs(value) > 1e300)) {
    return value;
  }
  if (decimals < 0) {
    const double scale = std::pow(10, -static_cast<double>(decimals));
    return std::isinf(scale) ? 0 * value : std::nearbyint(value / scale) * scale;
  }
  char text[400] = "";
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(decimals < 60 ? decimals : 60), value);
  return std::strtod(text, nullptr);
}

// Rounds to a power of ten, ties to even, as Python does. False: exceeds 64 bits.
bool roundTens(int64_t value, int64_t decimals, int64_t* out) {
  *out = 0;
  if (decimals < -19) {  // half of 10^20 exceeds 64 bits
    return true;
  }
  uint64_t scale = 1;
  for (int64_t i = decimals; i < 0; ++i) {
    scale *= 10;
  }
  const uint64_t size = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : value;
  const uint64_t rest = size % scale;
  const bool even = size / scale % 2 == 0;
  const bool up = rest > scale - rest || (rest == scale - rest && !even);
  const uint64_t most = static_cast<uint64_t>(INT64_MAX) + (value < 0 ? 1 : 0);
  const uint64_t rounded = size - rest + (up ? scale : 0);  // below 2^64: size is at most 2^63
  if (rounded > most) {
    return false;
  }
  *out = static_cast<int64_t>(value < 0 ? uint64_t{0} - rounded : rounded);
  return true;
}

bool filterRound(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const precision = args.find(0, "precision");
  const Value* const method = args.find(1, "method");
  if (!in.is(Kind::kFloat) && !in.isInteger()) {
    return in.isUndefined() ? run->failUndefined(in) : run->fail("round is given no number");
  }
  const double value = in.is(Kind::kFloat) ? in.real() : static_cast<double>(in.integer());
  const int64_t decimals =
      precision != nullptr && precision->isInteger() ? precision->integer() : 0;
  const Str how = method != nullptr && method->isText() ? strOf(*method) : Str{};
  const bool common = how.bytes == 0 || how.is("common");
  if (common && in.isInteger()) {
    int64_t rounded = 0;
    if (!roundTens(in.integer(), decimals, &rounded)) {
      return run->fail("a number gets larger than 64 bits");
    }
    *out = Value::integer(rounded);
    return true;
  }
  const double scale = std::pow(10, static_cast<double>(decimals));
  *out = Value::real(common           ? roundDecimals(value, decimals)
                     : how.is("ceil") ? std::ceil(value * scale) / scale
                                      : std::floor(value * scale) / scale);
  return true;
}

bool filterSafe(Interpreter* run, const Value& in, const Args&, Value* out) {
  const bool ok = run->toText(in, out);
  out->setSafe(true);
  return ok;
}

bool filterString(Interpreter* run, const Value& in, const Args&, Value* out) {
  return run->toText(in, out);
}

using Filter = bool (*)(Interpreter* run, const Value& in, const Args& args, Value* out);
constexpr struct {
  const char* name;
  Filter filter;
} kFilters[] = {
    {"abs", filterAbs},
    {"attr", filterAttr},
    {"capitalize", filterLetters<Letters::kCapitalize>},
    {"count", filterLength},
    {"d", filterDefault},
    {"default", filterDefault},
    {"dictsort", filterDictsort},
    {"e", filterEscape},
    {"escape", filterEscape},
    {"first", filterFirst},
    {"float", filterFloat},
    {"format", filterFormat},
    {"indent", filterIndent},
    {"int", filterInt},
    {"items", filterItems},
    {"join", filterJoin},
    {"last", filterLast},
    {"length", filterLength},
    {"list", filterList},
    {"lower", filterLetters<Letters::kLower>},
    {"map", filterMap},
    {"max", filterMax},
    {"min", filterMin},
    {"reject", filterReject},
    {"rejectattr", filterRejectattr},
    {"replace", filterReplace},
    {"reverse", filterReverse},
    {"round", filterRound},
    {"safe", filterSafe},
    {"select", filterSelect},
    {"selectattr", filterSelectattr},
    {"sort", filterSort},
    {"string", filterString},
    {"sum", filterSum},
    {"title", filterLetters<Letters::kWords>},
    {"tojson", filterTojson},
    {"trim", filterTrim},
    {"truncate", filterTruncate},
    {"unique", filterUnique},
    {"upper", filterLetters<Letters::kUpper>},
    {"wordcount", filterWordcount},
};
constexpr uint16_t kFilterCount = sizeof kFilters / sizeof kFilters[0];

}  // namespace

uint16_t filterNamed(const JsonText& name) {
  for (uint16_t i = 0; i < kFilterCount; ++i) {
    if (name.is(kFilters[i].name)) {
      return i;
    }
  }
  return kUnknown;
}

const char* filterName(uint16_t filter) {
  return filter < kFilterCount ? kFilters[filter].name : nullptr;
}

bool applyFilter(Interpreter* run, uint16_t filter, const Value& in, const Args& args, Value* out) {
  return kFilters[filter].filter(run, in, args, out) && run->charge(1);
}

// Filters over strings.

namespace {

const char* entityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return nullptr;
  }
}

}  // namespace

bool filterTrim(Interpreter* run, const Value& in, const Args& args, Value* out) {
  Value text;
  return run->toText(in, &text) && strip(run, text, args.find(0, "chars"), true, true, out);
}

bool filterReplace(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const old = args.find(0, "old");
  const Value* const by = args.find(1, "new");
  const Value* const most = args.find(2, "count");
  Value text;
  Value from;
  Value to;
  if (old == nullptr || by == nullptr) {
    return run->fail("replace is given less than two strings");
  }
  return run->toText(in, &text) && run->toText(*old, &from) && run->toText(*by, &to) &&
         replace(run, text, from, to, most != nullptr && most->isInteger() ? most->integer() : -1,
                 out);
}

// As in Jinja: the first line and empty lines are not indented by default.
bool filterIndent(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const width = args.find(0, "width");
  const Value* const first = args.find(1, "first");
  const Value* const blank = args.find(2, "blank");
  Value indent;
  static constexpr JsonText kBlank = {" ", 1};
  const Value blanks = width != nullptr ? *width : Value::integer(4);
  if (!in.isText()) {
    return run->fail("indent is given a value of type %s", Interpreter::typeName(in));
  }
  if (!(blanks.isText() ? run->toText(blanks, &indent)
                        : run->binary(Op::kMultiply, Value::view(&kBlank), blanks, &indent))) {
    return false;
  }
  const Str all = strOf(in);
  TextBuilder built(run->heap());
  built.reserve(all.bytes);
  size_t next = 0;
  for (size_t begin = 0;; begin = next) {
    const size_t end = lineEnd(all, begin, &next);
    const bool wanted = begin == 0 ? first != nullptr && run->truth(*first)
                                   : end > begin || (blank != nullptr && run->truth(*blank));
    built.append(wanted ? strOf(indent) : Str{});
    built.append(all, begin, end);
    if (!run->chargeBytes(strOf(indent).bytes) || next == end) {
      break;
    }
    built.append("\n", 0);
  }
  return run->charge(all.bytes / 3) && run->finish(&built, out);
}

// Keeps a text of at most `length` + `leeway` characters. Truncates others, at a blank unless words may be split.
bool filterTruncate(Interpreter* run, const Value& in, const Args& args, Value* out) {
  const Value* const given_length = args.find(0, "length");
  const Value* const kills_words = args.find(1, "killwords");
  const Value* const given_end = args.find(2, "end");
  const Value* const given_leeway = args.find(3, "leeway");
  static constexpr JsonText kDots = {"...", 3};
  Value text;
  Value end;
  if (!run->toText(in, &text) ||
      !run->toText(given_end != nullptr ? *given_end : Value::view(&kDots), &end)) {
    return false;
  }
  const auto number = [](const Value* given, int64_t otherwise) {
    return given == nullptr || given->isNone() ? otherwise
           : given->isInteger()                ? given->integer()
                                               : -1;
  };
  const Str all = strOf(text);
  const int64_t length = number(given_length, 255);
  const int64_t leeway = number(given_leeway, 5);
  const int64_t end_chars = static_cast<int64_t>(countChars(run->heap(), strOf(end)));
  if (length < end_chars || leeway < 0) {
    return run->fail("truncate is given a length below its end, or no number");
  }
  const int64_t chars = static_cast<int64_t>(countChars(run->heap(), all));
  if (chars - length <= leeway) {
    *out = text;
    return true;
  }
  size_t cut = 0;
  size_t blank = all.bytes;  // the last blank before the cut
  for (int64_t i = 0; i < length - end_chars; ++i) {
    blank = all[cut] == ' ' ? cut : blank;
    cut = nextChar(all, cut);
  }
  const bool whole_words = kills_words == nullptr || !run->truth(*kills_words);
  TextBuilder built(run->heap());
  built.append(all, 0, whole_words ? std::min(cut, blank) : cut);
  built.append(strOf(end));
  return run->charge(cut / 8) && run->finish(&built, out);
}

// Like the operator %.
bool filterFormat(Interpreter* run, const Value& in, const Args& args, Value* out) {
  Value text;
  Ref<List> values = makeList(run->heap(), args.count);
  if (!values) {
    return run->failMemory();
  }
  values->shape = Shape::kTuple;
  if (args.places() != args.count) {
    return run->fail("format is given values with names, which are not supported");
  }
  for (uint32_t i = 0; i < args.count; ++i) {
    pushTo(values.get(), args.values[i]);
  }
  Value all;
  return run->toText(in, &text) && run->give(std::move(values), &all) &&
         run->binary(Op::kModulo, text, all, out);
}

bool filterEscape(Interpreter* run, const Value& in, const Args&, Value* out) {
  Value text;
  if (!run->toText(in, &text)) {
    return false;
  }
  const Str all = strOf(text);
  TextBuilder escaped(run->heap());
  escaped.reserve(all.bytes);
  forEachRun(all, 0, all.bytes, [&](size_t begin, size_t end, TextOrigin source) {
    for (size_t at = begin; at < end; ++at) {
      const char* const entity = entityOf(all[at]);
      if (!in.safe() && entity != nullptr) {
        escaped.append(entity, source);
      } else {
        escaped.append(all.data + at, 1, source);
      }
    }
  });
  const bool ok = run->charge(all.bytes / 8) && run->finish(&escaped, out);
  out->setSafe(true);
  return ok;
}

bool filterWordcount(Interpreter* run, const Value& in, const Args&, Value* out) {
  Value text;
  if (!run->toText(in, &text)) {
    return false;
  }
  const Str all = strOf(text);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < all.bytes; at = nextChar(all, at)) {
    const uint8_t c = static_cast<uint8_t>(all[at]);
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || c == '_' ||
                        (c >= 0x80 && skipSpace(all.data, all.bytes, at) == at);
    words += letter && !inside ? 1 : 0;
    inside = letter;
  }
  *out = Value::integer(words);
  return run->charge(all.bytes / 4);
}

}  // namespace oriel_internal::jinja
