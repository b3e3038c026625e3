// The cost of a mask for any grammar: steps are counted, bounded in total, and can be stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/grammar_case.h"

namespace oriel_internal::test::test_grammar_work {
namespace {

/// After the last check of a call.
constexpr uint64_t kSlack = kMostMaskSteps / 50;

/// Tokens of letters and spaces: as many texts as a vocabulary's words.
std::vector<std::string> words(size_t count) {
  std::vector<std::string> tokens;
  std::mt19937 random(3);
  while (tokens.size() < count) {
    std::string word;
    for (uint32_t n = 2 + static_cast<uint32_t>(random()) % 9; n != 0; --n) {
      word += "abcdefghijklmnopqrstuvwxyzxy "[random() % 29];
    }
    tokens.push_back(word);
  }
  return tokens;
}

GrammarCase& wordCase() {
  static GrammarCase made(byteVocabulary(words(20000)));
  return made;
}

/// As many ways to read a text as it has letters: each of `count` alternatives at each of its places.
std::string everywhere(int count, int length) {
  std::string text = "root ::= (";
  for (int i = 0; i < count; ++i) {
    text += std::string(i == 0 ? "" : " | ") + "[a-z ]* \"" + static_cast<char>('a' + i % 26) +
            "\" [a-z ]{" + std::to_string(length + i) + "}";
  }
  return text + ")\n";
}

const std::string kRules =
    "root ::= s\ns ::= [a-z ] s t | [a-z ] s u | [a-z ]\nt ::= \"x\" \"\" | [a-w]\n"
    "u ::= \"y\" | [b-z]\n";
const std::string kMoreRules =
    "root ::= s\ns ::= . s t | . s u | . s v | .\nt ::= [a-w]\nu ::= [b-z]\nv ::= [c-y]\n";

// Any grammar: within its steps, or refused before or while running.
TEST(GrammarWork, of_a_mask_is_bounded_in_all) {
  GrammarCase& c = wordCase();
  std::vector<std::string> grammars = {kRules,
                                       kMoreRules,
                                       everywhere(1, 12),
                                       everywhere(40, 20),
                                       everywhere(300, 9),
                                       everywhere(700, 3)};
  // A step that goes through thousands of states, and rules that call each other before any byte.
  std::string many = "root ::= r0*\n";
  for (int i = 0; i < 400; ++i) {
    many += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\"? | r" +
            std::to_string(i + 1) + " [a-z]? | [a-z ]\n";
  }
  grammars.push_back(many + "r400 ::= [a-z ]\n");
  std::string optional = "root ::= (";
  for (int i = 0; i < 2000; ++i) {
    optional += "[a-z ]? ";
  }
  grammars.push_back(optional + ")*\n");
  size_t refused = 0;
  for (const std::string& grammar : grammars) {
    SCOPED_TRACE(grammar.substr(0, 60));
    Constraint* const constraint = c.add();
    c.log.clear();
    const Status compiled = c.compileGbnf(constraint, grammar);
    if (!compiled.ok()) {
      EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, compiled.code());
      EXPECT_FALSE(constraint->inForce());
      ++refused;
      continue;
    }
    for (int token = 0; token < 12; ++token) {
      const uint32_t* const mask = constraint->mask();
      EXPECT_LT(constraint->steps(), kMostMaskSteps + kSlack);
      if (!constraint->spent().ok()) {
        EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, constraint->spent().code());
        EXPECT_TRUE(idsOf(mask, c.size()).empty());
        ++refused;
        break;
      }
      const std::vector<int32_t> ids = idsOf(mask, c.size() - 1);
      if (ids.empty()) {
        break;
      }
      EXPECT_TRUE(constraint->accept(ids[ids.size() * static_cast<size_t>(token) / 12]));
      EXPECT_LT(constraint->steps(), kMostMaskSteps + kSlack);
    }
  }
  EXPECT_GE(refused, 1u);
  EXPECT_LE(refused, 3u);
}

TEST(GrammarWork, that_no_mask_may_take_is_refused_when_it_is_compiled) {
  GrammarCase& c = wordCase();
  Constraint* const constraint = c.add();
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, c.compileGbnf(constraint, everywhere(100, 5)).code());
  EXPECT_FALSE(constraint->inForce());
  EXPECT_TRUE(c.log.says("let the alternatives of a rule begin with different characters"))
      << c.log.errors();
}

// Rules that can be read in twice as many ways with each letter: ways of one height are one.
TEST(GrammarWork, of_ambiguous_rules_grows_with_the_text_alone) {
  GrammarCase& c = wordCase();
  for (const std::string& grammar : {kRules, kMoreRules}) {
    Constraint* const constraint = c.gbnf(grammar);
    const std::string text(100, 'c');
    ASSERT_EQ(text.size(), constraint->acceptText(text.data(), text.size()));
    EXPECT_TRUE(constraint->spent().ok());
    EXPECT_FALSE(constraint->bounded());
    EXPECT_LT(constraint->steps(), 1'000'000u);
    (void)constraint->mask();
    EXPECT_TRUE(constraint->spent().ok());
    EXPECT_FALSE(constraint->bounded());
  }
}

