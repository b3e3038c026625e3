#include "jinja/jinja_letters.h"

#include "text/letter_case.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint32_t kSharpS = 0xDF;

bool isCased(uint32_t c) {
  const CharClass of = charClass(c);
  return of == CharClass::kUpper || of == CharClass::kLower || of == CharClass::kTitle;
}

// What Jinja's title takes for the space between words.
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

}  // namespace oriel_internal::jinja
