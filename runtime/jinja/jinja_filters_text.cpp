// Filters over strings.
#include <algorithm>
#include <utility>

#include "jinja/jinja_filters.h"
#include "jinja/jinja_methods.h"

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
