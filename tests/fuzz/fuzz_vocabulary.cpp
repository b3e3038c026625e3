// Hostile metadata of tokenizers of every kind: built or refused, and if built, sound with any text. The text is the
// key
// "fuzz.text" of the file.
#include "fuzz/fuzz.h"
#include "fuzz/text_rules.h"
#include "fuzz/use_model.h"
#include "support/tokenizer_case.h"

namespace oriel_internal::fuzz::fuzz_vocabulary {
namespace {

using test::Vocabulary;

constexpr char kTextKey[] = "fuzz.text";
constexpr char kText[] =
    " ab  aab <|im_start|>A\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 12<|im_end|>\n\n'll \xff<0x41> "
    "\xe2\x96\x81 a";

// Refused in one line, equal both times.
void expectOneLine(const test::TokenizerCase& built) {
  size_t errors = 0;
  for (const test::CapturedLog::Line& line : built.log.lines) {
    errors += line.level == ORIEL_LOG_ERROR ? 1 : 0;
    EXPECT_EQ(std::string::npos, line.text.find('\n')) << line.text;
    EXPECT_LE(line.text.size(), kMaxMessageBytes);
  }
  EXPECT_EQ(built.status.ok() ? 0u : 1u, errors) << built.log.errors();
  EXPECT_EQ(built.status.ok(), built.tokenizer != nullptr);
  EXPECT_TRUE(built.status.ok() || built.status.code() == ORIEL_ERROR_FORMAT ||
              built.status.code() == ORIEL_ERROR_UNSUPPORTED)
      << built.status.code();
}

void expectSound(const Tokenizer& tokenizer, test::TokenizerCase* built) {
  EXPECT_EQ(built->planned_bytes, built->used_bytes);
  const auto n_vocab = static_cast<int32_t>(tokenizer.vocabSize());
  EXPECT_TRUE(n_vocab >= 1 && n_vocab <= static_cast<int32_t>(kMaxVocabulary));
  EXPECT_TRUE(tokenizer.bosId() >= -1 && tokenizer.bosId() < n_vocab);
  EXPECT_TRUE(tokenizer.eosId() >= -1 && tokenizer.eosId() < n_vocab);
  for (int32_t id = 0; id < n_vocab; ++id) {
    const Tokenizer::Piece piece = tokenizer.piece(id, true);
    ASSERT_LE(piece.bytes, kMaxTokenBytes);
    const int32_t found = tokenizer.find(piece.data, piece.bytes);
    EXPECT_TRUE(found >= -1 && found < n_vocab);
    if (found >= 0) {
      const Tokenizer::Piece other = tokenizer.piece(found, true);
      EXPECT_EQ(std::string(piece.data, piece.bytes), std::string(other.data, other.bytes));
    }
  }
  EXPECT_EQ(0u, tokenizer.piece(n_vocab, true).bytes);
  EXPECT_EQ(0u, tokenizer.piece(-1, true).bytes);
}

GgufParts vocabularyOf(const Vocabulary& v) {
  const std::vector<uint8_t> bytes = v.writer().build();
  return takeGgufApart(bytes.data(), bytes.size());
}

void addText(const std::string& key, const std::string& text, GgufParts* parts) {
  test::ByteWriter value;
  value.putString(text);
  parts->keys.push_back({key, static_cast<uint32_t>(test::ValueType::kString), value.bytes});
}

Vocabulary smallBpe(const std::string& pre) {
  Vocabulary v;
  v.pre = pre;
  for (const char* token : {"a", "b", "A", "<", "|", ">", "1", "2", "'", "l", "\xc4\xa0",
                            "\xc4\x8a", "\xc3\x83", "\xc2\xa4", "\xc3\xa2"}) {
    v.add(token);
  }
  v.addMerge("a", "b");
  v.addMerge("a", "ab");
  v.addMerge("\xc4\xa0", "a");
  v.addMerge("\xc3\x83", "\xc2\xa4");
  v.addMerge("\xc4\x8a", "\xc4\x8a");
  v.add("<|im_start|>", test::kControlType);
  v.add("<|im_end|>", test::kControlType);
  v.add("<|im", test::kUserType);
  v.add("<unk>", test::kUnknownType);
  v.add("  ", test::kUserType);
  v.add("unused", test::kUnusedType);
  return v;
}

Vocabulary smallSpm(bool with_bytes, bool by_rank) {
  Vocabulary v;
  v.startSpm(with_bytes);
  v.model = by_rank ? "gemma4" : "llama";
  v.add("\xe2\x96\x81");
  v.add("\n");
  for (const char* token : {"a", "b", "1", "<", "|", "\xc3\xa4"}) {
    v.add(token);
  }
  if (by_rank) {
    v.addMerge("a", "b");
    v.addMerge("\xe2\x96\x81", "a");
    v.addMerge("\n", "\n");
    v.addMerge("\xe2\x96\x81", "\xe2\x96\x81");
  } else {
    v.add("ab", test::kNormalType, -1);
    v.add(
        "\xe2\x96\x81"
        "a",
        test::kNormalType, -2);
    v.add("\xe2\x96\x81\xe2\x96\x81", test::kNormalType, -3);
    v.add("aab", test::kNormalType, -1.5f);
  }
  v.add("<|im_start|>", test::kControlType);
  v.add("<end_of_turn>", test::kUserType);
  v.add("<|im_end|>", test::kUserType);
  v.add("</s>", test::kNormalType);
  return v;
}

}  // namespace

ORIEL_FUZZ(vocabulary) {
  const ModelInput input(data, size);
  const GgufParts parts = takeGgufApart(input.header.data(), input.header.size());
  test::TokenizerCase built(input.header);
  expectOneLine(built);
  if (built.tokenizer == nullptr) {
    return;
  }
  pastFirstCheck();
  built.log.clear();
  expectSound(*built.tokenizer, &built);
  TextCase given;
  given.text = parts.textOf(kTextKey);
  given.text = given.text.empty() ? kText : given.text;
  given.options.special = (input.choices & 1) != 0;
  given.options.bos = (input.choices & 2) != 0;
  given.options.eos = (input.choices & 4) != 0;
  given.options.continues = (input.choices & 8) != 0;
  given.capacity = 1 + (input.choices >> 4 & 15);
  given.cut = input.choices >> 8;
  (void)checkText(&built, given);
}

ORIEL_FUZZ_SEEDS(vocabulary) {
  std::vector<GgufParts> all;
  for (const char* pre : {"", "gpt-2", "qwen2", "llama-bpe", "tekken", "gpt-4o", "deepseek-llm",
                          "superbpe", "minicpm5"}) {
    all.push_back(vocabularyOf(smallBpe(pre)));
  }
  for (const bool with_bytes : {false, true}) {
    for (const bool by_rank : {false, true}) {
      all.push_back(vocabularyOf(smallSpm(with_bytes, by_rank)));
    }
  }
  uint32_t choices = 0;
  for (GgufParts& parts : all) {
    addText(kTextKey, kText, &parts);
    if (choices % 2 == 1) {
      for (const char* key :
           {"bos_token_id", "eos_token_id", "unknown_token_id", "eot_token_id", "eom_token_id"}) {
        parts.keys.push_back({std::string("tokenizer.ggml.") + key, 4, {2, 0, 0, 0}});
      }
      for (const char* key : {"add_bos_token", "add_eos_token", "add_space_prefix"}) {
        parts.keys.push_back({std::string("tokenizer.ggml.") + key, 7, {1}});
      }
    }
    seeds->push_back(modelInput(choices * 37, parts));
    ++choices;
  }
  // Some rules depend on the architecture, e.g. Phi 3 or Qwen.
  for (const char* architecture : {"phi3", "qwen2", "gemma3"}) {
    GgufParts parts = vocabularyOf(smallSpm(true, false));
    parts.keys.front().value.assign(8, 0);
    parts.keys.erase(parts.keys.begin());
    addText("general.architecture", architecture, &parts);
    seeds->push_back(modelInput(choices++, parts));
  }
}

ORIEL_FUZZ_MUTATE(vocabulary) { return mutateModel(data, size, max_size, seed, Care::kTokenizer); }

}  // namespace oriel_internal::fuzz::fuzz_vocabulary
