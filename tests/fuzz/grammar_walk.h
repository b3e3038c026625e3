// Walks through grammars: texts that a mask allows, token by token, with checks. Tests only.
#pragma once

#include <string>
#include <vector>

#include "fuzz/checks.h"
#include "fuzz/fuzz.h"
#include "support/expression_texts.h"
#include "support/grammar_case.h"

namespace oriel_internal::fuzz {

/// Typical model tokens: every byte, parts of JSON, of words and of characters.
inline test::Vocabulary walkVocabulary(bool with_bytes) {
  return test::byteVocabulary(
      {"\"",    "{\"",        "\":",   "\",\"", ",\"", "\", \"", "\": ",     "\"}",          "\"]",
       "\":[",  "},{",        "]}",    "[]",    "{}",  "true",   "false",    "null",         "name",
       "id",    "ab",         "the ",  " a",    "é",   "日本",   "🌍",        "\\n",          "\\\"",
       "\\u00", "12",         "00",    "-1",    ".5",  "e5",     "1.5",      "20",           "-01-",
       "T",     ":00Z",       ".com",  "@a.b",  "::",  "://",    "\n",       "  ",           "\t",
       "aaaa",  "xyz",        "()",    "foo",   "bar", "\xC3",   "\xE6\x97", "\x9F\x8C\x8D", "yes",
       "no",    "0123456789", "ABCDEF"},
      with_bytes);
}

/// Vocabularies that are made once: with every byte, and without.
class WalkCase {
 public:
  WalkCase()
      : all_(walkVocabulary(true)),
        few_(walkVocabulary(false)),
        usual_(all_.add()),
        small_(all_.add(kConstraintBytes / 2 + 128 * 1024)),
        stuck_(few_.add()) {}

  test::GrammarCase& all() { return all_; }
  test::GrammarCase& few() { return few_; }
  Constraint* usual() { return usual_; }
  Constraint* small() { return small_; }
  Constraint* stuck() { return stuck_; }

 private:
  test::GrammarCase all_;
  test::GrammarCase few_;
  Constraint* usual_;
  Constraint* small_;  ///< forgets sets often
  Constraint* stuck_;  ///< may lack a token for the next bytes
};

inline WalkCase& walkCase() {
  static WalkCase made;
  return made;
}

struct WalkedText {
  std::string text;
  bool ended = false;  ///< it may end there
};

/// True if following the expressions' definitions is fast.
inline bool isSmall(const Grammar& grammar) {
  constexpr uint32_t kMostExpressions = 400;
  constexpr uint32_t kMostTimes = 50;
  if (grammar.count() > kMostExpressions) {
    return false;
  }
  for (ExprId id = 0; id < grammar.count(); ++id) {
    const Expr& e = grammar.at(id);
    if (e.kind == ExprKind::kRepeat && e.min > kMostTimes) {
      return false;
    }
  }
  return true;
}

/// Texts that a slow recogniser is asked about.
constexpr size_t kMostText = 48;

/// Follows the mask, at first anywhere and then towards an end.
class GrammarWalk {
 public:
  GrammarWalk(const Grammar& grammar, const test::GrammarCase& tokens, Constraint* constraint,
              uint64_t seed)
      : grammar_(grammar), tokens_(tokens), constraint_(*constraint), chance_(seed) {
    // Without rules and shared repetitions there is no stack: as many places as states, which may exceed the limits of
    // a set or a step.
    const Automaton& automaton = constraint->automaton();
    may_be_bounded_ = automaton.n_states > StateSets::kMostInSet;
    for (ExprId id = 0; id < grammar.count(); ++id) {
      may_be_bounded_ = may_be_bounded_ || grammar.at(id).kind == ExprKind::kRule;
    }
    for (uint32_t id = 0; id < automaton.n_states; ++id) {
      const Automaton::State& state = automaton.states[id];
      for (uint32_t e = state.edges + state.n_bytes; e < automaton.states[id + 1].edges; ++e) {
        may_be_bounded_ = may_be_bounded_ || automaton.edges[e].with != Automaton::kFinal;
      }
    }
  }

  WalkedText walk() {
    // Each step of a large automaton may visit thousands of states: with sanitizers some milliseconds.
    constexpr uint32_t kLarge = 500;
    const bool large = constraint_.automaton().n_states > kLarge;
    const uint32_t most_tokens = large ? 10 : 160;
    const uint32_t hurry_after = large ? 5 : 24;
    WalkedText walked;
    constraint_.restart();
    for (uint32_t step = 0; step < most_tokens; ++step) {
      const std::vector<int32_t> ids = allowed();
      const bool complete = constraint_.complete();
      if (ids.empty()) {
        EXPECT_TRUE(constraint_.stuck() || constraint_.ended());
        walked.ended = complete;
        break;
      }
      EXPECT_FALSE(constraint_.stuck());
      if (!refuseSome(ids, &walked.text)) {
        continue;  // begun anew
      }
      if (complete && (step >= hurry_after || chance_.once(8))) {
        walked.ended = true;
        break;
      }
      const int32_t id = choose(ids, step >= hurry_after);
      EXPECT_TRUE(constraint_.accept(id)) << id;
      if (isStop(id)) {
        EXPECT_TRUE(complete);
        EXPECT_TRUE(allowed().empty()) << "nothing follows";
        walked.ended = true;
        break;
      }
      walked.text += tokens_.textOf(id);
    }
    readAgain(walked);
    return walked;
  }

