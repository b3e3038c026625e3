#include "jinja/jinja_builtins.h"

#include <algorithm>
#include <utility>

#include "text/normalise.h"
#include "text/unicode.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint32_t kSharpS = 0xDF;

bool isCased(uint32_t c) {
  const CharClass of = charClass(c);
  return of == CharClass::kUpper || of == CharClass::kLower || of == CharClass::kTitle;
}

// Word separators of Jinja's title filter.
bool beginsWord(uint32_t c) {
  return isSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

uint32_t mapOne(uint32_t c, Letters how, bool first) {
  switch (how) {
    case Letters::kUpper:
      return toUpper(c);
    case Letters::kLower:
      return toLower(c);
    case Letters::kSwap:
      return toLower(c) != c ? toLower(c) : toUpper(c);
    default:
      return first ? toUpper(c) : toLower(c);
  }
}

bool isAmong(Heap* heap, const Str& chars, const char* c, size_t bytes) {
  for (size_t at = 0; at < chars.bytes; at = nextChar(chars, at)) {
    if (equal(heap, {chars.data + at, nextChar(chars, at) - at, 0, nullptr, 0},
              {c, bytes, 0, nullptr, 0})) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool mapLetters(Interpreter* run, const Value& text, Letters how, Value* out) {
  const Str in = strOf(text);
  TextBuilder mapped(run->heap());
  mapped.reserve(in.bytes);
  bool first = true;
  forEachRun(in, 0, in.bytes, [&](size_t begin, size_t end, TextOrigin source) {
    for (size_t at = begin; at < end;) {
      const Utf8Char c = decodeUtf8(in.data + at, end - at);
      const uint32_t other = c.valid ? mapOne(c.code_point, how, first) : c.code_point;
      char bytes[kMaxUtf8Bytes] = "";
      if (c.valid && c.code_point == kSharpS && (how == Letters::kUpper || how == Letters::kSwap)) {
        mapped.append("SS", source);
      } else if (other != c.code_point) {
        mapped.append(bytes, encodeUtf8(other, bytes), source);
      } else {
        mapped.append(in.data + at, c.bytes, source);
      }
      first = (how == Letters::kTitle && !isCased(c.code_point)) ||
              (how == Letters::kWords && beginsWord(c.code_point));
      at += c.bytes;
    }
  });
  const bool ok = run->charge(in.bytes) && run->finish(&mapped, out);
  out->setSafe(text.safe());
  return ok;
}

bool strip(Interpreter* run, const Value& text, const Value* chars, bool left, bool right,
           Value* out) {
  const Str in = strOf(text);
  const bool blanks = chars == nullptr || chars->isNone();
  if (!blanks && !chars->isText()) {
    return run->fail("strip is given a value of type %s", Interpreter::typeName(*chars));
  }
  const Str set = blanks ? Str{} : strOf(*chars);
  size_t begin = 0;
  size_t end = in.bytes;
  if (left) {
    begin = blanks ? skipSpace(in.data, end, 0) : begin;
    while (!blanks && begin < end &&
           isAmong(run->heap(), set, in.data + begin, nextChar(in, begin) - begin)) {
      begin = nextChar(in, begin);
      if (!run->charge(1 + set.bytes / 6)) {
        return false;
      }
    }
  }
  if (right) {
    end = begin + (blanks ? spaceBefore(in.data + begin, end - begin) : end - begin);
    while (!blanks && end > begin) {
      const size_t last = previousChar(in, end);
      if (!isAmong(run->heap(), set, in.data + last, end - last)) {
        break;
      }
      if (!run->charge(1 + set.bytes / 6)) {
        return false;
      }
      end = last;
    }
  }
  *out = sub(run->heap(), text, begin, end);
  return out->isUndefined() ? run->failMemory() : run->charge(1 + (in.bytes - (end - begin)) / 16);
}

size_t lineEnd(const Str& text, size_t begin, size_t* next) {
  for (size_t at = begin; at < text.bytes;) {
    const Utf8Char c = decodeUtf8(text.data + at, text.bytes - at);
    const uint32_t code = c.valid ? c.code_point : 'x';
    if ((code >= '\n' && code <= '\r') || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
        code == 0x2028 || code == 0x2029) {
      *next = at + c.bytes;
      *next += code == '\r' && *next < text.bytes && text[*next] == '\n' ? 1 : 0;
      return at;
    }
    at += c.bytes;
  }
  *next = text.bytes;
  return text.bytes;
}

bool replace(Interpreter* run, const Value& text, const Value& old, const Value& by, int64_t most,
             Value* out) {
  const Str in = strOf(text);
  const Str from = strOf(old);
  TextBuilder replaced(run->heap());
  replaced.reserve(in.bytes);
  size_t at = 0;
  for (; most != 0; most -= most > 0 ? 1 : 0) {
    size_t found = at;
    if (!run->findIn(in, from, at, &found)) {
      return false;
    }
    if (found == kNotFound || replaced.failed()) {
      break;
    }
    replaced.append(in, at, found);
    replaced.append(strOf(by));
    if (!run->chargeBytes(strOf(by).bytes)) {
      return false;
    }
    at = found + from.bytes;
    if (from.bytes == 0) {  // between all characters, and at both ends
      if (at == in.bytes) {
        at = in.bytes;
        break;
      }
      const size_t next = nextChar(in, at);
      replaced.append(in, at, next);
      at = next;
    }
  }
  replaced.append(in, at, in.bytes);
  return run->chargeBytes(in.bytes) && run->finish(&replaced, out);
}

namespace {

constexpr uint8_t kOfText = 1;
constexpr uint8_t kOfList = 2;
constexpr uint8_t kOfDict = 4;
constexpr uint8_t kOfLoop = 8;

// The context of a method call.
struct Call {
  Interpreter* run;
  const Value& of;
  const Args& args;
  Value* out;
};
using Method = bool (*)(const Call& call);

const Value* textArgument(const Call& call, uint32_t place, const char* name) {
  const Value* const value = call.args.find(place, name);
  return value != nullptr && value->isText() ? value : nullptr;
}

bool failArgument(const Call& call) {
  return call.run->fail("a method is given arguments that it does not take");
}

int64_t integerOr(const Call& call, uint32_t place, const char* name, int64_t otherwise) {
  const Value* const value = call.args.find(place, name);
  return value != nullptr && value->isInteger() ? value->integer() : otherwise;
}

bool pushPart(const Call& call, Ref<List>* parts, size_t begin, size_t end) {
  if (!call.run->charge(2)) {
    return false;
  }
  Value part = sub(call.run->heap(), call.of, begin, end);
  return (!part.isUndefined() && growList(call.run->heap(), parts, std::move(part))) ||
         call.run->failMemory();
}

// Splits at white space, without empty parts. After `most` splits the rest stays whole.
bool splitBlanks(const Call& call, int64_t most, Ref<List>* parts) {
  const Str text = strOf(call.of);
  for (size_t at = skipSpace(text.data, text.bytes, 0); at < text.bytes; --most) {
    size_t end = at;
    while (end < text.bytes && (most == 0 || skipSpace(text.data, text.bytes, end) == end)) {
      end = nextChar(text, end);
    }
    if (!pushPart(call, parts, at, end)) {
      return false;
    }
    at = skipSpace(text.data, text.bytes, end);
  }
  return call.run->charge(text.bytes / 4);
}

bool splitAt(const Call& call, const Str& between, int64_t most, Ref<List>* parts) {
  const Str text = strOf(call.of);
  size_t begin = 0;
  for (;; --most) {
    size_t found = kNotFound;
    if (most != 0 && !call.run->findIn(text, between, begin, &found)) {
      return false;
    }
    if (found == kNotFound) {
      return pushPart(call, parts, begin, text.bytes);
    }
    if (!call.run->charge(1) || !pushPart(call, parts, begin, found)) {
      return false;
    }
    begin = found + between.bytes;
  }
}

bool splitBackAt(const Call& call, const Str& between, int64_t most, Ref<List>* parts) {
  const Str text = strOf(call.of);
  size_t end = text.bytes;
  for (; most != 0; --most) {
    size_t found = kNotFound;
    if (!call.run->findLastIn(text, between, end, &found)) {
      return false;
    }
    if (found == kNotFound) {
      break;
    }
    if (!pushPart(call, parts, found + between.bytes, end)) {
      return false;
    }
    end = found;
  }
  if (!pushPart(call, parts, 0, end)) {
    return false;
  }
  Value* const items = (*parts)->items();
  for (uint32_t i = 0, k = (*parts)->count - 1; i < k; ++i, --k) {
    std::swap(items[i], items[k]);
  }
  return true;
}

template <bool from_right>
bool split(const Call& call) {
  const Value* const between = call.args.find(0, "sep");
  // All negative numbers mean "no limit", like -1.
  const int64_t most = std::max<int64_t>(integerOr(call, 1, "maxsplit", -1), -1);
  Ref<List> parts = makeList(call.run->heap(), 2);
  if (!parts) {
    return call.run->failMemory();
  }
  if (between == nullptr || between->isNone()) {
    if (from_right && most >= 0) {
      return call.run->fail("rsplit is given a count, but no string to split at");
    }
    return splitBlanks(call, most, &parts) && call.run->give(std::move(parts), call.out);
  }
  if (!between->isText() || strOf(*between).bytes == 0) {
    return failArgument(call);
  }
  return (from_right ? splitBackAt(call, strOf(*between), most, &parts)
                     : splitAt(call, strOf(*between), most, &parts)) &&
         call.run->give(std::move(parts), call.out);
}

bool splitlines(const Call& call) {
  const Str text = strOf(call.of);
  const Value* const keep_ends = call.args.find(0, "keepends");
  const bool keep = keep_ends != nullptr && call.run->truth(*keep_ends);
  Ref<List> lines = makeList(call.run->heap(), 2);
  if (!lines) {
    return call.run->failMemory();
  }
  size_t next = 0;
  for (size_t begin = 0; begin < text.bytes; begin = next) {
    const size_t end = lineEnd(text, begin, &next);
    if (!pushPart(call, &lines, begin, keep ? next : end)) {
      return false;
    }
  }
  return call.run->charge(text.bytes / 3) && call.run->give(std::move(lines), call.out);
}

template <bool left, bool right>
bool stripEnds(const Call& call) {
  return strip(call.run, call.of, call.args.find(0, nullptr), left, right, call.out);
}

bool beginsWith(Heap* heap, const Str& text, const Str& part) {
  return text.bytes >= part.bytes && equal(heap, {text.data, part.bytes, 0, nullptr, 0}, part);
}

bool endsWith(Heap* heap, const Str& text, const Str& part) {
  return text.bytes >= part.bytes &&
         equal(heap, {text.data + text.bytes - part.bytes, part.bytes, 0, nullptr, 0}, part);
}

// Accepts a string or a tuple of strings.
template <bool (*stands)(Heap*, const Str&, const Str&)>
bool hasEnd(const Call& call) {
  const Value* const part = call.args.find(0, nullptr);
  if (part == nullptr || call.args.count > 1) {
    return failArgument(call);
  }
  bool holds = false;
  if (part->hasShape(Shape::kTuple)) {
    List* const all = part->as<List>();
    for (uint32_t i = 0; i < all->count; ++i) {
      if (!all->items()[i].isText()) {
        return failArgument(call);
      }
      if (!call.run->charge(1)) {
        return false;
      }
      holds = holds || stands(call.run->heap(), strOf(call.of), strOf(all->items()[i]));
    }
  } else if (part->isText()) {
    holds = stands(call.run->heap(), strOf(call.of), strOf(*part));
  } else {
    return failArgument(call);
  }
  *call.out = Value::boolean(holds);
  return call.run->charge(1);
}

template <bool prefix>
bool removeEnd(const Call& call) {
  const Value* const part = textArgument(call, 0, nullptr);
  if (part == nullptr) {
    return failArgument(call);
  }
  const Str text = strOf(call.of);
  const Str end = strOf(*part);
  const bool there =
      prefix ? beginsWith(call.run->heap(), text, end) : endsWith(call.run->heap(), text, end);
  const size_t bytes = there ? end.bytes : 0;
  *call.out =
      sub(call.run->heap(), call.of, prefix ? bytes : 0, prefix ? text.bytes : text.bytes - bytes);
  return !call.out->isUndefined() || call.run->failMemory();
}

bool replaceIn(const Call& call) {
  const Value* const old = textArgument(call, 0, nullptr);
  const Value* const by = textArgument(call, 1, nullptr);
  if (old == nullptr || by == nullptr) {
    return failArgument(call);
  }
  return replace(call.run, call.of, *old, *by, integerOr(call, 2, "count", -1), call.out);
}

template <Letters how>
bool changeLetters(const Call& call) {
  return mapLetters(call.run, call.of, how, call.out);
}

template <bool last, bool must>
bool findPlace(const Call& call) {
  const Value* const part = textArgument(call, 0, nullptr);
  if (part == nullptr || call.args.count > 1) {
    return failArgument(call);
  }
  const Str text = strOf(call.of);
  size_t at = 0;
  if (!(last ? call.run->findLastIn(text, strOf(*part), text.bytes, &at)
             : call.run->findIn(text, strOf(*part), 0, &at))) {
    return false;
  }
  if (at == kNotFound && must) {
    return call.run->fail("a string that is looked for is not there");
  }
  const int64_t chars =
      at == kNotFound
          ? -1
          : static_cast<int64_t>(countChars(call.run->heap(), {text.data, at, 0, nullptr, 0}));
  *call.out = Value::integer(chars);
  return call.run->charge(text.bytes / 16);
}

bool countParts(const Call& call) {
  const Value* const part = textArgument(call, 0, nullptr);
  if (part == nullptr || strOf(*part).bytes == 0) {
    return failArgument(call);
  }
  const Str text = strOf(call.of);
  int64_t n = 0;
  for (size_t at = 0;; ++n) {
    if (!call.run->findIn(text, strOf(*part), at, &at)) {
      return false;
    }
    if (at == kNotFound) {
      *call.out = Value::integer(n);
      return true;
    }
    at += strOf(*part).bytes;
  }
}

bool joinParts(const Call& call) {
  const Value* const parts = call.args.find(0, nullptr);
  Ref<List> all;
  if (parts == nullptr || parts->isUndefined() || !call.run->toList(*parts, &all)) {
    return failArgument(call);
  }
  TextBuilder text(call.run->heap());
  for (uint32_t i = 0; i < all->count; ++i) {
    if (!all->items()[i].isText()) {
      return failArgument(call);
    }
    if ((i > 0 && !call.run->write(call.of, &text)) || !call.run->write(all->items()[i], &text)) {
      return false;
    }
  }
  return call.run->finish(&text, call.out);
}

bool isDecimal(uint32_t c) { return charClass(c) == CharClass::kDigit; }
bool isAlphabetic(uint32_t c) { return isLetter(charClass(c)); }
bool isAlphanumeric(uint32_t c) { return isAlphabetic(c) || isNumber(charClass(c)); }

// At least one character.
template <bool (*is)(uint32_t)>
bool areAll(const Call& call) {
  const Str text = strOf(call.of);
  bool all = text.bytes > 0;
  for (size_t at = 0; all && at < text.bytes; at = nextChar(text, at)) {
    const Utf8Char c = decodeUtf8(text.data + at, text.bytes - at);
    all = c.valid && is(c.code_point);
  }
  *call.out = Value::boolean(all);
  return call.run->charge(text.bytes / 8);
}

template <Letters own, Letters other>
bool isOfCase(const Call& call) {
  Value same;
  Value changed;
  if (!mapLetters(call.run, call.of, own, &same) ||
      !mapLetters(call.run, call.of, other, &changed)) {
    return false;
  }
  *call.out = Value::boolean(equal(call.run->heap(), strOf(call.of), strOf(same)) &&
                             !equal(call.run->heap(), strOf(call.of), strOf(changed)));
  return true;
}

template <bool last>
bool partition(const Call& call) {
  const Value* const part = textArgument(call, 0, nullptr);
  if (part == nullptr || strOf(*part).bytes == 0) {
    return failArgument(call);
  }
  const Str text = strOf(call.of);
  const size_t bytes = strOf(*part).bytes;
  size_t at = 0;
  if (!(last ? call.run->findLastIn(text, strOf(*part), text.bytes, &at)
             : call.run->findIn(text, strOf(*part), 0, &at))) {
    return false;
  }
  const bool there = at != kNotFound;
  const size_t first = there ? at : last ? 0 : text.bytes;
  const size_t second = there ? at + bytes : first;
  Ref<List> parts = makeList(call.run->heap(), 3);
  if (!parts) {
    return call.run->failMemory();
  }
  parts->shape = Shape::kTuple;
  return pushPart(call, &parts, 0, first) && pushPart(call, &parts, first, second) &&
         pushPart(call, &parts, second, text.bytes) && call.run->give(std::move(parts), call.out);
}

// left: strip the start; right: strip the end.
template <bool left, bool right>
bool pad(const Call& call) {
  const Value* const fill = textArgument(call, 1, nullptr);
  const Str text = strOf(call.of);
  const Str with = fill != nullptr ? strOf(*fill) : Str{" ", 1, 0, nullptr, 0};
  if (with.bytes == 0 || nextChar(with, 0) != with.bytes) {
    return call.run->fail("a string is padded with a text that is not one character");
  }
  const int64_t width = std::max<int64_t>(integerOr(call, 0, "width", 0), 0);
  const int64_t missing = width - static_cast<int64_t>(countChars(call.run->heap(), text));
  const int64_t before = !left ? 0 : !right ? missing : missing / 2 + (missing & width & 1);
  TextBuilder padded(call.run->heap());
  for (int64_t i = 0; i < missing && !padded.failed(); ++i) {
    if (i == before) {
      padded.append(text);
    }
    padded.append(with);
  }
  if (missing <= 0 || before == missing) {
    padded.append(text);
  }
  return call.run->charge(text.bytes / 16) && call.run->finish(&padded, call.out);
}

bool zeroFill(const Call& call) {
  const Str text = strOf(call.of);
  const int64_t width = std::max<int64_t>(integerOr(call, 0, nullptr, 0), 0);
  const int64_t missing = width - static_cast<int64_t>(countChars(call.run->heap(), text));
  const size_t sign = text.bytes > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  TextBuilder padded(call.run->heap());
  padded.append(text, 0, sign);
  for (int64_t i = 0; i < missing && !padded.failed(); ++i) {
    padded.append("0", 0);
  }
  padded.append(text, sign, text.bytes);
  return call.run->finish(&padded, call.out);
}

bool formatText(const Call& call) { return formatBraces(call.run, call.of, call.args, call.out); }

bool dictGet(const Call& call) {
  const Value* const key = call.args.find(0, nullptr);
  const Value* const otherwise = call.args.find(1, "default");
  bool found = false;
  if (key == nullptr || key->isList() || key->isDict()) {
    return failArgument(call);
  }
  if (!call.run->findKey(call.of, *key, call.out, &found)) {
    return false;
  }
  if (!found) {
    *call.out = otherwise != nullptr ? *otherwise : Value::none();
  }
  return true;
}

bool dictItems(const Call& call) {
  Ref<List> pairs;
  if (!call.run->toPairs(call.of, &pairs)) {
    return false;
  }
  pairs->shape = Shape::kItems;
  return call.run->give(std::move(pairs), call.out);
}

bool dictKeys(const Call& call) {
  Ref<List> keys;
  if (!call.run->toList(call.of, &keys)) {
    return false;
  }
  keys->shape = Shape::kKeys;
  return call.run->give(std::move(keys), call.out);
}

bool dictValues(const Call& call) {
  Ref<List> pairs;
  if (!call.run->toPairs(call.of, &pairs)) {
    return false;
  }
  for (uint32_t i = 0; i < pairs->count; ++i) {
    Value value = pairs->items()[i].as<List>()->items()[1];
    pairs->items()[i] = std::move(value);
  }
  pairs->shape = Shape::kValues;
  return call.run->give(std::move(pairs), call.out);
}

bool copy(const Call& call) {
  *call.out = call.of;
  return true;
}

template <bool counts>
bool placeInList(const Call& call) {
  const Value* const what = call.args.find(0, nullptr);
  Ref<List> all;
  if (what == nullptr || !call.run->toList(call.of, &all)) {
    return failArgument(call);
  }
  int64_t n = 0;
  for (uint32_t i = 0; i < all->count; ++i) {
    bool same = false;
    if (!call.run->equal(all->items()[i], *what, &same)) {
      return false;
    }
    if (same && !counts) {
      *call.out = Value::integer(i);
      return true;
    }
    n += same ? 1 : 0;
  }
  *call.out = Value::integer(n);
  return counts || call.run->fail("a value that is looked for is not in the list");
}

// index and count, for strings and lists.
template <Method of_text, Method of_list>
bool either(const Call& call) {
  return call.of.isText() ? of_text(call) : of_list(call);
}

bool refuse(const Call& call) {
  return call.run->fail(
      "a method is called that would change a list or a dict, which templates "
      "may not");
}

bool loopCycle(const Call& call) {
  if (call.args.count == 0) {
    return failArgument(call);
  }
  *call.out = call.args.values[call.of.as<Loop>()->index % call.args.count];
  return true;
}

bool loopChanged(const Call& call) {
  Loop* const loop = call.of.as<Loop>();
  Ref<List> asked = makeList(call.run->heap(), call.args.count);
  if (!asked) {
    return call.run->failMemory();
  }
  for (uint32_t i = 0; i < call.args.count; ++i) {
    pushTo(asked.get(), call.args.values[i]);
  }
  bool same = false;
  const Value now = Value::of(std::move(asked));
  if (!call.run->equal(loop->changed, now, &same)) {
    return false;
  }
  loop->changed = now;
  *call.out = Value::boolean(!same);
  return true;
}

// All Python methods, since attributes take precedence over a dict's keys; null: not implemented.
constexpr struct {
  const char* name;
  uint8_t of;
  Method method;
} kMethods[] = {
    {"append", kOfList, refuse},
    {"capitalize", kOfText, changeLetters<Letters::kCapitalize>},
    {"casefold", kOfText, changeLetters<Letters::kLower>},
    {"center", kOfText, pad<true, true>},
    {"changed", kOfLoop, loopChanged},
    {"clear", kOfList | kOfDict, refuse},
    {"copy", kOfList | kOfDict, copy},
    {"count", kOfText | kOfList, either<countParts, placeInList<true>>},
    {"cycle", kOfLoop, loopCycle},
    {"encode", kOfText, nullptr},
    {"endswith", kOfText, hasEnd<endsWith>},
    {"expandtabs", kOfText, nullptr},
    {"extend", kOfList, refuse},
    {"find", kOfText, findPlace<false, false>},
    {"format", kOfText, formatText},
    {"format_map", kOfText, nullptr},
    {"fromkeys", kOfDict, nullptr},
    {"get", kOfDict, dictGet},
    {"index", kOfText | kOfList, either<findPlace<false, true>, placeInList<false>>},
    {"insert", kOfList, refuse},
    {"isalnum", kOfText, areAll<isAlphanumeric>},
    {"isalpha", kOfText, areAll<isAlphabetic>},
    {"isascii", kOfText, nullptr},
    {"isdecimal", kOfText, areAll<isDecimal>},
    {"isdigit", kOfText, areAll<isDecimal>},
    {"isidentifier", kOfText, nullptr},
    {"islower", kOfText, isOfCase<Letters::kLower, Letters::kUpper>},
    {"isnumeric", kOfText, areAll<isDecimal>},
    {"isprintable", kOfText, nullptr},
    {"isspace", kOfText, areAll<isSpace>},
    {"istitle", kOfText, nullptr},
    {"isupper", kOfText, isOfCase<Letters::kUpper, Letters::kLower>},
    {"items", kOfDict, dictItems},
    {"join", kOfText, joinParts},
    {"keys", kOfDict, dictKeys},
    {"ljust", kOfText, pad<false, true>},
    {"lower", kOfText, changeLetters<Letters::kLower>},
    {"lstrip", kOfText, stripEnds<true, false>},
    {"maketrans", kOfText, nullptr},
    {"partition", kOfText, partition<false>},
    {"pop", kOfList | kOfDict, refuse},
    {"popitem", kOfDict, refuse},
    {"remove", kOfList, refuse},
    {"removeprefix", kOfText, removeEnd<true>},
    {"removesuffix", kOfText, removeEnd<false>},
    {"replace", kOfText, replaceIn},
    {"reverse", kOfList, refuse},
    {"rfind", kOfText, findPlace<true, false>},
    {"rindex", kOfText, findPlace<true, true>},
    {"rjust", kOfText, pad<true, false>},
    {"rpartition", kOfText, partition<true>},
    {"rsplit", kOfText, split<true>},
    {"rstrip", kOfText, stripEnds<false, true>},
    {"setdefault", kOfDict, refuse},
    {"sort", kOfList, refuse},
    {"split", kOfText, split<false>},
    {"splitlines", kOfText, splitlines},
    {"startswith", kOfText, hasEnd<beginsWith>},
    {"strip", kOfText, stripEnds<true, true>},
    {"swapcase", kOfText, changeLetters<Letters::kSwap>},
    {"title", kOfText, changeLetters<Letters::kTitle>},
    {"translate", kOfText, nullptr},
    {"update", kOfDict, refuse},
    {"upper", kOfText, changeLetters<Letters::kUpper>},
    {"values", kOfDict, dictValues},
    {"zfill", kOfText, zeroFill},
};
constexpr uint8_t kMethodCount = sizeof kMethods / sizeof kMethods[0];

uint8_t ownerOf(const Value& value) {
  return value.isText()          ? kOfText
         : value.isList()        ? kOfList
         : value.isDict()        ? kOfDict
         : value.is(Kind::kLoop) ? kOfLoop
                                 : 0;
}

}  // namespace

uint8_t attributeNamed(const JsonText& name) {
  for (uint8_t i = 0; i < kMethodCount; ++i) {
    if (name.is(kMethods[i].name)) {
      return static_cast<uint8_t>(i + 1);
    }
  }
  return 0;
}

const char* methodName(uint8_t attribute) {
  return attribute != 0 && attribute <= kMethodCount ? kMethods[attribute - 1].name : nullptr;
}

bool hasMethod(const Value& of, uint8_t attribute) {
  return attribute != 0 && (kMethods[attribute - 1].of & ownerOf(of)) != 0;
}

bool callMethod(Interpreter* run, const Value& of, const Symbol& method, const Args& args,
                Value* out) {
  const Method called = kMethods[method.attribute - 1].method;
  if (called == nullptr) {
    return run->fail("the method '%s' is not supported", kMethods[method.attribute - 1].name);
  }
  const bool ok = called({run, of, args, out}) && run->charge(1);
  out->setSafe(out->isText() && of.safe());
  return ok;
}

}  // namespace oriel_internal::jinja
