// Encoders: vectors and scores of whole texts against float64, many in a step and one alone; refused calls.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/api.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/model_mutants.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_encoders {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

using nlohmann::json;

// Keys and values are rounded to f16.
constexpr double kTolerance = 2e-3;
constexpr const char* kRanker = "models/bert-rank-labels.gguf";

Options encoderOptions(CapturedLog* log) {
  Options options = makeOptions(log);
  options.memory_bytes = 64u << 20;
  return options;
}

struct Embedded {
  oriel_status status = ORIEL_OK;
  std::vector<float> values;
  std::vector<uint32_t> tokens;
};

Embedded embedMany(const Loaded& loaded, const std::vector<oriel_text>& texts, uint32_t flags) {
  Embedded got;
  size_t needed = 0;
  got.tokens.resize(texts.size());
  const auto call = [&] {
    return oriel_embed_many(loaded.session.get(), ORIEL_POOLING_AUTO, flags, texts.data(),
                            texts.size(), got.values.data(), got.values.size(), &needed,
                            got.tokens.data());
  };
  got.status = call();
  if (got.status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    got.values.resize(needed);
    got.status = call();
  }
  return got;
}

oriel_text textOf(const std::vector<int32_t>& ids) {
  return {static_cast<const char*>(static_cast<const void*>(ids.data())),
          ids.size() * sizeof(int32_t), nullptr, 0};
}

oriel_text textOf(const std::string& text, const std::string* query = nullptr) {
  return {text.data(), text.size(), query != nullptr ? query->data() : nullptr,
          query != nullptr ? query->size() : 0};
}

std::vector<float> embedOne(const Loaded& loaded, const std::string& text, uint32_t flags) {
  return embedMany(loaded, {textOf(text)}, flags).values;
}

TEST(Encoders, queries_and_documents_have_the_words_of_the_models_page) {
  struct Words {
    const char* model;
    std::string query, document;
  };
  const std::string instruct =
      "Instruct: Given a web search query, retrieve relevant passages that answer the query\n";
  for (const Words& words :
       {Words{"gemma-embedding", "task: search result | query: ", "title: none | text: "},
        Words{"nomic-bert", "search_query: ", "search_document: "},
        Words{"qwen3-embedding", instruct + "Query:", ""},
        Words{"lfm2-embedding", "query: ", "document: "}, Words{"bert-mean", "", ""}}) {
    ORIEL_NEED_DATA(model, "models/" + std::string(words.model) + ".gguf");
    CapturedLog log;
    const Loaded loaded = load(model, encoderOptions(&log));
    ASSERT_TRUE(loaded.session) << log.errors();
    const std::string text = "the cache {document}";
    const std::vector<float> query = embedOne(loaded, words.query + text, 0);
    const std::vector<float> document = embedOne(loaded, words.document + text, 0);
    EXPECT_FALSE(query.empty());
    EXPECT_EQ(query, embedOne(loaded, text, ORIEL_EMBED_QUERY)) << words.model;
    EXPECT_EQ(document, embedOne(loaded, text, ORIEL_EMBED_DOCUMENT)) << words.model;
  }
}

class GoldenEncoders : public testing::TestWithParam<const char*> {};

