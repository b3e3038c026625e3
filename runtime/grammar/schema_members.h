// Array items as an expression.
#pragma once

#include "grammar/expression.h"
#include "json/json.h"

namespace oriel_internal {

/// Length limits of an array.
struct ArrayLengths {
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
};

/// Up to this many values may come in any order; more values keep their order.
constexpr uint32_t kMostUniqueInAnyOrder = 8;
/// Longest lengths that can be counted together with `contains` or unique values.
constexpr uint32_t kMostCountedItems = 200;

/// items[n_prefix] stands for every item after the prefix. 0 < most, least <= most.
ExprId arrayExpression(const List<ExprId>& items, uint32_t n_prefix, const ArrayLengths& lengths,
                       Grammar* grammar);
/// Items from these values, each at most once. least <= most. kNever: impossible.
ExprId uniqueItemsExpression(const JsonText* values, uint32_t count, const ArrayLengths& lengths,
                             Grammar* grammar);
/// Items with at least one `hit`. least, and a finite most, must be at most kMostCountedItems.
ExprId containingExpression(ExprId item, ExprId hit, const ArrayLengths& lengths, Grammar* grammar);

// Object members in order, as an expression.

struct ObjectProperty {
  JsonText name;
  bool required;
  ExprId member;  ///< key, colon and value; kNever: forbidden
};

struct ObjectShape {
  const List<ObjectProperty>* properties;
  ExprId other;  ///< a member with another name; kNever: forbidden
  uint32_t least;
  uint32_t most;     ///< UINT32_MAX: unlimited
  uint32_t top = 0;  ///< members are counted up to here

  uint32_t more(uint32_t count) const { return std::min(count + 1, top); }
};

/// kNever if nothing fits.
ExprId objectExpression(const ObjectShape& shape, Grammar* grammar);

}  // namespace oriel_internal
