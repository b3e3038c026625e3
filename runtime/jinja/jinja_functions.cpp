#include "jinja/jinja_builtins.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint64_t kMostInRange = 100000;  // as in Jinja's sandbox

bool callRange(Interpreter* run, const Args& args, Value* out) {
  int64_t parts[3] = {0, 0, 1};
  if (args.count == 0 || args.count > 3) {
    return run->fail("range is given %u arguments", args.count);
  }
  for (uint32_t i = 0; i < args.count; ++i) {
    if (!args.values[i].isInteger()) {
      return args.values[i].isUndefined() ? run->failUndefined(args.values[i])
                                          : run->fail("range is given a value of type %s",
                                                      Interpreter::typeName(args.values[i]));
    }
    parts[args.count == 1 ? 1 : i] = args.values[i].integer();
  }
  const int64_t step = parts[2];
  int64_t distance = 0;
  if (step == 0 || step == INT64_MIN ||
      !checkedSignedSub(step > 0 ? parts[1] : parts[0], step > 0 ? parts[0] : parts[1],
                        &distance)) {
    return run->fail("range is given bounds that it does not take");
  }
  const uint64_t width = static_cast<uint64_t>(step > 0 ? step : -step);
  const uint64_t count = distance > 0 ? (static_cast<uint64_t>(distance) - 1) / width + 1 : 0;
  if (count > kMostInRange) {
    return run->fail("range has more than %llu numbers",
                     static_cast<unsigned long long>(kMostInRange));
  }
  Ref<Range> range(make<Range>(run->heap(), Kind::kRange));
  if (!range) {
    return run->failMemory();
  }
  range->start = parts[0];
  range->stop = parts[1];
  range->step = step;
  range->count = static_cast<uint32_t>(count);
  *out = Value::of(std::move(range));
  return true;
}

bool callNamespace(Interpreter* run, const Args& args, Value* out) {
  Ref<Scope> space(make<Scope>(run->heap(), Kind::kNamespace));
  if (!space) {
    return run->failMemory();
  }
  const Node* node = args.nodes;
  for (uint32_t i = 0; i < args.count; ++i, node = node->next) {
    if (node->name == nullptr) {
      if (!run->copyInto(args.values[i], space.get())) {
        return false;
      }
    } else if (!setIn(run->heap(), space.get(), node->name, args.values[i])) {
      return run->failMemory();
    }
  }
  *out = Value::of(std::move(space));
  return true;
}

bool callDict(Interpreter* run, const Args& args, Value* out) {
  Ref<List> pairs;
  if (args.places() > 0 && (!args.values[0].isDict() || !run->toPairs(args.values[0], &pairs))) {
    return run->fail("dict is given a value of type %s", Interpreter::typeName(args.values[0]));
  }
  const uint32_t old = pairs ? pairs->count : 0;
  const Ref<Dict> dict = makeDict(run->heap(), size_t{old} + args.count);
  if (!dict) {
    return run->failMemory();
  }
  for (uint32_t i = 0; i < old; ++i) {
    Value* const pair = pairs->items()[i].as<List>()->items();
    DictEntry entry = {pair[0], pair[1]};
    if (!run->putIn(dict.get(), &entry)) {
      return false;
    }
  }
  const Node* node = args.nodes;
  for (uint32_t i = 0; i < args.count; ++i, node = node->next) {
    DictEntry entry;
    if (node->name != nullptr) {
      entry = {Value::view(&node->name->text), args.values[i]};
    }
    if (node->name != nullptr && !run->putIn(dict.get(), &entry)) {
      return false;
    }
  }
  *out = Value::of(Ref<Dict>(dict));
  return true;
}

bool callRaise(Interpreter* run, const Args& args, Value*) {
  const Value* const message = args.find(0, "message");
  return message != nullptr ? run->raise(*message)
                            : run->fail("raise_exception is given no message");
}

bool callTime(Interpreter* run, const Args& args, Value* out) {
  const Value* const format = args.find(0, "format");
  if (format == nullptr || !format->isText()) {
    return run->fail("strftime_now is given no string");
  }
  TextBuilder text(run->heap());
  return writeTime(run, strOf(*format), &text) && run->finish(&text, out);
}