RUNS_ON(kOneDevice, "gemma_embedding", "nomic_bert_moe");
TEST_P(GoldenEncoders, equal_float64_together_and_alone) {
  const std::string name = GetParam();
  ORIEL_NEED_DATA(model, "models/" + name + ".gguf");
  ORIEL_NEED_DATA(golden, "embeddings/" + name + ".json");
  CapturedLog log;
  const Loaded loaded = load(model, encoderOptions(&log));
  ASSERT_TRUE(loaded.session) << log.errors();
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> want;
  const json expected = readJson(golden);
  for (const json& one : expected["texts"]) {
    ids.push_back(one["ids"].get<std::vector<int32_t>>());
    want.push_back(base64As<float>(one["exact"]["embedding_f32_b64"].get<std::string>()));
  }
  const bool ranks = name.find("rank") != std::string::npos;
  const uint32_t flags = ORIEL_EMBED_IDS | (ranks ? ORIEL_EMBED_SCORES : ORIEL_EMBED_RAW);
  std::vector<oriel_text> texts;
  for (const std::vector<int32_t>& one : ids) {
    texts.push_back(textOf(one));
  }
  const Embedded all = embedMany(loaded, texts, flags);
  ASSERT_EQ(ORIEL_OK, all.status) << log.errors();
  const size_t cols = want[0].size();
  ASSERT_EQ(all.values.size(), texts.size() * cols);
  for (size_t i = 0; i < texts.size(); ++i) {
    const Embedded alone = embedMany(loaded, {texts[i]}, flags);
    ASSERT_EQ(ORIEL_OK, alone.status);
    const std::vector<float> row(all.values.begin() + static_cast<std::ptrdiff_t>(i * cols),
                                 all.values.begin() + static_cast<std::ptrdiff_t>((i + 1) * cols));
    EXPECT_EQ(all.tokens[i], ids[i].size());
    EXPECT_LT(relativeL2(row, want[i]), kTolerance) << "text " << i;
    EXPECT_LT(relativeL2(alone.values, row), 1e-4) << "text " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenEncoders,
                         testing::Values("bert-cls", "bert-mean", "bert-rank", "bert-rank-labels",
                                         "eurobert", "gemma-embedding", "jina-bert-v2",
                                         "jina-bert-v2-code", "jina-bert-v3", "lfm2-embedding",
                                         "llama-embed", "modern-bert", "modern-bert-rank",
                                         "neo-bert", "nomic-bert", "nomic-bert-moe",
                                         "qwen3-embedding", "qwen3-rank"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Encoders, many_texts_are_one_call_with_progress_and_cancel) {
  ORIEL_NEED_DATA(model, kRanker);
  CapturedLog log;
  struct Seen {
    uint64_t done = 0, total = 0;
    int calls = 0, cancel_at = 0;
  } seen;
  oriel_session_options options = ORIEL_SESSION_OPTIONS_INIT;
  options.progress_user = &seen;
  options.progress = [](uint64_t done, uint64_t total, void* user) {
    Seen& of = *static_cast<Seen*>(user);
    of.done = done;
    of.total = total;
    return ++of.calls == of.cancel_at ? 1 : 0;
  };
  Loaded loaded;
  const Options load_options = encoderOptions(&log);
  oriel_model* made = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_model_load(model.c_str(), &load_options, &made)) << log.errors();
  loaded.model.reset(made);
  oriel_session* session = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(made, &options, &session)) << log.errors();
  loaded.session.reset(session);
  const std::string query = "what is it";
  const std::string text(126, 'a');
  const std::vector<oriel_text> texts(512, textOf(text, &query));
  const Embedded all = embedMany(loaded, texts, ORIEL_EMBED_SCORES);
  ASSERT_EQ(ORIEL_OK, all.status) << log.errors();
  uint64_t tokens = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    tokens += all.tokens[i];
    EXPECT_NEAR(all.values[3 * i], all.values[0], 1e-4);
  }
  EXPECT_EQ(tokens, seen.done);
  EXPECT_EQ(tokens, seen.total);
  EXPECT_GT(seen.calls, 8);
  seen.calls = 0;
  seen.cancel_at = 2;
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, embedMany(loaded, texts, ORIEL_EMBED_SCORES).status);
  seen.cancel_at = 0;
  EXPECT_EQ(all.values, embedMany(loaded, texts, ORIEL_EMBED_SCORES).values);
}

TEST(Encoders, a_text_that_is_too_long_is_named_before_any_is_read) {
  ORIEL_NEED_DATA(model, kRanker);
  CapturedLog log;
  const Loaded loaded = load(model, encoderOptions(&log));
  ASSERT_TRUE(loaded.session) << log.errors();
  const std::vector<int32_t> fits(256, 7), longer(257, 7), wrong = {1, 360};
  const uint32_t flags = ORIEL_EMBED_SCORES | ORIEL_EMBED_IDS;
  EXPECT_EQ(ORIEL_OK, embedMany(loaded, {textOf(fits)}, flags).status) << log.errors();
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, embedMany(loaded, {textOf(fits), textOf(longer)}, flags).status);
  EXPECT_TRUE(log.says("text 2 of 2: the text has 257 tokens, the session sees 256"));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, embedMany(loaded, {textOf(wrong)}, flags).status);
  EXPECT_TRUE(log.says("token id 360"));
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT,
            embedMany(loaded, {textOf(std::string())}, ORIEL_EMBED_SCORES).status);
  EXPECT_TRUE(log.says("the text has no tokens"));
}

TEST(Encoders, each_kind_of_model_says_what_it_is) {
  ORIEL_NEED_DATA(model, kRanker);
  CapturedLog log;
  const Loaded ranker = load(model, encoderOptions(&log));
  ASSERT_TRUE(ranker.session) << log.errors();
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, oriel_chat_add(ranker.session.get(), "user", "Hello", 5));
  EXPECT_TRUE(log.says("a model that ranks texts (bert), which writes no text"));
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, embedMany(ranker, {textOf(std::string("a"))}, 0).status);
  EXPECT_TRUE(log.says("ranks texts (bert) rather than embeds them"));
  EXPECT_EQ(ORIEL_OK, oriel_session_reset(ranker.session.get()));
  const Loaded chat = load(kTrained, sessionOptions(&log));
  ASSERT_TRUE(chat.session) << log.errors();
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
            embedMany(chat, {textOf(std::string("a"))}, ORIEL_EMBED_SCORES).status);
  EXPECT_TRUE(log.says("a chat model (llama), which gives no scores"));
}

// Invalid files, made from a valid file by overwriting bytes of its header.
using BadEncoders = BadFiles;

