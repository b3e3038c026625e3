// The items of an array, as an expression.
#pragma once

#include "grammar/expression.h"
#include "grammar/list.h"
#include "json/json.h"

namespace oriel_internal {

/// Lengths of an array.
struct ArrayLengths {
  uint32_t least = 0;
  uint32_t most = UINT32_MAX;
};

/// Up to this many values may come in any order; of more those that come keep their order.
constexpr uint32_t kMostUniqueInAnyOrder = 8;
/// Lengths that can be counted beside `contains`, and beside values that come once.
constexpr uint32_t kMostCountedItems = 200;

/// items[n_prefix] stands for all behind the prefix. 0 < most, least <= most.
ExprId arrayExpression(const List<ExprId>& items, uint32_t n_prefix, const ArrayLengths& lengths,
                       Grammar* grammar);
/// Items that are among these values, each at most once. least <= most. kNever: nothing fits.
ExprId uniqueItemsExpression(const JsonText* values, uint32_t count, const ArrayLengths& lengths,
                             Grammar* grammar);
/// Items of which at least one is a `hit`. least and finite most up to kMostCountedItems.
ExprId containingExpression(ExprId item, ExprId hit, const ArrayLengths& lengths, Grammar* grammar);

}  // namespace oriel_internal