using Function = bool (*)(Interpreter* run, const Args& args, Value* out);
constexpr struct {
  const char* name;
  Function function;
} kFunctions[] = {{"range", callRange},
                  {"namespace", callNamespace},
                  {"dict", callDict},
                  {"raise_exception", callRaise},
                  {"strftime_now", callTime}};
constexpr uint32_t kFunctionCount = sizeof kFunctions / sizeof kFunctions[0];

constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};
constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};

struct Date {
  uint32_t year;
  uint32_t month;        // from 1
  uint32_t day;          // from 1
  uint32_t day_of_year;  // from 1
  uint32_t weekday;      // from Sunday
};

bool isLeap(uint32_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

Date dateOf(const JinjaClock& clock) {
  static constexpr uint32_t kDaysBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  Date date = {};
  date.year = clock.date / 10000;
  date.month = clock.date / 100 % 100;
  date.month = date.month < 1 ? 1 : date.month > 12 ? 12 : date.month;
  date.day = clock.date % 100;
  date.day_of_year =
      kDaysBefore[date.month - 1] + date.day + (date.month > 2 && isLeap(date.year) ? 1 : 0);
  const uint32_t before = date.year > 0 ? date.year - 1 : 0;
  // 1 January of year 1 was a Monday.
  date.weekday = (before * 365 + before / 4 - before / 100 + before / 400 + date.day_of_year) % 7;
  return date;
}

int writeWord(const char* format, const char* word, char* out, size_t bytes) {
  return std::snprintf(out, bytes, format, word);
}

// The value of one strftime() code; below 0: unknown. `plain`: without leading zeros.
int writeCode(char code, bool plain, const Date& date, char* out, size_t bytes) {
  const char* const two = plain ? "%u" : "%02u";
  const uint32_t monday = (date.weekday + 6) % 7;
  switch (code) {
    case 'Y':
      return std::snprintf(out, bytes, "%u", date.year);
    case 'y':
      return std::snprintf(out, bytes, two, date.year % 100);
    case 'm':
      return std::snprintf(out, bytes, two, date.month);
    case 'd':
      return std::snprintf(out, bytes, two, date.day);
    case 'e':
      return std::snprintf(out, bytes, plain ? "%u" : "%2u", date.day);
    case 'j':
      return std::snprintf(out, bytes, plain ? "%u" : "%03u", date.day_of_year);
    case 'H':
    case 'I':
      return std::snprintf(out, bytes, two, 12u);
    case 'M':
    case 'S':
      return std::snprintf(out, bytes, two, 0u);
    case 'f':
      return std::snprintf(out, bytes, "%06u", 0u);
    case 'U':
      return std::snprintf(out, bytes, two, (date.day_of_year + 6 - date.weekday) / 7);
    case 'W':
      return std::snprintf(out, bytes, two, (date.day_of_year + 6 - monday) / 7);
    case 'u':
      return std::snprintf(out, bytes, "%u", monday + 1);
    case 'w':
      return std::snprintf(out, bytes, "%u", date.weekday);
    case 'B':
      return writeWord("%s", kMonths[date.month - 1], out, bytes);
    case 'b':
    case 'h':
      return writeWord("%.3s", kMonths[date.month - 1], out, bytes);
    case 'A':
      return writeWord("%s", kDays[date.weekday], out, bytes);
    case 'a':
      return writeWord("%.3s", kDays[date.weekday], out, bytes);
    case 'p':
      return writeWord("%s", "PM", out, bytes);
    case 'Z':
    case 'z':
      return 0;
    case '%':
      return writeWord("%s", "%", out, bytes);
    case 'n':
      return writeWord("%s", "\n", out, bytes);
    case 't':
      return writeWord("%s", "\t", out, bytes);
    default:
      return -1;
  }
}

// Expands codes that are abbreviations.
const char* longFor(char code) {
  switch (code) {
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    case 'R':
      return "%H:%M";
    case 'r':
      return "%I:%M:%S %p";
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    default:
      return nullptr;
  }
}

}  // namespace

const char* functionName(uint32_t id) {
  return id < kFunctionCount ? kFunctions[id].name : nullptr;
}

bool callFunction(Interpreter* run, uint32_t id, const Args& args, Value* out) {
  return kFunctions[id].function(run, args, out) && run->charge(1);
}

