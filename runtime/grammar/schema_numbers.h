// Numbers with bounds and multiples, as expressions.
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
  bool above_min = false;  ///< the bound is exclusive
  bool below_max = false;
  Decimal min;
  Decimal max;
  Step steps[kMostSteps];  ///< must be a multiple of each
  uint32_t n_steps = 0;

  void addMin(const Decimal& bound, bool exclusive);
  void addMax(const Decimal& bound, bool exclusive);
  /// False: too many.
  bool addStep(const Step& step);
  bool isBounded() const { return has_min || has_max || n_steps != 0; }
  bool allows(const Decimal& value) const;
  bool operator==(const NumberFacts& other) const;
};

/// Integers are limited to those a double holds exactly. Other numbers have at most 15 digits, and without bounds an
/// exponent of at most two digits. `*expression` is kNever if no number fits. Returns null, or the reason why the
/// keyword is unsupported.
const char* numberExpression(const NumberFacts& facts, Grammar* grammar, ExprId* expression);

}  // namespace oriel_internal
