#include "grammar/expression.h"

#include <algorithm>
#include <cstring>

namespace oriel_internal {
namespace {

// Enough for patterns of usual size. Larger ones borrow more and return it.
constexpr size_t kKeptBytes = 256 * 1024;
// Bytes per step for fresh memory, which is mapped, zeroed, overwritten and returned.
constexpr size_t kFreshBytesAStep = 4;

}  // namespace

Scratch* Work::begin() {
  if (room_.has_value() && !room_->failed()) {
    (void)spend((room_->usedBytes() - kKeptBytes) / kFreshBytesAStep);
    room_->releaseTo(empty_);
    return &*room_;
  }
  if (room_.has_value()) {
    (void)spend(room_->usedBytes() / kFreshBytesAStep);
  }
  room_.emplace(around_, kMostDfaBytes);
  if (room_->takeText(kKeptBytes) != nullptr) {
    empty_ = room_->place();
    empty_.used -= kKeptBytes;  // the block stays
    room_->releaseTo(empty_);
  }
  return &*room_;
}

namespace {}  // namespace

ExprId Grammar::add(const Expr& expr) {
  if (exprs_ == nullptr) {
    exprs_ = scratch_->take<Expr*>(kMostExpressions / kPerBlock);
  }
  if (exprs_ == nullptr || count_ == kMostExpressions) {
    failed_ = true;
    return 0;
  }
  if (count_ % kPerBlock == 0) {
    Expr* const block = scratch_->take<Expr>(kPerBlock);
    if (block == nullptr) {
      failed_ = true;
      return 0;
    }
    exprs_[count_ / kPerBlock] = block;
  }
  *exprAt(count_) = expr;
  return count_++;
}

ExprId Grammar::bytes(const char* data, size_t count) {
  if (count == 0) {
    return empty();
  }
  char* const copy = scratch_->takeText(count);
  if (copy == nullptr || count > UINT32_MAX) {
    failed_ = true;
    return 0;
  }
  std::memcpy(copy, data, count);
  return add({ExprKind::kBytes, static_cast<uint32_t>(count), 0, 0, 0, copy});
}

ExprId Grammar::text(const char* text) { return bytes(text, std::strlen(text)); }

ExprId Grammar::chars(const CharRange* ranges, size_t count, bool negated) {
  // Sort and join, then complement, then remove surrogates: each may add one range.
  CharRange* const sorted = scratch_->take<CharRange>(count + 3);
  CharRange* const out = scratch_->take<CharRange>(2 * count + 6);
  if (sorted == nullptr || out == nullptr || count > kMostExpressions) {
    failed_ = true;
    return 0;
  }
  std::copy_n(ranges, count, sorted);
  std::sort(sorted, sorted + count,
            [](const CharRange& a, const CharRange& b) { return a.first < b.first; });
  size_t n = 0;
  for (size_t i = 0; i < count; ++i) {
    if (sorted[i].first > sorted[i].last || sorted[i].first > kLastCodePoint) {
      continue;
    }
    if (n != 0 && sorted[i].first <= sorted[n - 1].last + 1) {
      sorted[n - 1].last = std::max(sorted[n - 1].last, sorted[i].last);
    } else {
      sorted[n++] = sorted[i];
    }
  }
  uint32_t n_out = 0;
  const auto put = [&](uint32_t first, uint32_t last) {
    last = std::min(last, kLastCodePoint);
    if (first < kSurrogates.first && last >= kSurrogates.first) {
      out[n_out++] = {first, kSurrogates.first - 1};
      first = kSurrogates.last + 1;
    }
    first = first >= kSurrogates.first ? std::max(first, kSurrogates.last + 1) : first;
    if (first <= last) {
      out[n_out++] = {first, last};
    }
  };
  uint32_t from = 0;
  for (size_t i = 0; i < n; ++i) {
    if (!negated) {
      put(sorted[i].first, sorted[i].last);
    } else if (sorted[i].first > from) {
      put(from, sorted[i].first - 1);
    }
    from = sorted[i].last + 1;
  }
  if (negated && from <= kLastCodePoint) {
    put(from, kLastCodePoint);
  }
  return n_out == 0 ? never() : add({ExprKind::kChars, n_out, 0, 0, 0, out});
}

ExprId Grammar::sequence(ExprId left, ExprId right) {
  return add({ExprKind::kSequence, left, right, 0, 0, nullptr});
}

ExprId Grammar::choice(ExprId left, ExprId right) {
  return add({ExprKind::kChoice, left, right, 0, 0, nullptr});
}

ExprId Grammar::repeat(ExprId what, uint32_t min, uint32_t max) {
  return max == 0 ? empty() : add({ExprKind::kRepeat, what, 0, min, max, nullptr});
}

RuleId Grammar::newRule() {
  if (rules_ == nullptr) {
    rules_ = scratch_->take<ExprId*>(kMostRules / kPerBlock);
  }
  if (rules_ == nullptr || n_rules_ == kMostRules) {
    failed_ = true;
    return 0;
  }
  if (n_rules_ % kPerBlock == 0) {
    ExprId* const block = scratch_->take<ExprId>(kPerBlock);
    if (block == nullptr) {
      failed_ = true;
      return 0;
    }
    rules_[n_rules_ / kPerBlock] = block;
  }
  *ruleAt(n_rules_) = UINT32_MAX;
  return n_rules_++;
}

void Grammar::define(RuleId rule, ExprId what) {
  if (rule < n_rules_) {
    *ruleAt(rule) = what;
  }
}

ExprId Grammar::rule(RuleId rule) { return add({ExprKind::kRule, rule, 0, 0, 0, nullptr}); }

}  // namespace oriel_internal
