// Filters over strings.
#include "jinja/jinja_filters.h"
#include "jinja/jinja_letters.h"

namespace oriel_internal::jinja {
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

// As Jinja has it: the first line and empty lines stay where they are, unless it is told otherwise.
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
