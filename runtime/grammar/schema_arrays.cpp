#include "grammar/schema_arrays.h"

#include "grammar/schema_strings.h"
#include "grammar/schema_texts.h"

namespace oriel_internal {
namespace {

class ArrayWriter : private LiveExpressions {
 public:
  ArrayWriter(const ArrayLengths& lengths, Grammar* grammar)
      : LiveExpressions(grammar), least_(lengths.least), most_(lengths.most) {}

  ExprId all(const List<ExprId>& items, uint32_t n_prefix) {
    const uint32_t n_single = std::max(std::min(n_prefix, most_), 1u);
    ExprId rest = g_->empty();
    if (most_ > n_single) {
      const uint32_t more = most_ == UINT32_MAX ? most_ : most_ - n_single;
      const ExprId next = sequence(comma(), items[n_prefix]);
      rest = countedExpression(next, least_ > n_single ? least_ - n_single : 0, more, g_);
    }
    for (uint32_t i = n_single; i-- != 0;) {
      rest = g_->sequence(items[i], rest);
      if (i != 0) {
        rest = g_->sequence(comma(), rest);
        rest = asRule(i >= least_ ? optional(rest) : rest);
      }
    }
    rest = least_ == 0 ? optional(rest) : rest;
    return g_->sequence(g_->text("["), g_->sequence(rest, g_->text("]")));
  }

  // The continuation depends on the set of used values, so all sets are enumerated.
  ExprId unique(const JsonText* values, uint32_t count) {
    const uint32_t n_sets = 1u << count;
    ExprId* const behind = g_->scratch()->take<ExprId>(n_sets);
    if (behind == nullptr || !g_->work()->spend(uint64_t{n_sets} * count * kStepsOfValue)) {
      return g_->never();
    }
    ExprId first = g_->never();
    for (uint32_t used = n_sets; used-- != 0;) {
      uint32_t n_used = 0;
      for (uint32_t i = 0; i < count; ++i) {
        n_used += used >> i & 1;
      }
      ExprId more = g_->never();
      for (uint32_t i = 0; i < count && n_used < most_; ++i) {
        if ((used >> i & 1) == 0) {
          const ExprId value = g_->bytes(values[i].data, values[i].bytes);
          more = choice(more, sequence(value, behind[used | 1u << i]));
        }
      }
      behind[used] = after(n_used, more);
      first = more;
    }
    return whole(first);
  }

  // Values from i on, after n written ones; built from the last value.
  ExprId ordered(const JsonText* values, uint32_t count) {
    const uint32_t top = std::min(most_ != UINT32_MAX ? most_ : least_, count);
    ExprId* const from = g_->scratch()->take<ExprId>(top + uint64_t{1});
    if (from == nullptr || !g_->work()->spend(uint64_t{count} * top * kStepsOfValue)) {
      return g_->never();
    }
    std::fill(from, from + top + 1, g_->never());
    for (uint32_t i = count; i-- != 0;) {
      const ExprId value = asRule(g_->bytes(values[i].data, values[i].bytes));
      for (uint32_t n = 0; n <= top; ++n) {
        const uint32_t written = std::min(n + 1, top);
        const bool full = most_ != UINT32_MAX && n >= most_;
        const ExprId behind = full ? g_->never() : after(n + 1, from[written]);
        from[n] = asRule(choice(sequence(value, behind), from[n]));
      }
    }
    return whole(from[0]);
  }

  // The continuation after n items, with or without a hit; built from the last n.
  ExprId containing(ExprId item, ExprId hit) {
    const uint32_t top = most_ != UINT32_MAX ? most_ : std::max(least_, 1u);
    ExprId has = g_->never();
    ExprId lacks = g_->never();
    for (uint32_t n = top; n != 0; --n) {
      const bool loops = n == top && most_ == UINT32_MAX;
      const RuleId has_rule = g_->newRule();
      const RuleId lacks_rule = g_->newRule();
      const ExprId next_has = loops ? g_->rule(has_rule) : has;
      const ExprId next_lacks = loops ? g_->rule(lacks_rule) : lacks;
      const ExprId more = sequence(comma(), sequence(item, next_has));
      has = define(has_rule, n >= least_ ? choice(g_->text("]"), more) : more);
      lacks = define(lacks_rule, choice(sequence(comma(), sequence(item, next_lacks)),
                                        sequence(comma(), sequence(hit, next_has))));
    }
    return sequence(g_->text("["), choice(sequence(item, lacks), sequence(hit, has)));
  }

 private:
  static constexpr uint64_t kStepsOfValue = 16;

  ExprId define(RuleId rule, ExprId what) {
    g_->define(rule, what);
    return isNever(what) ? what : g_->rule(rule);
  }
  ExprId after(uint32_t n, ExprId more) {
    const ExprId next = sequence(comma(), more);
    return asRule(n >= least_ ? choice(g_->text("]"), next) : next);
  }
  ExprId whole(ExprId first) {
    const ExprId inside = least_ == 0 ? choice(g_->text("]"), first) : first;
    return sequence(g_->text("["), inside);
  }

  const uint32_t least_;
  const uint32_t most_;
};

}  // namespace

ExprId arrayExpression(const List<ExprId>& items, uint32_t n_prefix, const ArrayLengths& lengths,
                       Grammar* grammar) {
  return ArrayWriter(lengths, grammar).all(items, n_prefix);
}

ExprId uniqueItemsExpression(const JsonText* values, uint32_t count, const ArrayLengths& lengths,
                             Grammar* grammar) {
  ArrayWriter writer(lengths, grammar);
  return count <= kMostUniqueInAnyOrder ? writer.unique(values, count)
                                        : writer.ordered(values, count);
}

ExprId containingExpression(ExprId item, ExprId hit, const ArrayLengths& lengths,
                            Grammar* grammar) {
  return ArrayWriter(lengths, grammar).containing(item, hit);
}

}  // namespace oriel_internal