// The slow recogniser never merges readings, and gives the same masks.
TEST(GrammarWork, of_ambiguous_rules_leaves_the_masks_as_they_are) {
  GrammarCase c(
      byteVocabulary({"ab", "ax", "xa", "yz", "abc", "x y", "()", "((", "))", "a)", "+a"}));
  for (const std::string& grammar :
       {kRules, kMoreRules,
        std::string("root ::= e\ne ::= t \"+\" e | t \"-\" e | t \".\" | t\n"
                    "t ::= \"(\" e \")\" | \"(\" e \"]\" | [a-c] | [b-d] t? | \"\"\n"),
        std::string("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root | \"(\" x \")\"?\n"
                    "x ::= y \"z\" | y [y-z] | \"a\" x y\ny ::= \"\" | \"a\" | \"a\" y \"a\"\n")}) {
    Scratch scratch(defaultAllocator(), size_t{16} << 20);
    Grammar parsed(&scratch);
    ASSERT_TRUE(readGbnf(grammar.data(), grammar.size(), c.log.log(), &parsed).ok());
    Constraint* const constraint = c.add();
    ASSERT_TRUE(constraint->compile(parsed, -1, c.log.log()).ok()) << c.log.errors();
    SlowRecogniser slow(parsed);
    std::mt19937 random(5);
    for (int walk = 0; walk < 8; ++walk) {
      constraint->restart();
      std::string text;
      for (int step = 0; step < 9 && !constraint->ended(); ++step) {
        const uint32_t* const mask = constraint->mask();
        for (int32_t id = 0; id + 1 < c.size(); ++id) {
          ASSERT_EQ(slow.begins(text + c.textOf(id)), bitOf(mask, id))
              << grammar << " after '" << text << "' token '" << c.textOf(id) << "'";
        }
        ASSERT_EQ(slow.matches(text), constraint->complete()) << grammar << " " << text;
        const std::vector<int32_t> ids = idsOf(mask, c.size() - 1);
        if (ids.empty()) {
          break;
        }
        const int32_t id = ids[random() % ids.size()];
        ASSERT_TRUE(constraint->accept(id));
        text += c.textOf(id);
      }
    }
  }
}

/// Says yes when it is asked the nth time.
struct Stopper {
  uint64_t left = UINT64_MAX;

  StopCheck stop() {
    return {[](void* self) { return static_cast<Stopper*>(self)->left-- == 0; }, this};
  }
};

TEST(GrammarWork, of_a_mask_ends_where_it_is_stopped) {
  GrammarCase& c = wordCase();
  const std::string text = everywhere(12, 20);
  Stopper stopper;
  Scratch scratch(defaultAllocator(), size_t{16} << 20);
  Grammar grammar(&scratch, stopper.stop());
  ASSERT_TRUE(readGbnf(text.data(), text.size(), c.log.log(), &grammar).ok());
  Constraint* const constraint = c.add();
  ASSERT_TRUE(constraint->compile(grammar, -1, c.log.log()).ok()) << c.log.errors();
  const std::vector<int32_t> expected = idsOf(constraint->mask(), c.size());
  ASSERT_FALSE(expected.empty());
  // It asks for every 2^20 steps.
  constraint->forget();
  ASSERT_TRUE(constraint->compile(grammar, -1, c.log.log()).ok());
  stopper.left = UINT64_MAX;
  (void)constraint->mask();
  const uint64_t asked = UINT64_MAX - stopper.left;
  EXPECT_GE(asked, constraint->steps() >> 20);
  EXPECT_GE(asked, 4u);
  for (uint64_t n = 0; n < asked; ++n) {
    stopper.left = UINT64_MAX;
    ASSERT_TRUE(constraint->compile(grammar, -1, c.log.log()).ok());
    stopper.left = n;
    EXPECT_TRUE(idsOf(constraint->mask(), c.size()).empty()) << n;
    EXPECT_EQ(ORIEL_ERROR_CANCELLED, constraint->spent().code());
    // Its position is unchanged.
    stopper.left = UINT64_MAX;
    EXPECT_EQ(expected, idsOf(constraint->mask(), c.size()));
    EXPECT_TRUE(constraint->accept(expected[0]));
  }
  stopper.left = 0;
  c.log.clear();
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, constraint->compile(grammar, -1, c.log.log()).code());
  EXPECT_EQ(0u, c.log.lines.size()) << c.log.errors();
}

}  // namespace
}  // namespace oriel_internal::test::test_grammar_work