std::vector<uint8_t> withBytes(std::vector<uint8_t> file, const std::string& after, size_t skip,
                               const std::vector<uint8_t>& bytes) {
  const auto found = std::search(file.begin(), file.end(), after.begin(), after.end());
  EXPECT_NE(found, file.end()) << after;
  std::copy(bytes.begin(), bytes.end(), found + static_cast<std::ptrdiff_t>(after.size() + skip));
  return file;
}

TEST_F(BadEncoders, are_refused_in_one_line) {
  ORIEL_NEED_DATA(model, kRanker);
  const std::vector<uint8_t> sound = readBytes(model);
  constexpr size_t kDims = 4;  // after a tensor's name: their number, then 8 bytes each
  const auto refused = [&](const std::vector<uint8_t>& bytes, oriel_status status,
                           const std::string& part) {
    write(bytes);
    expectRefused(path_, status, part);
  };
  refused(withBytes(sound, "blk.1.attn_output_norm.", 0, {'w', 'e', 'i', 'g', 'h', 'l'}),
          ORIEL_ERROR_UNSUPPORTED, "blk.1.attn_output_norm.weighl");
  refused(withBytes(sound, "cls.output.", 0, {'w', 'e', 'i', 'g', 'h', 'l'}),
          ORIEL_ERROR_UNSUPPORTED, "cls.output.weighl");
  refused(withBytes(sound, "token_types.weight", kDims + 8, {3}), ORIEL_ERROR_FORMAT,
          "token_types.weight has 3 rows of 32 values");
  refused(withBytes(sound, "cls.output.bias", kDims, {2}), ORIEL_ERROR_FORMAT, "cls.output.bias");
  refused(withBytes(sound, "position_embd.weight", kDims + 8, {255}), ORIEL_ERROR_FORMAT,
          "position_embd.weight");
  // The value's type, then the value.
  refused(withBytes(sound, "tokenizer.ggml.token_type_count", 4, {0xFF, 0xFF, 0xFF, 0x7F}),
          ORIEL_ERROR_UNSUPPORTED, "token_type_count");
  refused(withBytes(sound, "tokenizer.ggml.token_type_count", 4, {0, 0, 0, 0}), ORIEL_ERROR_FORMAT,
          "token_type_count");
  refused(withBytes(sound, "bert.pooling_type", 4, {1, 0, 0, 0}), ORIEL_ERROR_FORMAT,
          "cls.output.weight");
  refused(withBytes(sound, "bert.context_length", 4, {0, 0, 0, 0}), ORIEL_ERROR_FORMAT,
          "context_length");
}

}  // namespace
}  // namespace oriel_internal::test::test_encoders

namespace oriel_internal::test::test_qwen2 {

// Biased keys: the architecture, and the guard that keeps low-bit formats away from them. The reference model has key
// biases of 30 to 150.

namespace {

constexpr size_t kEverything = 1u << 30;  // a window

RUNS_ON(kOneDevice);
TEST(Qwen2, logits_equal_the_float64_reference) {
  ORIEL_NEED_DATA(model, "models/qwen2.gguf");
  ORIEL_NEED_LOGITS(prompts, "qwen2");
  Options options = makeOptions();
  options.set("kv", "f16");
  const Loaded loaded = load(model, options);
  for (const nlohmann::json& prompt : prompts) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    const std::vector<int32_t> ids = prompt["ids"];
    ASSERT_EQ(ORIEL_OK,
              oriel_session_append(loaded.session.get(), ids.data(), ids.size(), nullptr, nullptr));
    // Large keys lose most of the accuracy when they are rounded to f16: up to 1.1e-2 in these logits.
    Float64Model exact(model), rounded(model, true);
    std::vector<double> exact_logits, rounded_logits;
    for (const int32_t id : ids) {
      exact_logits = exact.step(id, 0, kEverything);
      rounded_logits = rounded.step(id, 0, kEverything);
    }
    EXPECT_LT(relativeL2(exact_logits, base64As<float>(prompt["exact"]["logits_f32_b64"])), 1e-6);
    EXPECT_LT(relativeL2(logitsOf(loaded), rounded_logits), 2e-3);
  }
}

TEST(Qwen2, the_guard_keeps_divergence_small_whatever_is_requested) {
  ORIEL_NEED_DATA(model, "models/qwen2.gguf");
  ORIEL_NEED_DATA(golden, "kv_quant/qwen2.json");
  std::vector<int32_t> ids = readJson(golden)["chunks"][0];
  ids.resize(std::min<size_t>(ids.size(), 300));
  Options options = makeOptions();
  options.window_tokens = static_cast<uint32_t>(ids.size());
  options.set("kv", "f16");
  const auto reference = evaluate(load(model, options), ids);
  for (const oriel_kv_format k : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
    for (const oriel_kv_format v : {ORIEL_KV_INT8, ORIEL_KV_INT4}) {
      setFormats(&options, k, v);
      const Loaded loaded = load(model, options);
      EXPECT_EQ(2u, planOf(loaded)["raised_by_bias"].size());
      EXPECT_LT(meanDivergence(reference, evaluate(loaded, ids)), 0.02) << "k " << k << " v " << v;
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_qwen2