 private:
  bool isStop(int32_t id) const { return id + 1 == tokens_.size(); }

  std::vector<int32_t> allowed() {
    const uint32_t* const mask = constraint_.mask();
    std::vector<int32_t> ids = test::idsOf(mask, tokens_.size());
    const uint32_t words = static_cast<uint32_t>(maskWords(static_cast<uint64_t>(tokens_.size())));
    for (int32_t id = tokens_.size(); id < static_cast<int32_t>(32 * words); ++id) {
      EXPECT_FALSE(test::bitOf(mask, id)) << "behind the last token";
    }
    return ids;
  }
  /// A forbidden token changes nothing. Only if rules nest beyond the limit, or a step has too many places, may the mask
  /// lack a token of the grammar: then returns false, and the text is read again as far as possible.
  bool refuseSome(const std::vector<int32_t>& ids, std::string* text) {
    if (!chance_.once(4)) {
      return true;
    }
    const int32_t id = static_cast<int32_t>(chance_.below(static_cast<uint64_t>(tokens_.size())));
    if (std::binary_search(ids.begin(), ids.end(), id)) {
      return true;
    }
    if (!constraint_.accept(id)) {
      EXPECT_EQ(ids, allowed());
      return true;
    }
    EXPECT_TRUE(may_be_bounded_ && constraint_.bounded()) << id;
    const std::string longer = *text + tokens_.textOf(id);
    if (longer.size() <= kMostText && isSmall(grammar_)) {
      test::SlowRecogniser slow(grammar_);
      EXPECT_TRUE(isStop(id) ? slow.matches(*text) : slow.begins(longer)) << longer;
    }
    constraint_.restart();
    text->resize(constraint_.acceptText(text->data(), text->size()));
    return false;
  }
  int32_t choose(const std::vector<int32_t>& ids, bool hurry) {
    if (hurry) {
      for (const char* end : {"\"", "}", "]", "\"}", "\"]"}) {
        for (const int32_t id : ids) {
          if (tokens_.textOf(id) == end && chance_.once(2)) {
            return id;
          }
        }
      }
    }
    return ids[chance_.below(ids.size())];
  }
  /// The same text as bytes. The limits may forbid another part this time.
  void readAgain(const WalkedText& walked) {
    constraint_.restart();
    const size_t read = constraint_.acceptText(walked.text.data(), walked.text.size());
    const bool complete = constraint_.complete();
    if (constraint_.bounded()) {
      EXPECT_TRUE(may_be_bounded_);
      return;
    }
    EXPECT_EQ(walked.text.size(), read) << walked.text;
    EXPECT_TRUE(!walked.ended || complete) << walked.text;
    constraint_.restart();
    for (size_t at = 0; at < walked.text.size();) {
      const size_t bytes = std::min<size_t>(1 + chance_.below(5), walked.text.size() - at);
      EXPECT_EQ(bytes, constraint_.acceptText(walked.text.data() + at, bytes)) << walked.text;
      at += bytes;
    }
  }

  const Grammar& grammar_;
  const test::GrammarCase& tokens_;
  Constraint& constraint_;
  Chance chance_;
  bool may_be_bounded_ = false;
};

/// Compiles and walks it in every way. Complete texts in the order in which they were found.
inline std::vector<std::string> walkGrammar(const Grammar& grammar, uint32_t seed, Watch* watch) {
  constexpr uint32_t kWalks = 3;
  std::vector<std::string> texts;
  WalkCase& made = walkCase();
  const oriel_status status = watch->ended(made.usual()->compile(grammar, -1, watch->log()).code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT ||
              status == ORIEL_ERROR_UNSUPPORTED || status == ORIEL_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(status == ORIEL_OK, made.usual()->inForce());
  if (status != ORIEL_OK) {
    return texts;
  }
  for (uint32_t i = 0; i < kWalks; ++i) {
    const WalkedText walked = GrammarWalk(grammar, made.all(), made.usual(), seed + i).walk();
    if (walked.text.size() <= kMostText && isSmall(grammar)) {
      test::SlowRecogniser slow(grammar);
      EXPECT_TRUE(slow.begins(walked.text)) << walked.text;
      EXPECT_TRUE(!walked.ended || slow.matches(walked.text)) << walked.text;
    }
    if (walked.ended) {
      texts.push_back(walked.text);
    }
  }
  if (watch->ended(made.small()->compile(grammar, -1, watch->log()).code()) == ORIEL_OK) {
    const WalkedText less = GrammarWalk(grammar, made.all(), made.small(), seed).walk();
    if (less.ended) {
      texts.push_back(less.text);
    }
    made.small()->release();
  }
  if (watch->ended(made.stuck()->compile(grammar, -1, watch->log()).code()) == ORIEL_OK) {
    GrammarWalk(grammar, made.few(), made.stuck(), seed).walk();
    made.stuck()->forget();
    EXPECT_TRUE(made.stuck()->inForce());
    made.stuck()->release();
  }
  made.usual()->release();
  EXPECT_FALSE(made.usual()->inForce());
  return texts;
}

}  // namespace oriel_internal::fuzz