bool writeTime(Interpreter* run, const Str& format, TextBuilder* out) {
  const Date date = dateOf(run->clock());
  for (size_t at = 0; at < format.bytes; ++at) {
    if (format[at] != '%' || at + 1 == format.bytes) {
      out->append(format, at, at + 1);
      continue;
    }
    ++at;
    const bool plain = format[at] == '-' && at + 1 < format.bytes;
    at += plain ? 1 : 0;
    if (const char* const parts = longFor(format[at]); parts != nullptr) {
      if (!writeTime(run, {parts, std::strlen(parts), 0, nullptr, 0}, out)) {
        return false;
      }
      continue;
    }
    if (!run->charge(4)) {
      return false;
    }
    char text[32] = "";
    const int n = writeCode(format[at], plain, date, text, sizeof text);
    if (n < 0) {
      return run->fail("strftime_now does not know %%%c", format[at]);
    }
    out->append(text, static_cast<size_t>(n), 0);
  }
  return run->chargeBytes(format.bytes);
}

namespace {

enum class Test : uint8_t {
  kBoolean,
  kCallable,
  kDefined,
  kDivisibleby,
  kEqual,
  kEscaped,
  kEven,
  kFalse,
  kFilter,
  kFloat,
  kGreater,
  kGreaterEqual,
  kIn,
  kInteger,
  kIterable,
  kLess,
  kLessEqual,
  kLower,
  kMapping,
  kNone,
  kNotEqual,
  kNumber,
  kOdd,
  kSameas,
  kSequence,
  kString,
  kTest,
  kTrue,
  kUndefined,
  kUpper,
};

constexpr struct {
  const char* name;
  Test test;
} kTests[] = {
    {"boolean", Test::kBoolean}, {"callable", Test::kCallable},
    {"defined", Test::kDefined}, {"divisibleby", Test::kDivisibleby},
    {"eq", Test::kEqual},        {"equalto", Test::kEqual},
    {"==", Test::kEqual},        {"escaped", Test::kEscaped},
    {"even", Test::kEven},       {"false", Test::kFalse},
    {"filter", Test::kFilter},   {"float", Test::kFloat},
    {"ge", Test::kGreaterEqual}, {">=", Test::kGreaterEqual},
    {"gt", Test::kGreater},      {"greaterthan", Test::kGreater},
    {">", Test::kGreater},       {"in", Test::kIn},
    {"integer", Test::kInteger}, {"iterable", Test::kIterable},
    {"le", Test::kLessEqual},    {"<=", Test::kLessEqual},
    {"lower", Test::kLower},     {"lt", Test::kLess},
    {"lessthan", Test::kLess},   {"<", Test::kLess},
    {"mapping", Test::kMapping}, {"ne", Test::kNotEqual},
    {"!=", Test::kNotEqual},     {"none", Test::kNone},
    {"number", Test::kNumber},   {"odd", Test::kOdd},
    {"sameas", Test::kSameas},   {"sequence", Test::kSequence},
    {"string", Test::kString},   {"test", Test::kTest},
    {"true", Test::kTrue},       {"undefined", Test::kUndefined},
    {"upper", Test::kUpper},
};
constexpr uint16_t kTestCount = sizeof kTests / sizeof kTests[0];

bool passesSequence(const Value& value) {
  return value.isText() || value.isList() || value.isDict() || value.is(Kind::kRange) ||
         value.isUndefined();
}

// Like str.isupper() and str.islower(): has letters, all of that case.
bool hasCase(Interpreter* run, const Value& of, Letters other, bool* holds) {
  Value text;
  Value same;
  Value changed;
  const Letters own = other == Letters::kUpper ? Letters::kLower : Letters::kUpper;
  if (!run->toText(of, &text) || !mapLetters(run, text, own, &same) ||
      !mapLetters(run, text, other, &changed)) {
    return false;
  }
  *holds = equal(run->heap(), strOf(text), strOf(same)) &&
           !equal(run->heap(), strOf(text), strOf(changed));
  return true;
}

bool isMultiple(Interpreter* run, const Value& of, const Value& by, int64_t rest, bool* holds) {
  Value left;
  return run->binary(Op::kModulo, of, by, &left) && run->equal(left, Value::integer(rest), holds);
}

bool isSame(Interpreter* run, const Value& a, const Value& b) {
  if (a.kind() != b.kind()) {
    return false;
  }
  return a.isNone() || (a.isInteger() && a.integer() == b.integer()) ||
         (a.isObject() && a.object() == b.object()) ||
         ((a.is(Kind::kJsonList) || a.is(Kind::kJsonDict)) && a.json() == b.json()) ||
         (a.isText() && equal(run->heap(), strOf(a), strOf(b)));
}

// Tests that compare with an argument.
bool compareWith(Interpreter* run, Test test, const Value& of, const Args& args, bool* holds) {
  const Value* const other = args.find(0, nullptr);
  int order = 0;
  if (other == nullptr) {
    return run->fail("a test is given nothing to compare with");
  }
  switch (test) {
    case Test::kEqual:
      return run->equal(of, *other, holds);
    case Test::kNotEqual: {
      const bool ok = run->equal(of, *other, holds);
      *holds = !*holds;
      return ok;
    }
    case Test::kIn:
      return run->contains(*other, of, holds);
    case Test::kSameas:
      *holds = isSame(run, of, *other);
      return true;
    case Test::kDivisibleby:
      return isMultiple(run, of, *other, 0, holds);
    default:
      break;
  }
  const bool ok = run->compare(of, *other, &order);
  *holds = test == Test::kLess        ? order < 0
           : test == Test::kLessEqual ? order <= 0
           : test == Test::kGreater   ? order > 0
                                      : order >= 0;
  return ok;
}

}  // namespace

