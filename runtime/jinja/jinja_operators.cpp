// Truth, order and arithmetic with Python's semantics.
#include <cmath>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "jinja/jinja_builtins.h"
#include "jinja/jinja_run.h"
#include "jinja/jinja_value.h"

namespace oriel_internal::jinja {
namespace {

constexpr uint32_t kMaxCompareDepth = 64;
constexpr uint64_t kUnitsOfNumber = 16;            // to compute it
constexpr size_t kMostRepeated = size_t{1} << 30;  // bytes; more than any memory

double realOf(const Value& value) {
  return value.is(Kind::kFloat) ? value.real() : static_cast<double>(value.integer());
}

bool isPlainNumber(const Value& value) { return value.isInteger() || value.is(Kind::kFloat); }

int orderOf(double a, double b) { return a < b ? -1 : a > b ? 1 : 0; }

int orderOf(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

bool isSequence(const Value& value) { return value.isList() || value.is(Kind::kRange); }

bool isTuple(const Value& value) { return value.hasShape(Shape::kTuple); }

int64_t floorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floorModulo(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floorModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

bool power(int64_t base, int64_t exponent, int64_t* result) {
  *result = 1;
  if (exponent > 63 && base != 0 && base != 1 && base != -1) {
    return false;
  }
  for (exponent = exponent > 63 ? 62 + exponent % 2 : exponent; exponent > 0; --exponent) {
    if (!checkedSignedMul(*result, base, result)) {
      return false;
    }
  }
  return true;
}

// False: exceeds 64 bits.
bool ofIntegers(Op op, int64_t a, int64_t b, int64_t* result) {
  switch (op) {
    case Op::kAdd:
      return checkedSignedAdd(a, b, result);
    case Op::kSubtract:
      return checkedSignedSub(a, b, result);
    case Op::kMultiply:
      return checkedSignedMul(a, b, result);
    case Op::kFloorDivide:
      *result = b == -1 ? 0 : floorDivide(a, b);
      return b != -1 || checkedSignedSub(int64_t{0}, a, result);
    case Op::kModulo:
      *result = b == -1 ? 0 : floorModulo(a, b);
      return true;
    default:
      return power(a, b, result);
  }
}

double ofReals(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return a + b;
    case Op::kSubtract:
      return a - b;
    case Op::kMultiply:
      return a * b;
    case Op::kDivide:
      return a / b;
    case Op::kFloorDivide:
      return std::floor(a / b);
    case Op::kModulo:
      return floorModulo(a, b);
    default:
      return std::pow(a, b);
  }
}

const char* signOf(Op op) {
  static constexpr const char* kSigns[] = {"", "+", "-", "*", "/", "//", "%", "**"};
  return kSigns[static_cast<int>(op)];
}

}  // namespace

bool Interpreter::truth(const Value& value) const {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.real() != 0;
    case Kind::kView:
    case Kind::kText:
      return strOf(value).bytes > 0;
    case Kind::kJsonList:
    case Kind::kJsonDict:
      return value.json()->count() > 0;
    case Kind::kList:
      return value.as<List>()->count > 0 || value.hasShape(Shape::kGenerator);
    case Kind::kDict:
      return value.as<Dict>()->count > 0;
    case Kind::kRange:
      return value.as<Range>()->count > 0;
    default:
      return true;
  }
}

bool Interpreter::length(const Value& value, size_t* n) {
  switch (value.kind()) {
    case Kind::kUndefined:
      *n = 0;
      return true;
    case Kind::kView:
    case Kind::kText:
      *n = countChars(heap_, strOf(value));
      return charge(strOf(value).bytes / 16);
    case Kind::kJsonList:
    case Kind::kJsonDict:
      *n = value.json()->count();
      return true;
    case Kind::kList:
      *n = value.as<List>()->count;
      return !value.hasShape(Shape::kGenerator) ||
             fail("a value of type %s has no length", typeName(value));
    case Kind::kDict:
      *n = value.as<Dict>()->count;
      return true;
    case Kind::kRange:
      *n = value.as<Range>()->count;
      return true;
    case Kind::kLoop:
      *n = value.as<Loop>()->count;
      return true;
    default:
      return fail("a value of type %s has no length", typeName(value));
  }
}

bool Interpreter::findKey(const Value& dict, const Value& key, Value* out, bool* found) {
  *found = false;
  if (dict.is(Kind::kJsonDict)) {
    if (!key.isText()) {
      return true;
    }
    const Str name = strOf(key);
    const JsonValue* const member = dict.json()->find({name.data, name.bytes});
    *found = member != nullptr;
    return (member == nullptr || memberOf(dict, *member, out)) && chargeBytes(name.bytes);
  }
  Dict* const entries = dict.as<Dict>();
  for (uint32_t i = 0; i < entries->count; ++i) {
    if (!equal(entries->entries()[i].key, key, found)) {
      return false;
    }
    if (*found) {
      *out = entries->entries()[i].value;
      return true;
    }
  }
  return true;
}

bool Interpreter::equal(const Value& a, const Value& b, bool* result, uint32_t depth) {
  *result = false;
  if (depth > kMaxCompareDepth) {
    return fail("values that nest too deep are compared");
  }
  if (isPlainNumber(a) && isPlainNumber(b)) {
    *result = a.isInteger() && b.isInteger() ? a.integer() == b.integer() : realOf(a) == realOf(b);
  } else if (a.isText() && b.isText()) {
    const Str left = strOf(a);
    const Str right = strOf(b);
    *result = oriel_internal::jinja::equal(heap_, left, right);
    return charge(1);
  } else if (isSequence(a) && isSequence(b)) {
    return isTuple(a) != isTuple(b) || equalLists(a, b, result, depth);
  } else if (a.isDict() && b.isDict()) {
    return equalDicts(a, b, result, depth);
  } else if (a.kind() == b.kind()) {
    (void)heap_->spend(a.is(Kind::kAsWritten) ? a.text()->bytes : 0);
    *result = a.isObject()             ? a.object() == b.object()
              : a.is(Kind::kAsWritten) ? *a.text() == *b.text()
              : a.is(Kind::kBuiltin)   ? a.integer() == b.integer()
                                       : !a.is(Kind::kMethod);
  }
  return charge(1);
}

bool Interpreter::equalLists(const Value& a, const Value& b, bool* result, uint32_t depth) {
  Ref<List> left;
  Ref<List> right;
  size_t n_left = 0;
  size_t n_right = 0;
  if (!length(a, &n_left) || !length(b, &n_right)) {
    return false;
  }
  if (n_left != n_right) {
    return charge(1);
  }
  if (!toList(a, &left) || !toList(b, &right)) {
    return false;
  }
  *result = true;
  for (uint32_t i = 0; *result && i < left->count; ++i) {
    if (!equal(left->items()[i], right->items()[i], result, depth + 1)) {
      return false;
    }
  }
  return charge(1);
}

bool Interpreter::equalDicts(const Value& a, const Value& b, bool* result, uint32_t depth) {
  Ref<List> left;
  Ref<List> right;
  if (!toPairs(a, &left) || !toPairs(b, &right)) {
    return false;
  }
  *result = left->count == right->count;
  for (uint32_t i = 0; *result && i < left->count; ++i) {
    Value* const pair = left->items()[i].as<List>()->items();
    Value other;
    if (!findKey(b, pair[0], &other, result)) {
      return false;
    }
    if (*result && !equal(pair[1], other, result, depth + 1)) {
      return false;
    }
  }
  return charge(1);
}

bool Interpreter::compare(const Value& a, const Value& b, int* order, uint32_t depth) {
  if (isPlainNumber(a) && isPlainNumber(b)) {
    *order = a.isInteger() && b.isInteger() ? orderOf(a.integer(), b.integer())
                                            : orderOf(realOf(a), realOf(b));
    return charge(1);
  }
  if (a.isText() && b.isText()) {
    const Str left = strOf(a);
    *order = oriel_internal::jinja::compare(heap_, left, strOf(b));
    return charge(1);
  }
  if (a.isUndefined() || b.isUndefined()) {
    return failUndefined(a.isUndefined() ? a : b);
  }
  if (!a.isList() || !b.isList() || isTuple(a) != isTuple(b) || depth > kMaxCompareDepth) {
    return fail("values of types %s and %s have no order", typeName(a), typeName(b));
  }
  Ref<List> left;
  Ref<List> right;
  if (!toList(a, &left) || !toList(b, &right)) {
    return false;
  }
  for (uint32_t i = 0; i < left->count && i < right->count; ++i) {
    bool same = false;
    if (!equal(left->items()[i], right->items()[i], &same, depth + 1)) {
      return false;
    }
    if (!same) {
      return compare(left->items()[i], right->items()[i], order, depth + 1);
    }
  }
  *order = orderOf(int64_t{left->count}, int64_t{right->count});
  return charge(1);
}

bool Interpreter::contains(const Value& in, const Value& what, bool* result) {
  *result = false;
  if (in.isText()) {
    if (!what.isText()) {
      return what.isUndefined()
                 ? failUndefined(what)
                 : fail("a value of type %s is looked for in a string", typeName(what));
    }
    size_t at = 0;
    const bool ok = findIn(strOf(in), strOf(what), 0, &at);
    *result = at != kNotFound;
    return ok;
  }
  if (in.isDict()) {
    Value value;
    return findKey(in, what, &value, result);
  }
  Ref<List> list;
  if (!toList(in, &list)) {
    return false;
  }
  for (uint32_t i = 0; !*result && i < list->count; ++i) {
    if (!equal(list->items()[i], what, result)) {
      return false;
    }
  }
  return true;
}

bool Interpreter::compareOp(Op op, const Value& a, const Value& b, bool* result) {
  int order = 0;
  switch (op) {
    case Op::kEqual:
      return equal(a, b, result);
    case Op::kNotEqual: {
      const bool ok = equal(a, b, result);
      *result = !*result;
      return ok;
    }
    case Op::kIn:
      return contains(b, a, result);
    case Op::kNotIn: {
      const bool ok = contains(b, a, result);
      *result = !*result;
      return ok;
    }
    default:
      break;
  }
  if (!compare(a, b, &order)) {
    return false;
  }
  *result = op == Op::kLess        ? order < 0
            : op == Op::kLessEqual ? order <= 0
            : op == Op::kGreater   ? order > 0
                                   : order >= 0;
  const bool has_nan =
      (a.is(Kind::kFloat) && std::isnan(a.real())) || (b.is(Kind::kFloat) && std::isnan(b.real()));
  *result = *result && !has_nan;
  return true;
}

bool Interpreter::addTexts(const Value& a, const Value& b, Value* out) {
  Value left = a;
  Value right = b;
  const bool safe = a.safe() || b.safe();  // like markupsafe: unsafe text is escaped
  if ((safe && !a.safe() && !filterEscape(this, a, {}, &left)) ||
      (safe && !b.safe() && !filterEscape(this, b, {}, &right))) {
    return false;
  }
  if (!concat(heap_, left, right, out)) {
    return failMemory();
  }
  out->setSafe(safe);
  return charge(0);
}

bool Interpreter::add(const Value& a, const Value& b, Value* out) {
  if (a.isText() && b.isText()) {
    return addTexts(a, b, out);
  }
  if (!a.isList() || !b.isList() || isTuple(a) != isTuple(b)) {
    return a.isUndefined() || b.isUndefined()
               ? failUndefined(a.isUndefined() ? a : b)
               : fail("values of types %s and %s cannot be added", typeName(a), typeName(b));
  }
  Ref<List> left;
  Ref<List> right;
  if (!toList(a, &left) || !toList(b, &right)) {
    return false;
  }
  Ref<List> both = makeList(heap_, size_t{left->count} + right->count);
  for (uint32_t i = 0; both && i < left->count; ++i) {
    pushTo(both.get(), left->items()[i]);
  }
  for (uint32_t i = 0; both && i < right->count; ++i) {
    pushTo(both.get(), right->items()[i]);
  }
  if (both) {
    both->shape = isTuple(a) ? Shape::kTuple : Shape::kList;
  }
  return give(std::move(both), out);
}

bool Interpreter::repeat(const Value& what, const Value& times, Value* out) {
  const uint64_t n = times.integer() > 0 ? static_cast<uint64_t>(times.integer()) : 0;
  if (what.isText()) {
    const Str text = strOf(what);
    TextBuilder all(heap_);
    all.reserve(text.bytes > 0 && n > kMostRepeated / text.bytes
                    ? kMostRepeated
                    : static_cast<size_t>(text.bytes * n));
    for (uint64_t i = 0; text.bytes > 0 && i < n; ++i) {
      all.append(text);
      if (all.failed()) {
        return failMemory();
      }
    }
    return finish(&all, out);
  }
  Ref<List> list;
  if (!toList(what, &list)) {
    return false;
  }
  Ref<List> all = makeList(heap_, 0);
  if (!all) {
    return failMemory();
  }
  for (uint64_t i = 0; list->count > 0 && i < n; ++i) {
    for (uint32_t k = 0; k < list->count; ++k) {
      if (!growList(heap_, &all, list->items()[k])) {
        return failMemory();
      }
    }
  }
  all->shape = isTuple(what) ? Shape::kTuple : Shape::kList;
  return give(std::move(all), out);
}

bool Interpreter::binary(Op op, const Value& a, const Value& b, Value* out) {
  if (!heap_->spend(kUnitsOfNumber)) {
    return charge(0);
  }
  if (!isPlainNumber(a) || !isPlainNumber(b)) {
    if (op == Op::kAdd) {
      return add(a, b, out);
    }
    if (op == Op::kMultiply && (a.isText() || a.isList()) && b.isInteger()) {
      return repeat(a, b, out);
    }
    if (op == Op::kMultiply && (b.isText() || b.isList()) && a.isInteger()) {
      return repeat(b, a, out);
    }
    if (op == Op::kModulo && a.isText()) {
      return formatPercent(a, b, out);
    }
    return a.isUndefined() || b.isUndefined() ? failUndefined(a.isUndefined() ? a : b)
                                              : fail("values of types %s and %s do not go with %s",
                                                     typeName(a), typeName(b), signOf(op));
  }
  const bool divides = op == Op::kDivide || op == Op::kFloorDivide || op == Op::kModulo;
  if (divides && realOf(b) == 0) {
    return fail("a number is divided by zero");
  }
  const bool integers =
      a.isInteger() && b.isInteger() && op != Op::kDivide && (op != Op::kPower || b.integer() >= 0);
  if (!integers) {
    *out = Value::real(ofReals(op, realOf(a), realOf(b)));
    return true;
  }
  int64_t result = 0;
  if (!ofIntegers(op, a.integer(), b.integer(), &result)) {
    return fail("a number gets larger than 64 bits");
  }
  *out = Value::integer(result);
  return true;
}

}  // namespace oriel_internal::jinja
