// Numbers within bounds and multiples of others, as expressions.
#pragma once

#include "grammar/decimal.h"
#include "grammar/dfa.h"

namespace oriel_internal {

struct NumberFacts {
  static constexpr uint32_t kMostSteps = 4;

  bool integer = false;
  bool fraction = false;  ///< no integer
  bool has_min = false;
  bool has_max = false;
  bool above_min = false;  ///< the bound itself is left out
  bool below_max = false;
  Decimal min;
  Decimal max;
  Step steps[kMostSteps];  ///< it is a multiple of each
  uint32_t n_steps = 0;

  void addMin(const Decimal& bound, bool exclusive);
  void addMax(const Decimal& bound, bool exclusive);
  /// False: there are too many.
  bool addStep(const Step& step);
  bool isBounded() const { return has_min || has_max || n_steps != 0; }
  bool allows(const Decimal& value) const;
  bool operator==(const NumberFacts& other) const;
};

/// Integers are those that a double holds exactly; others have at most 15 digits, and an exponent of at most two
/// where nothing bounds them. `*expression` is kNever where none fits. Otherwise null, or
/// why there is none, said of the keyword.
const char* numberExpression(const NumberFacts& facts, Grammar* grammar, ExprId* expression);

}  // namespace oriel_internal
