// What the tokenizer makes of files: good, odd and hostile ones.
#include <gtest/gtest.h>

#include <limits>

#include "support/tokenizer_case.h"
#include "support/vocabulary.h"

namespace oriel::test {
namespace {

using Ids = std::vector<int32_t>;

Vocabulary smallBpe() {
  Vocabulary v;
  v.add("<|endoftext|>", kControlType);
  v.add("a");
  v.add("b");
  v.add("\xC4\xA0");  // a space
  v.addMerge("a", "b");
  v.addMerge("\xC4\xA0", "ab");
  return v;
}

bool warns(const TokenizerCase& c, const std::string& part) {
  for (const CapturedLog::Line& line : c.log.lines) {
    if (line.level == ORIEL_LOG_WARNING && line.text.find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

void expectRefused(const GgufWriter& file, oriel_status code, const std::string& part) {
  TokenizerCase c(file.build());
  EXPECT_EQ(c.status.code(), code) << part;
  EXPECT_EQ(c.tokenizer, nullptr);
  EXPECT_TRUE(c.log.says(part)) << c.log.errors();
  EXPECT_EQ(c.log.lines.size(), 1u);
}

TEST(TokenizerFile, a_missing_key_is_refused_by_name) {
  for (const char* key :
       {"tokenizer.ggml.model", "tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    GgufWriter file = smallBpe().writer();
    file.removeKey(key);
    expectRefused(file, ORIEL_ERROR_FORMAT, key);
    file.addBool(key, true);  // of another type
    expectRefused(file, ORIEL_ERROR_FORMAT, key);
  }
  Vocabulary spm;
  spm.startSpm(true);
  GgufWriter file = spm.writer();
  file.removeKey("tokenizer.ggml.scores");
  expectRefused(file, ORIEL_ERROR_FORMAT, "tokenizer.ggml.scores");
}

TEST(TokenizerFile, arrays_of_another_length_or_type_are_refused) {
  GgufWriter file = smallBpe().writer();
  file.addInt32s("tokenizer.ggml.token_type", {1, 1});
  expectRefused(file, ORIEL_ERROR_FORMAT, "tokenizer.ggml.token_type has 2 entries for 6 tokens");
  file.addStrings("tokenizer.ggml.token_type", std::vector<std::string>(6, "x"));
  expectRefused(file, ORIEL_ERROR_FORMAT, "tokenizer.ggml.token_type");
  file = smallBpe().writer();
  file.addInt32s("tokenizer.ggml.tokens", {1, 1, 1, 1, 1, 1});
  expectRefused(file, ORIEL_ERROR_FORMAT, "tokenizer.ggml.tokens");
  file.addStrings("tokenizer.ggml.tokens", {});
  expectRefused(file, ORIEL_ERROR_FORMAT, "tokenizer.ggml.tokens");
  Vocabulary spm;
  spm.startSpm(true);
  spm.scores.push_back(0);
  expectRefused(spm.writer(), ORIEL_ERROR_FORMAT, "tokenizer.ggml.scores has 260 entries");
}

TEST(TokenizerFile, unknown_kinds_are_refused_by_name) {
  Vocabulary v = smallBpe();
  v.model = "bert\n";
  expectRefused(v.writer(), ORIEL_ERROR_UNSUPPORTED, "tokenizer.ggml.model is \"bert?\"");
  v.model = "gpt2";
  v.pre = "brand-new";
  expectRefused(v.writer(), ORIEL_ERROR_UNSUPPORTED, "tokenizer.ggml.pre is \"brand-new\"");
}

TEST(TokenizerFile, without_a_pre_tokenizer_gpt2_is_used_and_said) {
  for (const char* pre : {"", "default"}) {
    Vocabulary v = smallBpe();
    v.pre = pre;
    TokenizerCase c(v.writer().build());
    ASSERT_NE(c.tokenizer, nullptr);
    EXPECT_EQ(c.tokenizer->preTokenizer(), PreTokenizer::kGpt2);
    EXPECT_TRUE(warns(c, "gpt-2 is used"));
  }
}

TEST(TokenizerFile, too_long_a_token_is_refused) {
  Vocabulary v = smallBpe();
  v.add(std::string(kMaxTokenBytes, 'a'));
  EXPECT_TRUE(TokenizerCase(v.writer().build()).status.ok());
  v.add(std::string(kMaxTokenBytes + 1, 'a'));
  expectRefused(v.writer(), ORIEL_ERROR_UNSUPPORTED, "token 7 is 1025 bytes long");
}

TEST(TokenizerFile, too_many_tokens_are_refused) {
  GgufWriter file = smallBpe().writer();
  file.addStrings("tokenizer.ggml.tokens", std::vector<std::string>(kMaxVocabulary + 1));
  expectRefused(file, ORIEL_ERROR_UNSUPPORTED, "1048577 tokens");
}

TEST(TokenizerFile, merges_that_name_no_tokens_are_ignored_and_counted) {
  Vocabulary v = smallBpe();
  for (const char* merge : {"x y", "a x", "a a", "", " ", "a", "a ", " a", "a b c", "\xFF \xFF"}) {
    v.merges.push_back(merge);
  }
  TokenizerCase c(v.writer().build());
  ASSERT_NE(c.tokenizer, nullptr);
  EXPECT_TRUE(warns(c, "10 of 12 merges"));
  EXPECT_EQ(c.encode("ab ab"), (Ids{4, 5}));
}

TEST(TokenizerFile, of_repeated_merges_the_first_counts) {
  Vocabulary v;
  for (const char* token : {"a", "b", "c"}) {
    v.add(token);
  }
  v.addMerge("a", "b");
  v.addMerge("b", "c");
  v.merges.push_back("a b");
  TokenizerCase c(v.writer().build());
  EXPECT_EQ(c.encode("abc"), (Ids{3, 2}));
}

TEST(TokenizerFile, repeated_and_empty_tokens_do_no_harm) {
  Vocabulary v = smallBpe();
  v.add("");
  v.add("ab");
  v.add("", kControlType);
  TokenizerCase c(v.writer().build());
  ASSERT_NE(c.tokenizer, nullptr);
  EXPECT_EQ(c.encode("ab"), (Ids{7})) << "the last of equals";
  EXPECT_EQ(c.decode({6, 7, 8, 4}, true), "abab");
  EXPECT_EQ(c.tokenizer->find("", 0), -1);
}

TEST(TokenizerFile, tokens_made_to_collide_end_in_an_error_not_in_a_slow_search) {
  // 300 words that all belong in the same one of 1024 slots.
  Vocabulary v;
  for (int i = 0; v.tokens.size() <= IndexTable::kMaxProbes; ++i) {
    const std::string text = std::to_string(i);
    KeyHash hash(0);
    hash.add(text.data(), text.size());
    if (hash.end() % 1024 == 0) {
      v.add(text);
    }
  }
  expectRefused(v.writer(), ORIEL_ERROR_FORMAT, "slow to search");
  v.tokens.pop_back();
  v.types.pop_back();
  EXPECT_TRUE(TokenizerCase(v.writer().build()).status.ok());
}

TEST(TokenizerFile, ids_outside_the_vocabulary_are_ignored_and_said) {
  GgufWriter file = smallBpe().writer();
  file.addUint32("tokenizer.ggml.eos_token_id", 6);
  file.addUint32("tokenizer.ggml.bos_token_id", UINT32_MAX);
  file.addBool("tokenizer.ggml.add_bos_token", true);
  TokenizerCase c(file.build());
  ASSERT_NE(c.tokenizer, nullptr);
  EXPECT_TRUE(warns(c, "tokenizer.ggml.eos_token_id is 6"));
  EXPECT_EQ(c.tokenizer->eosId(), -1);
  EXPECT_EQ(c.tokenizer->bosId(), -1);
  EXPECT_FALSE(c.tokenizer->addBos());
  EXPECT_FALSE(c.tokenizer->isStop(-1));
  EXPECT_FALSE(c.tokenizer->isStop(6));
}

TEST(TokenizerFile, stop_tokens_are_eos_eot_and_the_known_names) {
  Vocabulary v = smallBpe();
  v.add("<|im_end|>", kUserType);
  v.add("</s>");
  v.add("<|eot_id|>", kControlType);
  v.add("<other>", kControlType);
  GgufWriter file = v.writer();
  file.addUint32("tokenizer.ggml.eos_token_id", 1);
  file.addUint32("tokenizer.ggml.eot_token_id", 2);
  TokenizerCase c(file.build());
  const std::vector<bool> expected = {true,  true, true,  false, false,
                                      false, true, false, true,  false};
  for (int32_t id = 0; id < 10; ++id) {
    EXPECT_EQ(c.tokenizer->isStop(id), expected[static_cast<size_t>(id)]) << id;
  }
  EXPECT_TRUE(c.tokenizer->isControl(6)) << "or a user could type it";
}

TEST(TokenizerFile, merges_never_make_a_control_token) {
  Vocabulary v;
  v.add("a");
  v.add("b");
  v.add("ab", kControlType);
  v.merges.push_back("a b");
  TokenizerCase c(v.writer().build());
  EXPECT_EQ(c.encode("ab"), (Ids{0, 1}));
  Vocabulary spm;
  spm.startSpm(false);
  spm.add("<s", kNormalType, 1.0f);
  spm.add("<", kNormalType, 1.0f);
  spm.add("s", kNormalType, 1.0f);
  spm.add(">", kNormalType, 1.0f);
  spm.add("\xE2\x96\x81");
  TokenizerCase s(spm.writer().build());
  EXPECT_EQ(s.encode("<s>"), (Ids{7, 3, 6}));
}

TEST(TokenizerFile, user_defined_tokens_are_recognised_in_any_text) {
  Vocabulary v = smallBpe();
  const int32_t tool = v.add("<tool>", kUserType);
  TokenizerCase c(v.writer().build());
  const TextRange literal = {0, 9};
  EncodeOptions options;
  options.literal = &literal;
  options.n_literal = 1;
  EXPECT_EQ(c.encode("ab<tool>b", options), (Ids{4, tool, 2}));
}

TEST(TokenizerFile, bytes_without_tokens_become_the_unknown_token_or_nothing) {
  Vocabulary v = smallBpe();
  EXPECT_EQ(TokenizerCase(v.writer().build()).encode("a?b"), (Ids{1, 2}));
  const int32_t unknown = v.add("<unk>", kUnknownType);
  GgufWriter file = v.writer();
  file.addUint32("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(unknown));
  EXPECT_EQ(TokenizerCase(file.build()).encode("a?b"), (Ids{1, unknown, 2}));
}

TEST(TokenizerFile, spm_without_byte_tokens_gives_unknown_once_a_character) {
  Vocabulary v;
  v.startSpm(false);
  v.add("\xE2\x96\x81");
  v.add("a");
  TokenizerCase c(v.writer().build());
  EXPECT_EQ(c.encode("a\xE2\x80\x9C\xE2\x80\x9D"), (Ids{3, 4, 0, 0}));
  EXPECT_EQ(c.decode({3, 4, 0}), "a");
}

TEST(TokenizerFile, spm_prefix_follows_the_file) {
  Vocabulary v;
  v.startSpm(true);
  const int32_t space = v.add("\xE2\x96\x81");
  const int32_t a = v.add("a");
  EncodeOptions options;
  options.special = true;
  options.bos = true;
  TokenizerCase with(v.writer().build());
  EXPECT_TRUE(with.tokenizer->addsSpacePrefix());
  EXPECT_EQ(with.encode("a</s>a", options), (Ids{1, space, a, 2, space, a}));
  EXPECT_EQ(with.encode("", options), (Ids{1}));
  EXPECT_EQ(with.decode({1, space, a}), "a");
  EXPECT_EQ(with.decode({1, space, a}, true), "<s> a");
  GgufWriter file = v.writer();
  file.addBool("tokenizer.ggml.add_space_prefix", false);
  file.addBool("tokenizer.ggml.add_bos_token", false);
  TokenizerCase without(file.build());
  EXPECT_EQ(without.encode("a</s>a", options), (Ids{a, 2, a}));
  EXPECT_EQ(without.decode({space, a}), " a");
}

TEST(TokenizerFile, a_byte_token_that_is_not_written_as_one_is_refused) {
  for (const char* text : {"<0xG0>", "<0x0>", "<0x000>", "a", ""}) {
    Vocabulary v;
    v.startSpm(true);
    v.add(text, kByteType);
    expectRefused(v.writer(), ORIEL_ERROR_FORMAT, "token 259 is a byte token");
  }
}

TEST(TokenizerFile, spm_scores_that_are_not_numbers_do_no_harm) {
  Vocabulary v;
  v.startSpm(true);
  for (const char* piece : {"\xE2\x96\x81", "a", "b", "ab", "ba"}) {
    v.add(piece, kNormalType, std::numeric_limits<float>::quiet_NaN());
  }
  TokenizerCase c(v.writer().build());
  EXPECT_EQ(c.decode(c.encode("abababba")), "abababba");
}

}  // namespace
}  // namespace oriel::test
