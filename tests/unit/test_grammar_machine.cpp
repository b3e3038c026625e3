// Constraints: masks against a slow recogniser, and invariants for every grammar and vocabulary.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/grammar_case.h"
#include "support/target.h"
#include "text/unicode.h"

namespace oriel_internal::test::test_grammar_machine {
namespace {

/// 32-bit numbers on every platform.
struct Random {
  explicit Random(uint32_t seed) : engine(seed) {}
  uint32_t operator()() { return static_cast<uint32_t>(engine()); }
  std::mt19937 engine;
};

const std::vector<std::string> kTokens = {"ab",
                                          "abc",
                                          "aab",
                                          "ba",
                                          "b\"",
                                          "\"a",
                                          "\"\"",
                                          "\\\"",
                                          "\n",
                                          "a\n",
                                          "é",
                                          "日本",
                                          "日",
                                          "\xC3",
                                          "\xA9",
                                          "\xE6\x97",
                                          "\xA5z",
                                          "a\xC3",
                                          "🙂",
                                          "\xF0\x9F",
                                          "0",
                                          "12",
                                          "1a",
                                          "[[",
                                          "]]",
                                          "[a]",
                                          "a]",
                                          "]a",
                                          "{\"",
                                          "\":",
                                          ",\"",
                                          "aaaaaaaa",
                                          "abababababababababababababababababababab",
                                          "a",
                                          "b",
                                          "ab",
                                          "a-b",
                                          "A",
                                          "Ab é",
                                          "é\"",
                                          "ééé",
                                          "  ",
                                          " a",
                                          "true",
                                          "\xFF",
                                          "日\"",
                                          "\xED\xA0\x80",
                                          "\xC0\x80",
                                          "aé日"};

int32_t stopOf(const GrammarCase& c) { return c.size() - 1; }

/// Every bit of the mask against the recogniser. How many were set.
size_t compareMask(const GrammarCase& c, Constraint* constraint, SlowRecogniser* slow,
                   const std::string& text) {
  const uint32_t* const mask = constraint->mask();
  size_t set = 0;
  for (int32_t id = 0; id < c.size(); ++id) {
    const std::string piece = c.textOf(id);
    const bool allowed =
        id == stopOf(c) ? slow->matches(text) : !piece.empty() && slow->begins(text + piece);
    EXPECT_EQ(allowed, bitOf(mask, id)) << "after '" << text << "' token '" << piece << "'";
    set += allowed ? 1 : 0;
  }
  for (uint32_t bit = static_cast<uint32_t>(c.size()) % 32; bit != 0 && bit < 32; ++bit) {
    EXPECT_FALSE(bitOf(mask, c.size() / 32 * 32 + static_cast<int32_t>(bit)));
  }
  EXPECT_EQ(slow->matches(text), constraint->complete());
  return set;
}

/// Random expressions over few letters, so that texts meet.
class RandomGrammar {
 public:
  RandomGrammar(Random* random, Grammar* grammar) : random_(*random), g_(*grammar) {
    const uint32_t n_rules = 1 + random_() % 4;
    for (uint32_t i = 0; i < n_rules; ++i) {
      rules_.push_back(g_.newRule());
    }
    for (uint32_t i = 0; i < n_rules; ++i) {
      g_.define(rules_[i], expression(4));
    }
    g_.setRoot(rules_[0]);
  }

