#include "grammar/automaton.h"

#include <algorithm>
#include <cstring>

#include "text/unicode.h"

namespace oriel_internal {
namespace {

/// Build limit: expressions that share parts many times over end in time.
constexpr uint32_t kMostSteps = 1u << 20;
/// A repeated body with more bytes or ranges than this becomes a routine.
constexpr uint32_t kMostInline = 8;
constexpr uint64_t kStepsOfTask = 32;
constexpr uint64_t kStepsOfState = 8;  // to compare it

struct Literal {
  const uint8_t* data = nullptr;
  uint32_t count = 0;
};

bool lessLiteral(const Literal& a, const Literal& b) {
  const int order = std::memcmp(a.data, b.data, std::min(a.count, b.count));
  return order != 0 ? order < 0 : a.count < b.count;
}

uint32_t sharedBytes(const Literal& a, const Literal& b) {
  uint32_t same = 0;
  while (same < std::min(a.count, b.count) && a.data[same] == b.data[same]) {
    ++same;
  }
  return same;
}

uint32_t utf8Length(uint32_t code_point) {
  return code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
}

/// Works from the end of a text to its start: `next_` is the state after the part that is being built. Expressions wait
/// on an explicit stack, so nesting is unlimited.
class NfaBuilder {
 public:
  NfaBuilder(const Grammar& grammar, Nfa* nfa)
      : grammar_(grammar),
        scratch_(grammar.scratch()),
        work_(*grammar.work()),
        nfa_(*nfa),
        tasks_(scratch_, kMostSteps),
        literals_(scratch_, kMostSteps) {
    routine_of_rule_ = scratch_->take<uint32_t>(grammar.ruleCount());
    routine_of_body_ = scratch_->take<uint32_t>(grammar.count());
    same_hash_ = scratch_->take<uint32_t>(kHashes);
  }

  Status build(const Log& log) {
    if (same_hash_ == nullptr || routine_of_body_ == nullptr || routine_of_rule_ == nullptr) {
      return fail(log);
    }
    std::fill_n(same_hash_, kHashes, Nfa::kNone);
    newState();  // kFinal
    newState();  // kNowhere
    (void)routineOfRule(grammar_.root());
    for (uint32_t i = 0; i < nfa_.routines.count() && !failed_; ++i) {
      next_ = Nfa::kFinal;
      put({TaskKind::kBuild, nfa_.routines[i].what});
      while (tasks_.count() != 0 && !failed_) {
        run(tasks_.pop());
      }
      nfa_.routines[i].start = next_;
    }
    if (undefined_) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "a rule of the grammar has no definition: define every rule that is used");
    }
    return failed_ || scratch_->failed() ? fail(log) : kOk;
  }

 private:
  enum class TaskKind : uint8_t {
    kBuild,     ///< what
    kFlatten,   ///< an alternative of the choice at `state`, before `after`
    kAttach,    ///< adds the built part to the alternatives of `state`
    kLiterals,  ///< collects its texts from literal `count` on, then builds the choice
    kCopies,    ///< what, `count` times
    kOptional,  ///< what, up to `count` times, before `after`
    kLoop,      ///< closes the loop to `state`; `after` follows it
  };
  struct Task {
    TaskKind kind = TaskKind::kBuild;
    ExprId what = 0;
    uint32_t state = 0;
    uint32_t after = 0;
    uint32_t count = 0;
  };
  static constexpr uint32_t kHashes = 1u << 12;

