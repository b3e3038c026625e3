#include "jinja/jinja_tests.h"

#include "jinja/jinja_filters.h"
#include "jinja/jinja_letters.h"

namespace oriel_internal::jinja {
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