 private:
  ExprId letters() {
    const char* const kTexts[] = {"a", "b", "ab", "\"", "é", "日本", "1", "a\n", "]", "[", "🙂"};
    switch (random_() % 6) {
      case 0: {
        const CharRange any = {0, 0};
        return g_.chars(&any, random_() % 2, true);
      }
      case 1: {
        const CharRange not_in[] = {{'"', '"'}, {'\\', '\\'}, {0, 0x1F}};
        return g_.chars(not_in, 3, true);
      }
      case 2: {
        const CharRange range = {'a', random_() % 2 == 0 ? uint32_t{'z'} : 0xE9u};
        return g_.chars(&range, 1);
      }
      case 3: {
        const CharRange ranges[] = {{0x65E5, 0x672C}, {'0', '9'}, {0x1F300, 0x1F642}};
        return g_.chars(ranges, 1 + random_() % 3);
      }
      default:
        return g_.text(kTexts[random_() % 11]);
    }
  }
  ExprId expression(uint32_t depth) {
    if (depth == 0) {
      return letters();
    }
    switch (random_() % 10) {
      case 0:
        return random_() % 8 == 0 ? g_.never() : g_.empty();
      case 1:
      case 2:
      case 3:
        return g_.sequence(expression(depth - 1), expression(depth - 1));
      case 4:
      case 5:
        return g_.choice(expression(depth - 1), expression(depth - 1));
      case 6: {
        const uint32_t min = random_() % 3;
        return g_.repeat(expression(depth - 1), min, min + random_() % 4);
      }
      case 7:
        return g_.repeat(expression(depth - 1), random_() % 3, kAnyTimes);
      case 8:
        // After a letter, to avoid left recursion mostly.
        return g_.sequence(letters(), g_.rule(rules_[random_() % rules_.size()]));
      default:
        return letters();
    }
  }

