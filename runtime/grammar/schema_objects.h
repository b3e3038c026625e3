// The members of an object in their order, as an expression.
#pragma once

#include "grammar/expression.h"
#include "grammar/list.h"
#include "json/json.h"

namespace oriel_internal {

struct ObjectProperty {
  JsonText name;
  bool required;
  ExprId member;  ///< key, colon and value; kNever: it must not be there
};

struct ObjectShape {
  const List<ObjectProperty>* properties;
  ExprId other;  ///< a member that has none of their names; kNever: there is none
  uint32_t least;
  uint32_t most;     ///< UINT32_MAX: any number
  uint32_t top = 0;  ///< members are counted up to here

  uint32_t more(uint32_t count) const { return std::min(count + 1, top); }
};

/// kNever where nothing fits.
ExprId objectExpression(const ObjectShape& shape, Grammar* grammar);

}  // namespace oriel_internal