uint16_t testNamed(const JsonText& name) {
  for (uint16_t i = 0; i < kTestCount; ++i) {
    if (name.is(kTests[i].name)) {
      return i;
    }
  }
  return kUnknown;
}

const char* testName(uint16_t test) { return test < kTestCount ? kTests[test].name : nullptr; }

bool applyTest(Interpreter* run, uint16_t test, const Value& of, const Args& args, bool* holds) {
  if (!run->charge(1)) {
    return false;
  }
  const Test which = kTests[test].test;
  switch (which) {
    case Test::kBoolean:
      *holds = of.is(Kind::kBool);
      return true;
    case Test::kCallable:
      *holds = of.is(Kind::kMacro) || of.is(Kind::kBuiltin) || of.is(Kind::kMethod);
      return true;
    case Test::kDefined:
      *holds = !of.isUndefined();
      return true;
    case Test::kUndefined:
      *holds = of.isUndefined();
      return true;
    case Test::kEscaped:
      *holds = of.safe();
      return true;
    case Test::kEven:
    case Test::kOdd:
      return isMultiple(run, of, Value::integer(2), which == Test::kOdd ? 1 : 0, holds);
    case Test::kTrue:
    case Test::kFalse:
      *holds = of.is(Kind::kBool) && of.boolean() == (which == Test::kTrue);
      return true;
    case Test::kFilter:
      *holds = of.isText() && filterNamed({strOf(of).data, strOf(of).bytes}) != kUnknown;
      return true;
    case Test::kTest:
      *holds = of.isText() && testNamed({strOf(of).data, strOf(of).bytes}) != kUnknown;
      return true;
    case Test::kFloat:
      *holds = of.is(Kind::kFloat);
      return true;
    case Test::kInteger:
      *holds = of.is(Kind::kInt) || of.is(Kind::kAsWritten);
      return true;
    case Test::kNumber:
      *holds = of.isNumber();
      return true;
    case Test::kSequence:
      *holds = passesSequence(of);
      return true;
    case Test::kIterable:
      *holds = passesSequence(of) || of.is(Kind::kLoop) || of.is(Kind::kList);
      return true;
    case Test::kMapping:
      *holds = of.isDict();
      return true;
    case Test::kNone:
      *holds = of.isNone();
      return true;
    case Test::kString:
      *holds = of.isText();
      return true;
    case Test::kLower:
      return hasCase(run, of, Letters::kUpper, holds);
    case Test::kUpper:
      return hasCase(run, of, Letters::kLower, holds);
    default:
      return compareWith(run, which, of, args, holds);
  }
}

}  // namespace oriel_internal::jinja