  Random& random_;
  Grammar& g_;
  std::vector<RuleId> rules_;
};

TEST(GrammarMask, equals_the_slow_recogniser_for_random_grammars) {
  GrammarCase c(byteVocabulary(kTokens));
  Random random(7);
  int compiled = 0;
  int masks = 0;
  size_t bits = 0;
  Constraint* const constraint = c.add();
  const int rounds = allCases() ? 400 : 60;
  for (int round = 0; round < rounds; ++round) {
    Scratch scratch(defaultAllocator(), 16 << 20);
    Grammar grammar(&scratch);
    RandomGrammar(&random, &grammar);
    const Status status = constraint->compile(grammar, -1, c.log.log());
    if (!status.ok()) {
      ASSERT_EQ(ORIEL_ERROR_ARGUMENT, status.code());  // left recursion, or nothing fits
      continue;
    }
    ++compiled;
    SlowRecogniser slow(grammar);
    for (int walk = 0; walk < 2; ++walk) {
      constraint->restart();
      std::string text;
      for (int step = 0; step < 8 && text.size() < 40; ++step) {
        bits += compareMask(c, constraint, &slow, text);
        ASSERT_FALSE(testing::Test::HasFailure()) << "round " << round;
        ++masks;
        std::vector<int32_t> ids = idsOf(constraint->mask(), c.size());
        if (ids.empty()) {
          ASSERT_TRUE(constraint->ended());
          break;
        }
        const int32_t id = ids[random() % ids.size()];
        if (id == stopOf(c)) {
          ASSERT_TRUE(constraint->accept(id));
          EXPECT_TRUE(constraint->ended());
          break;
        }
        ASSERT_TRUE(constraint->accept(id));
        text += c.textOf(id);
      }
    }
  }
  EXPECT_GT(compiled, 250 * rounds / 400);
  EXPECT_GT(masks, 1000 * rounds / 400);
  EXPECT_GT(bits, 20000u * static_cast<size_t>(rounds) / 400);
}

// Tokens that the mask lacks are refused, and nothing changes.
TEST(GrammarMask, accept_takes_what_the_mask_has) {
  GrammarCase c(byteVocabulary(kTokens));
  Constraint* const constraint = c.gbnf("root ::= \"{\\\"\" [^\"]{2,5} \"\\\":\" [0-9]+ \"}\"");
  Random random(3);
  while (!constraint->ended()) {
    const uint32_t* mask = constraint->mask();
    const std::vector<int32_t> ids = idsOf(mask, c.size());
    ASSERT_FALSE(ids.empty());
    for (int32_t id = -2; id < c.size() + 2; ++id) {
      if (id < 0 || id >= c.size() || !bitOf(mask, id)) {
        EXPECT_FALSE(constraint->accept(id));
        EXPECT_EQ(ids, idsOf(constraint->mask(), c.size()));
      }
    }
    ASSERT_TRUE(constraint->accept(ids[random() % ids.size()]));
  }
}

// Every length from none to the longest, where plain tokens are counted.
TEST(GrammarMask, strings_of_bounded_length_take_tokens_of_that_length) {
  std::vector<std::string> tokens = kTokens;
  for (size_t n = 1; n < 70; ++n) {
    tokens.emplace_back(n, 'x');
    tokens.push_back(std::string(n - 1, 'y') + "é");
    tokens.push_back(std::string(n - 1, 'y') + "\"");
  }
  GrammarCase c(byteVocabulary(tokens));
  for (const uint32_t most : {0u, 1u, 2u, 3u, 7u, 31u, 32u, 33u, 40u, 64u}) {
    const std::string count = std::to_string(most);
    Scratch scratch(defaultAllocator(), 16 << 20);
    Grammar grammar(&scratch);
    const std::string text = "root ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\n\"){" +
                             std::to_string(most / 2) + "," + count + "} \"\\\"\"";
    ASSERT_TRUE(readGbnf(text.data(), text.size(), c.log.log(), &grammar).ok());
    Constraint* const constraint = c.add();
    ASSERT_TRUE(constraint->compile(grammar, -1, c.log.log()).ok()) << c.log.errors();
    SlowRecogniser slow(grammar);
    for (const std::string& begin : std::vector<std::string>{"", "\"", "\"a", "\"\xE6\x97"}) {
      constraint->restart();
      if (constraint->acceptText(begin.data(), begin.size()) == begin.size()) {
        compareMask(c, constraint, &slow, begin);
      }
    }
  }
}

TEST(GrammarMask, kinds_of_characters_that_a_pattern_lacks_are_kept_out) {
  std::vector<std::string> tokens = kTokens;
  for (const char* more : {"Abc", "a1", "a_b", "a.b", "a b", "x+y", "ü", "aü", "1.5", "__", "a@b",
                           "@", ".com", "Ab", "a\tb", "\x7F", "a\x7F"}) {
    tokens.emplace_back(more);
  }
  GrammarCase c(byteVocabulary(tokens));
  for (const char* const grammar : {
           "root ::= [a-z]+",
           "root ::= [a-zA-Z0-9._-]+ \"@\" [a-z0-9-]+ (\".\" [a-z]{2,})+",
           "root ::= [^@]+ \"@\" [^@]+",
           "root ::= [a-z][a-z0-9_]*",
           "root ::= [a-y ]{3,9} [A-Z]",
           "root ::= [^\\n]* \"\\n\"",
           "root ::= ([^a] [^b])*",
           "root ::= [\\x80-\\U0010FFFF]+",
           "root ::= [a-z\\u00E0-\\u00FF]* \"!\"",
           "root ::= \"a\"* [a-z]* \"é\"",
       }) {
    Scratch scratch(defaultAllocator(), 16 << 20);
    Grammar parsed(&scratch);
    ASSERT_TRUE(readGbnf(grammar, std::strlen(grammar), c.log.log(), &parsed).ok());
    Constraint* const constraint = c.add();
    ASSERT_TRUE(constraint->compile(parsed, -1, c.log.log()).ok());
    SlowRecogniser slow(parsed);
    Random random(11);
    std::string text;
    for (int step = 0; step < 12 && !constraint->ended(); ++step) {
      compareMask(c, constraint, &slow, text);
      const std::vector<int32_t> ids = idsOf(constraint->mask(), stopOf(c));
      ASSERT_FALSE(ids.empty());
      const int32_t id = ids[random() % ids.size()];
      ASSERT_TRUE(constraint->accept(id));
      text += c.textOf(id);
    }
  }
}

TEST(GrammarMask, only_what_is_text_or_ends_the_reply_may_come) {
  Vocabulary vocabulary;
  vocabulary.startSpm(true);
  const int32_t ordinary = vocabulary.add("\xE2\x96\x81yes");
  const int32_t twin = vocabulary.add("\xE2\x96\x81yes", kUserType);
  const int32_t user = vocabulary.add("yes", kUserType);
  const int32_t control = vocabulary.add("<ctl>", kControlType);
  const int32_t empty = vocabulary.add("", kNormalType);
  const int32_t turn = vocabulary.add("<|im_end|>", kControlType);
  const int32_t extra = vocabulary.add("no", kNormalType);
  GrammarCase c(vocabulary);
  Constraint* const constraint = c.gbnf("root ::= \" \"? \"yes\" [^x]*", extra);
  const uint32_t* mask = constraint->mask();
  EXPECT_TRUE(bitOf(mask, ordinary));
  EXPECT_TRUE(bitOf(mask, twin));
  EXPECT_TRUE(bitOf(mask, user));
  EXPECT_TRUE(bitOf(mask, 3 + 'y'));
  EXPECT_FALSE(bitOf(mask, 3 + 'x'));
  for (const int32_t id : {0, 1, 2, control, empty, turn, extra}) {
    EXPECT_FALSE(bitOf(mask, id)) << id;
    EXPECT_FALSE(constraint->accept(id)) << id;
  }
  EXPECT_FALSE(constraint->complete());
  ASSERT_TRUE(constraint->accept(user));
  EXPECT_TRUE(constraint->complete());
  EXPECT_FALSE(constraint->ended());
  mask = constraint->mask();
  EXPECT_TRUE(bitOf(mask, ordinary));
  EXPECT_TRUE(bitOf(mask, turn));
  EXPECT_TRUE(bitOf(mask, extra));
  EXPECT_FALSE(bitOf(mask, control));
  EXPECT_FALSE(bitOf(mask, 1));
  ASSERT_TRUE(constraint->accept(3 + 0xC3));  // the first byte of a character
  EXPECT_FALSE(constraint->complete());
  mask = constraint->mask();
  EXPECT_FALSE(bitOf(mask, turn));
  EXPECT_FALSE(bitOf(mask, extra));
  EXPECT_TRUE(bitOf(mask, 3 + 0xA9));
  EXPECT_FALSE(bitOf(mask, ordinary));
  ASSERT_TRUE(constraint->accept(3 + 0xA9));
  ASSERT_TRUE(constraint->accept(turn));
  EXPECT_TRUE(constraint->ended());
  EXPECT_FALSE(constraint->accept(ordinary));
  EXPECT_TRUE(idsOf(constraint->mask(), c.size()).empty());
  constraint->restart();
  EXPECT_FALSE(constraint->ended());
  EXPECT_TRUE(bitOf(constraint->mask(), ordinary));
}

TEST(GrammarMask, a_vocabulary_without_the_bytes_that_come_next_is_stuck_and_says_so) {
  GrammarCase c(byteVocabulary({"a", "ab", "x"}, false));
  Constraint* const constraint = c.gbnf("root ::= \"a\" (\"b\" | \"c\")");
  EXPECT_FALSE(constraint->stuck());
  ASSERT_TRUE(constraint->accept(0));
  EXPECT_TRUE(idsOf(constraint->mask(), c.size()).empty());
  EXPECT_TRUE(constraint->stuck());
  EXPECT_FALSE(constraint->ended());
  constraint->restart();
  ASSERT_TRUE(constraint->accept(1));
  EXPECT_TRUE(constraint->ended());
  EXPECT_FALSE(constraint->stuck());
}

TEST(GrammarMask, a_mask_that_was_kept_is_the_mask_that_is_made) {
  GrammarCase c(byteVocabulary(kTokens));
  const std::string grammar =
      "root ::= v\nv ::= \"[\" (v (\",\" v)*)? \"]\" | \"\\\"\" [^\"\\n]* \"\\\"\" | [0-9]{1,3}\n";
  Constraint* const first = c.gbnf(grammar);
  Random random(5);
  std::vector<int32_t> taken;
  for (int step = 0; step < 60; ++step) {
    Constraint* const fresh = c.gbnf(grammar);
    for (const int32_t id : taken) {
      ASSERT_TRUE(fresh->accept(id));
    }
    const std::vector<int32_t> ids = idsOf(fresh->mask(), c.size());
    ASSERT_EQ(ids, idsOf(first->mask(), c.size()));
    ASSERT_EQ(ids, idsOf(first->mask(), c.size()));
    const int32_t id = ids[random() % ids.size()];
    if (id == stopOf(c) || first->ended()) {
      break;
    }
    ASSERT_TRUE(first->accept(id));
    taken.push_back(id);
  }
  EXPECT_GT(taken.size(), 5u);
}

// At any depth: while there is room to close everything open.
TEST(GrammarDepth, recursion_never_stalls) {
  GrammarCase c(byteVocabulary({"[[[[", "[[[[[[[[[[[[[[[[[[[[[", "]]]]", "[]"}));
  for (const char* const grammar : {
           "root ::= \"[\" (root (\",\" root)*)? \"]\"",
           "root ::= a\na ::= \"[\" b \"]\" | \"x\"\nb ::= a \".\" | a \"!\" a",
       }) {
    Constraint* const constraint = c.gbnf(grammar);
    Random random(1);
    size_t opened = 0;
    std::string text;
    while (!constraint->ended()) {
      ASSERT_LT(text.size(), 5000u);
      std::vector<int32_t> ids = idsOf(constraint->mask(), c.size());
      ASSERT_FALSE(ids.empty()) << text;
      std::vector<int32_t> opening;
      for (const int32_t id : ids) {
        const std::string piece = c.textOf(id);
        if (!piece.empty() && piece.find_first_not_of('[') == std::string::npos) {
          opening.push_back(id);
        }
      }
      if (!opening.empty()) {
        ids = opening;
      }
      const int32_t id = ids[random() % ids.size()];
      if (id == stopOf(c)) {
        break;
      }
      ASSERT_TRUE(constraint->accept(id));
      text += c.textOf(id);
      opened += static_cast<size_t>(std::count(text.begin(), text.end(), '['));
      if (text.size() > 3000) {
        break;
      }
    }
    EXPECT_GT(opened, 100u);
    EXPECT_GT(text.size(), 400u);
  }
}

TEST(GrammarDepth, a_grammar_whose_shortest_text_is_too_deep_is_refused) {
  GrammarCase c(byteVocabulary({}));
  std::string grammar = "root ::= r0\n";
  for (int i = 0; i < 400; ++i) {
    grammar += "r" + std::to_string(i) + " ::= \"(\" r" + std::to_string(i + 1) + " \")\"\n";
  }
  grammar += "r400 ::= \"x\"\n";
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, c.compileGbnf(c.add(), grammar).code());
  EXPECT_TRUE(c.log.says("nests deeper")) << c.log.errors();
}

// Sets that are dropped and made again behave as they did.
TEST(GrammarMemory, full_memory_changes_no_mask) {
  GrammarCase c(byteVocabulary(kTokens));
  const std::string grammars[] = {
      "root ::= ([a-c]{1,3000} \"]\"){1,9}",
      "root ::= v\nv ::= \"[\" (v (\",\" v)*)? \"]\" | \"\\\"\" ([^\"\\n] | \"\\\\\" "
      "[\"\\\\n]){0,2500} "
      "\"\\\"\" | [0-9]{1,1000}\n",
  };
  for (const std::string& grammar : grammars) {
    // Room for a few hundred sets, and for all of them.
    Constraint* const small = c.add(StateSets::kLeastBytes + 160 * 1024);
    Constraint* const large = c.add(size_t{16} << 20);
    ASSERT_TRUE(c.compileGbnf(small, grammar).ok()) << c.log.errors();
    ASSERT_TRUE(c.compileGbnf(large, grammar).ok()) << c.log.errors();
    Random random(9);
    for (int step = 0; step < 4000 && !large->ended(); ++step) {
      const uint32_t* const a = small->mask();
      const uint32_t* const b = large->mask();
      ASSERT_TRUE(std::equal(a, a + maskWords(static_cast<uint64_t>(c.size())), b)) << step;
      std::vector<int32_t> ids = idsOf(b, stopOf(c));
      ASSERT_FALSE(ids.empty());
      int32_t id = ids[random() % ids.size()];
      // Seldom what closes, so that it goes on.
      for (int i = 0; i < 9 && c.textOf(id).find_first_of("]\"") != std::string::npos; ++i) {
        id = ids[random() % ids.size()];
      }
      ASSERT_TRUE(small->accept(id));
      ASSERT_TRUE(large->accept(id));
      ASSERT_EQ(large->complete(), small->complete());
    }
  }
}

TEST(StateSets, keep_changes_nothing_but_numbers) {
  Scratch scratch(defaultAllocator(), 16 << 20);
  Grammar grammar(&scratch);
  const std::string text =
      "root ::= (\"a\" root \"b\" | \"a\" root \"c\" | \"a\"* x)?\nx ::= \"(\" root \")\" "
      "[d-f]{2,7}\n";
  CapturedLog log;
  ASSERT_TRUE(readGbnf(text.data(), text.size(), log.log(), &grammar).ok());
  std::vector<uint64_t> memory(1 << 17);
  Automaton automaton;
  ASSERT_TRUE(
      compileAutomaton(grammar, log.log(), memory.data(), memory.size() * 8, &automaton).ok());
  std::vector<uint64_t> room(StateSets::kLeastBytes / 8);
  std::vector<uint64_t> other_room(1 << 20);
  auto sets = std::make_unique<StateSets>();
  auto other = std::make_unique<StateSets>();
  EXPECT_FALSE(sets->init(&automaton, room.data(), room.size() * 8 - 16));
  ASSERT_TRUE(sets->init(&automaton, room.data(), room.size() * 8));
  ASSERT_TRUE(other->init(&automaton, other_room.data(), other_room.size() * 8));
  Random random(2);
  for (int walk = 0; walk < 40; ++walk) {
    StateSets::Id at = sets->start();
    StateSets::Id reference = other->start();
    for (int step = 0; step < 200; ++step) {
      std::string possible;
      for (int byte = 0; byte < 256; ++byte) {
        const StateSets::Id next = sets->step(at, static_cast<uint8_t>(byte));
        const StateSets::Id expected = other->step(reference, static_cast<uint8_t>(byte));
        ASSERT_NE(StateSets::kFull, next);
        ASSERT_NE(StateSets::kFull, expected);
        ASSERT_EQ(expected == 0, next == 0);
        if (next != 0) {
          ASSERT_EQ(other->complete(expected), sets->complete(next));
          ASSERT_EQ(other->goesOn(expected), sets->goesOn(next));
          possible += static_cast<char>(byte);
        }
      }
      if (possible.empty()) {
        break;
      }
      const uint8_t byte = static_cast<uint8_t>(possible[random() % possible.size()]);
      at = sets->step(at, byte);
      reference = other->step(reference, byte);
      StateSets::Id kept[2] = {at, sets->start()};
      if (random() % 3 == 0) {
        sets->keep(kept, 1 + random() % 2);
        at = kept[0];
      }
    }
  }
}

#ifdef __GLIBC__
TEST(GrammarMemory, nothing_is_allocated_while_masks_are_made) {
  GrammarCase c(byteVocabulary(kTokens));
  Constraint* const constraint = c.gbnf(
      "root ::= v\nv ::= \"[\" (v (\",\" v)*)? \"]\" | \"\\\"\" [^\"\\n]{0,100} \"\\\"\" | "
      "[0-9]{1,3}\n");
  Random random(4);
  const size_t before = mallinfo2().uordblks;
  size_t after = before;
  for (int step = 0; step < 500; ++step) {
    const uint32_t* const mask = constraint->mask();
    int32_t id = static_cast<int32_t>(random() % static_cast<uint32_t>(c.size()));
    while (!bitOf(mask, id)) {
      id = (id + 1) % c.size();
    }
    if (constraint->stuck() || !constraint->accept(id) || constraint->ended()) {
      constraint->restart();
    }
    after = std::max(after, static_cast<size_t>(mallinfo2().uordblks));
  }
  EXPECT_EQ(before, after);
}
#endif

TEST(GrammarMemory, measured_bytes_depend_on_the_vocabulary_alone) {
  GrammarCase small(byteVocabulary({}));
  GrammarCase large(byteVocabulary(kTokens));
  (void)small.gbnf("root ::= \"a\"");
  const uint64_t first = small.constraint_bytes;
  (void)small.gbnf("root ::= [a-z]{1,3000}");
  EXPECT_EQ(first, small.constraint_bytes);
  (void)large.gbnf("root ::= \"a\"");
  EXPECT_GT(large.trie_bytes, small.trie_bytes);
  EXPECT_LT(first, kConstraintBytes + 64 * 1024);
}

TEST(GrammarMemory, nothing_is_left_of_what_was_forgotten) {
  GrammarCase c(byteVocabulary({"secret"}));
  const std::string grammar = "root ::= [a-z]* (\"(\" root \")\")*";
  Constraint* const constraint = c.gbnf(grammar);
  const std::vector<int32_t> at_first = idsOf(constraint->mask(), c.size());
  ASSERT_EQ(8u, constraint->acceptText("secret((", 8));
  (void)constraint->mask();
  constraint->forget();
  EXPECT_EQ(at_first, idsOf(constraint->mask(), c.size()));
  EXPECT_TRUE(constraint->inForce());
  constraint->release();
  EXPECT_FALSE(constraint->inForce());
  EXPECT_FALSE(constraint->accept(1));
  EXPECT_EQ(0u, constraint->acceptText("a", 1));
}

TEST(GrammarText, text_is_accepted_as_far_as_it_may_come) {
  GrammarCase c(byteVocabulary({}));
  Constraint* const constraint = c.gbnf("root ::= \"<call>\" [0-9]+ \"</call>\"");
  EXPECT_EQ(7u, constraint->acceptText("<call>1x", 8));
  EXPECT_EQ(9u, constraint->acceptText("23</call>!", 10));
  EXPECT_TRUE(constraint->ended());
}

// A tree over the vocabulary must have every token, and no other text.
TEST(TokenTrie, has_every_token_once) {
  GrammarCase c(byteVocabulary(kTokens));
  const auto tokensOf = [](const TokenTrie::Tree& tree) {
    std::map<int32_t, std::string> found;
    std::vector<std::pair<uint32_t, std::string>> open;  // end, text
    for (uint32_t i = 0; i < tree.count; ++i) {
      while (!open.empty() && open.back().first == i) {
        open.pop_back();
      }
      const TokenTrie::Node& node = tree.nodes[i];
      const std::string text =
          (open.empty() ? "" : open.back().second) + static_cast<char>(node.byte());
      if (node.token() != TokenTrie::Node::kNoToken) {
        EXPECT_TRUE(found.emplace(static_cast<int32_t>(node.token()), text).second);
      }
      open.emplace_back(i + node.skip(), text);
    }
    return found;
  };
  const std::map<int32_t, std::string> all = tokensOf(c.trie->all());
  const std::map<int32_t, std::string> odd = tokensOf(c.trie->odd());
  for (int32_t id = 0; id < stopOf(c); ++id) {
    const std::string text = c.textOf(id);
    ASSERT_EQ(1u, all.count(id));
    EXPECT_EQ(text, all.at(id));
    size_t bad = 0;
    const bool is_odd =
        !isValidUtf8(text.data(), text.size(), &bad) || text.size() > 32 ||
        std::any_of(text.begin(), text.end(), [](char byte) {
          return byte == '"' || byte == '\\' || (byte >= 0 && byte < 0x20) || byte == 0x7F;
        });
    EXPECT_EQ(is_odd ? 1u : 0u, odd.count(id)) << text;
    EXPECT_TRUE(odd.count(id) == 0 || odd.at(id) == text);
  }
  EXPECT_EQ(0u, all.count(stopOf(c)));
}

}  // namespace
}  // namespace oriel_internal::test::test_grammar_machine

namespace oriel_internal::test::test_grammar_work {

// The cost of a mask for any grammar: steps are counted, bounded in total, and can be stopped.

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
    const int walks = allCases() ? 8 : 3;
    for (int walk = 0; walk < walks; ++walk) {
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
  // In an ordinary run at the first and the last question, and at some between.
  const uint64_t step = allCases() ? 1 : std::max<uint64_t>(1, (asked - 1) / 4);
  for (uint64_t n = (asked - 1) % step; n < asked; n += step) {
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
