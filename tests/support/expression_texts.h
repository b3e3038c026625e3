// Makes and recognises texts of a grammar's expressions without the library's automaton, by their definition. Tests
// only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "grammar/expression.h"
#include "text/utf8.h"

namespace oriel_internal::test {

inline void appendUtf8(uint32_t c, std::string* text) {
  if (c < 0x80) {
    *text += static_cast<char>(c);
  } else if (c < 0x800) {
    *text += static_cast<char>(0xC0 | c >> 6);
    *text += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *text += static_cast<char>(0xE0 | c >> 12);
    *text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *text += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    *text += static_cast<char>(0xF0 | c >> 18);
    *text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    *text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    *text += static_cast<char>(0x80 | (c & 0x3F));
  }
}

/// Recognises texts by tracking all possible positions after each part.
class Recogniser {
 public:
  Recogniser(const Grammar& grammar, const std::string& text) : g_(grammar), text_(text) {}

  bool accepts(ExprId root) { return ends(root, 0).count(text_.size()) != 0; }

 private:
  using Ends = std::set<size_t>;

  const Ends& ends(ExprId id, size_t from) {
    const std::pair<ExprId, size_t> key = {id, from};
    if (const auto known = known_.find(key); known != known_.end()) {
      return known->second;
    }
    const Ends found = find(id, from);
    return known_[key] = found;
  }

  Ends find(ExprId id, size_t from) {
    const Expr& e = g_.at(id);
    switch (e.kind) {
      case ExprKind::kEmpty:
        return {from};
      case ExprKind::kNever:
        return {};
      case ExprKind::kBytes: {
        const std::string bytes(static_cast<const char*>(e.data), e.left);
        return text_.compare(from, bytes.size(), bytes) == 0 ? Ends{from + bytes.size()} : Ends{};
      }
      case ExprKind::kChars:
        return character(e, from);
      case ExprKind::kSequence: {
        Ends all;
        for (const size_t middle : Ends(ends(e.left, from))) {
          const Ends& right = ends(e.right, middle);
          all.insert(right.begin(), right.end());
        }
        return all;
      }
      case ExprKind::kChoice: {
        Ends all = ends(e.left, from);
        const Ends& right = ends(e.right, from);
        all.insert(right.begin(), right.end());
        return all;
      }
      case ExprKind::kRepeat:
        return repeated(e, from);
      case ExprKind::kRule:
        return ends(g_.definition(e.left), from);
    }
    return {};
  }

  Ends character(const Expr& e, size_t from) const {
    if (from >= text_.size()) {
      return {};
    }
    const Utf8Char c = decodeUtf8(text_.data() + from, text_.size() - from);
    const auto* const ranges = static_cast<const CharRange*>(e.data);
    const bool in = c.valid && std::any_of(ranges, ranges + e.left, [&](const CharRange& range) {
                      return range.first <= c.code_point && c.code_point <= range.last;
                    });
    return in ? Ends{from + c.bytes} : Ends{};
  }

  Ends repeated(const Expr& e, size_t from) {
    Ends all;
    Ends now = {from};
    Ends seen;
    for (uint32_t n = 0; !now.empty(); ++n) {
      if (n >= e.min) {
        all.insert(now.begin(), now.end());
      }
      if (e.max != kAnyTimes && n == e.max) {
        break;
      }
      Ends next;
      for (const size_t at : now) {
        for (const size_t end : Ends(ends(e.left, at))) {
          // Beyond the minimum, positions reached before lead nowhere new.
          if (n < e.min || seen.insert(end).second) {
            next.insert(end);
          }
        }
      }
      now = next;
    }
    return all;
  }

  const Grammar& g_;
  const std::string& text_;
  std::map<std::pair<ExprId, size_t>, Ends> known_;
};

/// Random texts.
class TextMaker {
 public:
  explicit TextMaker(const Grammar& grammar) : g_(grammar), least_(grammar.count(), kNever) {
    for (bool changed = true; changed;) {
      changed = false;
      for (ExprId id = 0; id < g_.count(); ++id) {
        const double least = leastOf(id);
        changed = changed || least < least_[id];
        least_[id] = std::min(least, least_[id]);
      }
    }
  }

  /// About `budget` steps, then the shortest way to the end.
  std::string make(ExprId root, std::mt19937* random, int budget) {
    text_.clear();
    random_ = random;
    budget_ = budget;
    put(root);
    return text_;
  }

 private:
  static constexpr double kNever = 1e300;

  double leastOf(ExprId id) const {
    const Expr& e = g_.at(id);
    switch (e.kind) {
      case ExprKind::kEmpty:
        return 0;
      case ExprKind::kNever:
        return kNever;
      case ExprKind::kBytes:
        return e.left;
      case ExprKind::kChars:
        return 1;
      case ExprKind::kSequence:
        return least_[e.left] + least_[e.right];
      case ExprKind::kChoice:
        return std::min(least_[e.left], least_[e.right]);
      case ExprKind::kRepeat:
        return e.min == 0 ? 0 : least_[e.left] * e.min;
      case ExprKind::kRule:
        return 1e-6 + (g_.definition(e.left) < g_.count() ? least_[g_.definition(e.left)] : kNever);
    }
    return kNever;
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((*random_)() % n); }

  void put(ExprId id) {
    const Expr& e = g_.at(id);
    --budget_;
    switch (e.kind) {
      case ExprKind::kEmpty:
      case ExprKind::kNever:
        return;
      case ExprKind::kBytes:
        text_.append(static_cast<const char*>(e.data), e.left);
        return;
      case ExprKind::kChars:
        putCharacter(e);
        return;
      case ExprKind::kSequence:
        put(e.left);
        put(e.right);
        return;
      case ExprKind::kChoice: {
        const double left = least_[e.left];
        const double right = least_[e.right];
        const bool forced = budget_ <= 0 || left >= kNever || right >= kNever;
        put(forced ? (left <= right ? e.left : e.right) : below(2) == 0 ? e.left : e.right);
        return;
      }
      case ExprKind::kRepeat: {
        const uint32_t more = e.max == kAnyTimes ? 20 : std::min(e.max - e.min, 400u);
        uint32_t n = e.min;
        if (budget_ > 0 && least_[e.left] < kNever) {
          n += below(4) == 0 ? more : below(std::min(more, 5u) + 1);
        }
        for (uint32_t i = 0; i < n; ++i) {
          put(e.left);
        }
        return;
      }
      case ExprKind::kRule:
        put(g_.definition(e.left));
        return;
    }
  }

  void putCharacter(const Expr& e) {
    const CharRange range = static_cast<const CharRange*>(e.data)[below(e.left)];
    // Prefers the ends of ranges.
    const uint32_t span = range.last - range.first + 1;
    const uint32_t kind = below(6);
    const uint32_t near = std::min(span, 96u);
    appendUtf8(kind == 0   ? range.first
               : kind == 1 ? range.last
               : kind == 2 ? range.first + below(span)
                           : range.first + below(near),
               &text_);
  }

  const Grammar& g_;
  std::vector<double> least_;
  std::string text_;
  std::mt19937* random_ = nullptr;
  int budget_ = 0;
};

}  // namespace oriel_internal::test
