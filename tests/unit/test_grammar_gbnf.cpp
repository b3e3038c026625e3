// GBNF: accepted and refused texts, and errors for invalid grammars.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <random>

#include "support/files.h"
#include "support/grammar_case.h"
#include "support/timing.h"

namespace oriel_internal::test::test_grammar_gbnf {
namespace {

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

/// Byte by byte: the whole text is allowed, and may end.
bool accepts(Constraint* constraint, const std::string& text) {
  constraint->restart();
  return constraint->acceptText(text.data(), text.size()) == text.size() && constraint->complete();
}

class Gbnf : public testing::Test {
 protected:
  GrammarCase c{byteVocabulary({"ab", "abc", "\"", "é", "日本", "{\""})};
};

TEST_F(Gbnf, published_grammars_accept_and_reject_whole_outputs) {
  ORIEL_NEED_DATA(file, "schemas/gbnf.json");
  std::ifstream in(file);
  const nlohmann::json golden = nlohmann::json::parse(in);
  std::mt19937 random(1);
  for (const auto& entry : golden["grammars"]) {
    Constraint* const constraint = c.add();
    ASSERT_TRUE(c.compileGbnf(constraint, entry["grammar"]).ok()) << c.log.errors();
    for (const std::string text : entry["accept"]) {
      EXPECT_TRUE(accepts(constraint, text)) << entry["name"] << ": " << text;
      // The same as tokens, cut anywhere; then the end, and only there.
      constraint->restart();
      for (size_t at = 0; at < text.size();) {
        EXPECT_TRUE(constraint->mask() != nullptr);
        std::vector<int32_t> fitting;
        for (int32_t id = 0; id < c.size(); ++id) {
          const std::string piece = c.textOf(id);
          if (!piece.empty() && text.compare(at, piece.size(), piece) == 0) {
            EXPECT_TRUE(bitOf(constraint->mask(), id)) << text << " at " << at;
            fitting.push_back(id);
          }
        }
        const int32_t id = fitting[random() % fitting.size()];
        ASSERT_TRUE(constraint->accept(id));
        at += c.textOf(id).size();
      }
      EXPECT_TRUE(bitOf(constraint->mask(), c.tokens.tokenizer->eosId() >= 0
                                                ? c.tokens.tokenizer->eosId()
                                                : c.size() - 1));
    }
    for (const std::string text : entry["reject"]) {
      EXPECT_FALSE(accepts(constraint, text)) << entry["name"] << ": " << text;
    }
  }
  for (const auto& entry : golden["invalid_grammars"]) {
    c.log.clear();
    Constraint* const constraint = c.add();
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, c.compileGbnf(constraint, entry["grammar"]).code())
        << entry["why"];
    EXPECT_FALSE(constraint->inForce());
    EXPECT_NE("", c.log.errors());
  }
}

struct Wrong {
  const char* grammar;
  oriel_status status;
  const char* says;
};

TEST_F(Gbnf, what_is_wrong_is_said_with_its_line) {
  const Wrong kWrong[] = {
      {"root ::= \"a\"\n\nfoo = 1\n", ORIEL_ERROR_ARGUMENT, "line 3"},
      {"root ::= \"a\" bar\n# x\nfoo ::= [z-a]", ORIEL_ERROR_ARGUMENT, "line 3"},
      {"root ::= (\n\"a\" | (\n\"b\"", ORIEL_ERROR_ARGUMENT, "line 2"},
      {"root ::= \"a\" )", ORIEL_ERROR_ARGUMENT, "line 1"},
      {"root ::= \"a\" |\n  \"b\"\n  nosuchrule\n", ORIEL_ERROR_ARGUMENT, "line 3"},
      {"root ::= x\n\n\n", ORIEL_ERROR_ARGUMENT, "unknown rule 'x'"},
      {"root ::= \"\\x4\"", ORIEL_ERROR_ARGUMENT, "hexadecimal"},
      {"root ::= \"\\uD800\"", ORIEL_ERROR_ARGUMENT, "surrogate"},
      {"root ::= [a\n", ORIEL_ERROR_ARGUMENT, "no end"},
      {"root ::= [a", ORIEL_ERROR_ARGUMENT, "no end"},
      {"root ::= \"a", ORIEL_ERROR_ARGUMENT, "not closed"},
      {"root ::= \"a\\", ORIEL_ERROR_ARGUMENT, "escape"},
      {"root ::= \"a\"{3,2}", ORIEL_ERROR_ARGUMENT, "ends before it begins"},
      {"root ::= \"a\"{,2}", ORIEL_ERROR_ARGUMENT, "{m,n}"},
      {"root ::= \"a\"{2", ORIEL_ERROR_ARGUMENT, "{m,n}"},
      {"root ::= \"a\"{99999999999999999999}", ORIEL_ERROR_UNSUPPORTED, "line 1"},
      {"root ::= | * \"a\"", ORIEL_ERROR_ARGUMENT, "repetition of nothing"},
      {"root ::= \"a\"\nroot ::= \"b\"", ORIEL_ERROR_ARGUMENT, "defined in line 1"},
      {"root ::= <[12]>", ORIEL_ERROR_UNSUPPORTED, "tokens"},
      {"root ::= !<think>", ORIEL_ERROR_UNSUPPORTED, "tokens"},
      {"root ::= \"\xFF\"", ORIEL_ERROR_ARGUMENT, "UTF-8"},
      {"root ::= \xC3\xA9", ORIEL_ERROR_ARGUMENT, "means nothing"},
      {"", ORIEL_ERROR_ARGUMENT, "root"},
      {"root ::= a\na ::= b\nb ::= a | \"x\"", ORIEL_ERROR_ARGUMENT, "left recursion"},
      {"root ::= (\"\" | \"x\")* root \"y\" | \"z\"", ORIEL_ERROR_ARGUMENT, "left recursion"},
      {"root ::= \"(\" root \")\"", ORIEL_ERROR_ARGUMENT, "no text fits"},
      {"root ::= []", ORIEL_ERROR_ARGUMENT, "no text fits"},
  };
  for (const Wrong& wrong : kWrong) {
    c.log.clear();
    Constraint* const constraint = c.add();
    EXPECT_EQ(wrong.status, c.compileGbnf(constraint, wrong.grammar).code()) << wrong.grammar;
    EXPECT_TRUE(c.log.says(wrong.says)) << wrong.grammar << "\n" << c.log.errors();
  }
}

TEST_F(Gbnf, notation_beside_the_published_grammars) {
  struct Case {
    const char* grammar;
    std::vector<std::string> accept;
    std::vector<std::string> reject;
  };
  const Case kCases[] = {
      {"root ::= [-a] [a-] [\\]x]\r\n", {"-a]", "a-x"}, {"b-x", "aax]"}},
      {"root::=\"a\" * \"b\"", {"b", "aab"}, {"a"}},
      {"root ::= \"ab\"{2} c\nc ::= | \"c\"", {"abab", "ababc"}, {"abb", "ab"}},
      {"root ::= (\"a\" | \"b\"{ 2 , }) +", {"a", "bb", "abbb"}, {"", "ab"}},
      {"root ::= \"a\"{0} \"b\"{0,1}", {"", "b"}, {"a", "bb"}},
      {"root ::= (((\"a\")?)*)* \"b\"", {"b", "aab"}, {"a"}},
      {"root ::= [^\\x00-\\x7F]+", {"é", "日本", "🙂"}, {"a", "éa", ""}},
      {"root ::= .", {"a", "é", "日", "🙂", "\n"}, {"", "ab", "\xED\xA0\x80", "\xC0\x80"}},
      {"root ::= \"a\" # (\n  | \"b\"", {}, {}},
      {"a_1 ::= \"x\"\nroot ::= a_1 a-2\na-2 ::= \"y\" |\n\n# so\n \"z\"", {"xy", "xz"}, {"x"}},
  };
  for (const Case& entry : kCases) {
    if (entry.accept.empty()) {
      EXPECT_FALSE(c.compileGbnf(c.add(), entry.grammar).ok()) << entry.grammar;
      continue;
    }
    Constraint* const constraint = c.gbnf(entry.grammar);
    for (const std::string& text : entry.accept) {
      EXPECT_TRUE(accepts(constraint, text)) << entry.grammar << " " << text;
    }
    for (const std::string& text : entry.reject) {
      EXPECT_FALSE(accepts(constraint, text)) << entry.grammar << " " << text;
    }
  }
}

// Each ends with a status, in bounded time and memory.
TEST_F(Gbnf, a_byte_order_mark_is_skipped) {
  Constraint* const constraint = c.add();
  ASSERT_TRUE(c.compileGbnf(constraint, "\xEF\xBB\xBFroot ::= \"ab\"").ok()) << c.log.errors();
  EXPECT_TRUE(accepts(constraint, "ab"));
  EXPECT_FALSE(accepts(constraint,
                       "\xEF\xBB\xBF"
                       "ab"));
}

TEST_F(Gbnf, hostile_grammars_end_quickly) {
  std::string rules = "root ::= r0\n";
  for (int i = 0; i < 200000; ++i) {
    rules += "r" + std::to_string(i) + " ::= \"a\" r" + std::to_string(i + 1) + "\n";
  }
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 30000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  chain += "r30000 ::= \"a\"\n";
  std::string doubling = "root ::= d20\nd0 ::= \"\"\n";
  for (int i = 1; i <= 20; ++i) {
    const std::string last = "d" + std::to_string(i - 1);
    doubling += "d" + std::to_string(i) + " ::= " + last + " " + last + "\n";
  }
  // Many rules that are nothing but one, which has as many alternatives.
  std::string passing = "root ::= \"x\" a0";
  std::string alternatives = "r ::= [a]";
  std::string passed = "\n";
  for (int i = 0; i < 25000; ++i) {
    passing += " | \"x\" a" + std::to_string(i);
    passed += "a" + std::to_string(i) + " ::= r\n";
    alternatives += " | [" + std::string(1, static_cast<char>('a' + i % 2)) + "]";
  }
  passing += passed + alternatives;
  std::string nested = "\"a\"";
  for (int i = 0; i < 200; ++i) {
    nested = "(" + nested + "){1000}";
  }
  const std::string kHostile[] = {
      "root ::= " + repeated("(", 1000000),
      "root ::= " + repeated("(", 200) + "\"a\"" + repeated(")", 200),
      repeated("\"", 2000000),
      "root ::= " + repeated("\"\"", 1000000),
      "root ::= " + repeated("\"a\"", 600000),
      "root ::= \"" + repeated("a", 2000000) + "\"",
      "root ::= " + repeated("|", 2000000),
      "root ::= " + repeated("\"a\"|", 500000),
      "root ::= \"a\"{1000000}",
      "root ::= \"a\"" + repeated("{1000}", 5000),
      "root ::= \"a\"" + repeated("?", 1000000),
      "root ::= " + nested,
      "root ::= [" + repeated("a-z", 600000) + "]",
      "root ::= " + repeated("[^a]", 500000),
      repeated("\n", 2000000),
      repeated("#", 2000000),
      rules,
      chain,
      doubling,
      "root ::= (\"\" | \"\"){100000} \"a\"",
      passing,
      "root ::= \"" + repeated("\\", 2000001),
  };
  for (const std::string& text : kHostile) {
    Constraint* const constraint = c.add();
    Status status = kOk;
    const double seconds = processorSeconds([&] { status = c.compileGbnf(constraint, text); });
    EXPECT_LT(seconds, 5.0) << text.substr(0, 40);
    if (status.ok()) {
      EXPECT_FALSE(constraint->stuck()) << text.substr(0, 40);
    } else {
      EXPECT_TRUE(status.code() == ORIEL_ERROR_ARGUMENT || status.code() == ORIEL_ERROR_UNSUPPORTED)
          << text.substr(0, 40);
    }
  }
}

// With any amount of memory the reader and the compiler end with a status.
TEST_F(Gbnf, too_little_memory_is_a_status) {
  const std::string text =
      "root ::= \"{\" pair (\",\" pair)* \"}\"\npair ::= [a-zé]{1,40} \":\" (root | [0-9]+)\n";
  size_t most = 1024;
  for (; most < 64 << 20; most += most / 8) {
    Scratch scratch(defaultAllocator(), most);
    Grammar grammar(&scratch);
    Constraint* const constraint = c.add();
    Status status = readGbnf(text.data(), text.size(), c.log.log(), &grammar);
    if (status.ok()) {
      status = constraint->compile(grammar, -1, c.log.log());
    }
    if (status.ok()) {
      break;
    }
    ASSERT_EQ(ORIEL_ERROR_UNSUPPORTED, status.code()) << most;
  }
  EXPECT_LT(most, size_t{2} << 20);
}

}  // namespace
}  // namespace oriel_internal::test::test_grammar_gbnf