  Status fail(const Log& log) const {
    if (work_.stopped()) {
      return ORIEL_ERROR_CANCELLED;
    }
    if (scratch_->noMemory()) {
      return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                      "no memory to compile a grammar: close other apps");
    }
    return failTooLarge(log);
  }

  void put(const Task& task) { failed_ = failed_ || !tasks_.push(task); }

  uint32_t newState() {
    if (!nfa_.states.push({})) {
      failed_ = true;
      return Nfa::kNowhere;
    }
    return nfa_.states.count() - 1;
  }
  void addEdge(uint32_t from, const Nfa::Edge& edge) {
    if (failed_ || !nfa_.edges.push(edge)) {
      failed_ = true;
      return;
    }
    Nfa::State& state = nfa_.states[from];
    const uint32_t id = nfa_.edges.count() - 1;
    if (state.edges == Nfa::kNone) {
      state.edges = id;
    } else {
      nfa_.edges[state.last_edge].next = id;
    }
    state.last_edge = id;
  }
  void addByte(uint32_t from, uint8_t first, uint8_t last, uint32_t to) {
    addEdge(from, {to, 0, Nfa::kNone, Nfa::EdgeKind::kByte, first, last});
  }
  void addFree(uint32_t from, uint32_t to) {
    addEdge(from, {to, 0, Nfa::kNone, Nfa::EdgeKind::kFree, 0, 0});
  }
  void addCall(uint32_t from, uint32_t routine, uint32_t after) {
    addEdge(from, {routine, after, Nfa::kNone, Nfa::EdgeKind::kCall, 0, 0});
  }

  // The state with one byte edge to `to`; equal requests share a state.
  uint32_t byteState(uint8_t first, uint8_t last, uint32_t to) {
    const uint32_t key = (to << 16 ^ to >> 16 ^ uint32_t{first} << 8 ^ last) * 0x9E3779B1u;
    uint32_t& head = same_hash_[key >> 20];
    for (uint32_t at = head; at != Nfa::kNone; at = nfa_.states[at].same_hash) {
      (void)work_.spend(kStepsOfState);
      const Nfa::Edge& edge = nfa_.edges[nfa_.states[at].edges];
      if (edge.target == to && edge.first == first && edge.last == last) {
        return at;
      }
    }
    const uint32_t state = newState();
    addByte(state, first, last, to);
    if (!failed_) {
      nfa_.states[state].same_hash = head;
      head = state;
    }
    return state;
  }
  uint32_t bytesBefore(const uint8_t* data, uint32_t count, uint32_t to) {
    for (uint32_t i = count; i > 0 && !failed_; --i) {
      to = byteState(data[i - 1], data[i - 1], to);
    }
    return to;
  }

  // Code points a to b, all of `length` bytes in UTF-8: split until each byte is a range.
  void addRange(uint32_t from, uint32_t a, uint32_t b, uint32_t length, uint32_t to) {
    for (uint32_t i = 1; i < length; ++i) {
      const uint32_t low = (1u << (6 * i)) - 1;
      if ((a & ~low) == (b & ~low)) {
        continue;
      }
      if ((a & low) != 0) {
        addRange(from, a, a | low, length, to);
        addRange(from, (a | low) + 1, b, length, to);
        return;
      }
      if ((b & low) != low) {
        addRange(from, a, (b & ~low) - 1, length, to);
        addRange(from, b & ~low, b, length, to);
        return;
      }
    }
    uint8_t first[4];
    uint8_t last[4];
    encodeUtf8(a, reinterpret_cast<char*>(first));
    encodeUtf8(b, reinterpret_cast<char*>(last));
    for (uint32_t i = length - 1; i > 0; --i) {
      to = byteState(first[i], last[i], to);
    }
    addByte(from, first[0], last[0], to);
  }
  uint32_t charsBefore(const Expr& expr, uint32_t to) {
    const CharRange* const ranges = static_cast<const CharRange*>(expr.data);
    if (expr.left == 1 && ranges[0].last < 0x80) {
      return byteState(static_cast<uint8_t>(ranges[0].first), static_cast<uint8_t>(ranges[0].last),
                       to);
    }
    const uint32_t from = newState();
    constexpr uint32_t kLastOfLength[] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
    for (uint32_t i = 0; i < expr.left && !failed_; ++i) {
      uint32_t first = ranges[i].first;
      while (first <= ranges[i].last) {
        const uint32_t length = utf8Length(first);
        const uint32_t last = std::min(ranges[i].last, kLastOfLength[length - 1]);
        addRange(from, first, last, length, to);
        first = last + 1;
      }
    }
    return from;
  }

  uint32_t newRoutine(ExprId what) {
    failed_ = failed_ || !nfa_.routines.push({what, Nfa::kNone});
    return failed_ ? 0 : nfa_.routines.count() - 1;
  }
  uint32_t routineOfRule(RuleId rule) {
    if (rule >= grammar_.ruleCount() || grammar_.definition(rule) == UINT32_MAX) {
      undefined_ = failed_ = true;
      return 0;
    }
    if (routine_of_rule_[rule] == 0) {
      routine_of_rule_[rule] = newRoutine(grammar_.definition(rule)) + 1;
    }
    return routine_of_rule_[rule] - 1;
  }

  // True for bodies that would be large if copied.
  bool isLarge(const Expr& body) const {
    switch (body.kind) {
      case ExprKind::kEmpty:
      case ExprKind::kNever:
      case ExprKind::kRule:
        return false;
      case ExprKind::kBytes:
        return body.left > kMostInline;
      case ExprKind::kChars:
        return body.left > kMostInline ||
               static_cast<const CharRange*>(body.data)[body.left - 1].last >= 0x80;
      default:
        return true;
    }
  }
  uint32_t routineOfBody(ExprId what) {
    if (routine_of_body_[what] == 0) {
      routine_of_body_[what] = newRoutine(what) + 1;
    }
    return routine_of_body_[what] - 1;
  }

  void run(const Task& task) {
    if (++steps_ > kMostSteps || !work_.spend(kStepsOfTask)) {
      failed_ = true;
      return;
    }
    switch (task.kind) {
      case TaskKind::kBuild:
        buildOne(task.what);
        break;
      case TaskKind::kFlatten:
        flatten(task);
        break;
      case TaskKind::kAttach:
        addFree(task.state, next_);
        break;
      case TaskKind::kLiterals:
        addLiterals(task);
        next_ = task.state;
        break;
      case TaskKind::kCopies:
        copy(task);
        break;
      case TaskKind::kOptional:
        copyOptional(task);
        break;
      case TaskKind::kLoop:
        addFree(task.state, next_);
        addFree(task.state, task.after);
        // At least one repetition: begin with the body.
        next_ = task.count == 0 ? task.state : next_;
        break;
    }
  }

  void buildOne(ExprId what) {
    const Expr& expr = grammar_.at(what);
    switch (expr.kind) {
      case ExprKind::kEmpty:
        break;
      case ExprKind::kNever:
        next_ = Nfa::kNowhere;
        break;
      case ExprKind::kBytes:
        next_ = bytesBefore(static_cast<const uint8_t*>(expr.data), expr.left, next_);
        break;
      case ExprKind::kChars:
        next_ = charsBefore(expr, next_);
        break;
      case ExprKind::kSequence:
        put({TaskKind::kBuild, expr.left});
        put({TaskKind::kBuild, expr.right});
        break;
      case ExprKind::kChoice: {
        const uint32_t state = newState();
        put({TaskKind::kLiterals, 0, state, next_, literals_.count()});
        put({TaskKind::kFlatten, what, state, next_});
        break;
      }
      case ExprKind::kRepeat:
        repeat(expr);
        break;
      case ExprKind::kRule: {
        const uint32_t routine = routineOfRule(expr.left);
        const uint32_t state = newState();
        addCall(state, routine, next_);
        next_ = state;
        break;
      }
    }
  }

  void flatten(const Task& task) {
    const Expr& expr = grammar_.at(task.what);
    if (expr.kind == ExprKind::kChoice) {
      put({TaskKind::kFlatten, expr.right, task.state, task.after});
      put({TaskKind::kFlatten, expr.left, task.state, task.after});
    } else if (expr.kind == ExprKind::kBytes) {
      failed_ = failed_ || !literals_.push({static_cast<const uint8_t*>(expr.data), expr.left});
    } else if (expr.kind != ExprKind::kNever) {
      next_ = task.after;
      put({TaskKind::kAttach, 0, task.state});
      put({TaskKind::kBuild, task.what});
    }
  }

  // Literal alternatives become a tree, so texts with a common prefix share states.
  void addLiterals(const Task& task) {
    const uint32_t count = literals_.count() - task.count;
    Literal* const sorted = scratch_->take<Literal>(count);
    if (sorted == nullptr) {
      failed_ = true;
      return;
    }
    for (uint32_t i = 0; i < count; ++i) {
      sorted[i] = literals_[task.count + i];
    }
    literals_.cut(task.count);
    std::sort(sorted, sorted + count, lessLiteral);
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; ++i) {
      most = std::max(most, sorted[i].count);
    }
    // State after each byte of the previous text, as far as they share a prefix.
    uint32_t* const path = scratch_->take<uint32_t>(uint64_t{most} + 1);
    if (path == nullptr) {
      failed_ = true;
      return;
    }
    path[0] = task.state;
    uint32_t known = 0;
    for (uint32_t i = 0; i < count && !failed_; ++i) {
      const Literal& text = sorted[i];
      const uint32_t before = i == 0 ? 0 : sharedBytes(sorted[i - 1], text);
      const uint32_t behind = i + 1 == count ? 0 : sharedBytes(text, sorted[i + 1]);
      if (i != 0 && before == text.count && before == sorted[i - 1].count) {
        continue;  // a duplicate
      }
      for (known = std::min(known, before); known < behind; ++known) {
        path[known + 1] = newState();
        addByte(path[known], text.data[known], text.data[known], path[known + 1]);
      }
      const uint32_t at = std::max(std::min(known, before), behind);
      if (at == text.count) {
        addFree(path[at], task.after);
      } else {
        addByte(path[at], text.data[at], text.data[at],
                bytesBefore(text.data + at + 1, text.count - at - 1, task.after));
      }
      known = at;
    }
  }

  void repeat(const Expr& expr) {
    const bool endless = expr.max == kAnyTimes;
    const uint32_t copies = endless ? (expr.min == 0 ? 0 : expr.min - 1) : expr.min;
    put({TaskKind::kCopies, expr.left, 0, 0, copies});
    if (endless) {
      const uint32_t state = newState();
      put({TaskKind::kLoop, 0, state, next_, expr.min});
      put({TaskKind::kBuild, expr.left});
      next_ = state;
    } else {
      put({TaskKind::kOptional, expr.left, 0, next_, expr.max - expr.min});
    }
  }
  bool isShared(const Task& task) const {
    return isLarge(grammar_.at(task.what)) && (task.count > 1 || routine_of_body_[task.what] != 0);
  }
  void copy(const Task& task) {
    if (task.count == 0) {
      return;
    }
    put({TaskKind::kCopies, task.what, 0, 0, task.count - 1});
    if (isShared(task)) {
      const uint32_t state = newState();
      addCall(state, routineOfBody(task.what), next_);
      next_ = state;
    } else {
      put({TaskKind::kBuild, task.what});
    }
  }
  void copyOptional(const Task& task) {
    if (task.state != 0) {  // it has a body
      addFree(task.state, next_);
      addFree(task.state, task.after);
      next_ = task.state;
    }
    if (task.count == 0) {
      return;
    }
    const uint32_t state = newState();
    if (isShared(task)) {
      addCall(state, routineOfBody(task.what), next_);
      addFree(state, task.after);
      next_ = state;
      put({TaskKind::kOptional, task.what, 0, task.after, task.count - 1});
    } else {
      put({TaskKind::kOptional, task.what, state, task.after, task.count - 1});
      put({TaskKind::kBuild, task.what});
    }
  }

  const Grammar& grammar_;
  Scratch* const scratch_;
  Work& work_;
  Nfa& nfa_;
  Blocks<Task> tasks_;
  Blocks<Literal> literals_;
  uint32_t* routine_of_rule_ = nullptr;  ///< plus 1; 0: none yet
  uint32_t* routine_of_body_ = nullptr;  ///< the same for repeated bodies
  uint32_t* same_hash_ = nullptr;
  uint32_t next_ = Nfa::kFinal;
  uint32_t steps_ = 0;
  bool failed_ = false;
  bool undefined_ = false;
};

}  // namespace

Status failTooLarge(const Log& log) {
  return log.fail(ORIEL_ERROR_UNSUPPORTED,
                  "the grammar is too large for the memory that constraints have: shorten its "
                  "longest repetitions, or split it");
}

Status buildNfa(const Grammar& grammar, const Log& log, Nfa* nfa) {
  return NfaBuilder(grammar, nfa).build(log);
}

}  // namespace oriel_internal
