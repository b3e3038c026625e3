// Object members in order, as an expression.
#pragma once

#include "grammar/expression.h"
#include "grammar/list.h"
#include "json/json.h"

namespace oriel_internal {

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
