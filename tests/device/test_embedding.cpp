// Embeddings against float64, for any architecture, pooling and chunking.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "support/against_float64.h"
#include "support/random_families.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_embedding {
namespace {

// Same as for logits of these families: keys and values are rounded to f16.
constexpr double kTolerance = 2.5e-3;
constexpr uint32_t kSinks = 4;
constexpr uint32_t kWindow = 120;
const char* const kText = "How far is it to Samarkand, and who goes there on foot in spring?";

struct Embedded {
  oriel_status status = ORIEL_OK;
  std::vector<float> values;
  uint32_t tokens = 0;
};

Embedded embed(const Loaded& loaded, const std::string& text,
               oriel_pooling pooling = ORIEL_POOLING_AUTO, bool normalised = true) {
  const uint32_t flags = normalised ? 0 : ORIEL_EMBED_RAW;
  Embedded embedded;
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_embed(loaded.session.get(), ORIEL_POOLING_AUTO, 0,
                                                      "a", 1, nullptr, 0, &needed, nullptr));
  embedded.values.resize(needed);
  embedded.status = oriel_embed(loaded.session.get(), pooling, flags, text.data(), text.size(),
                                embedded.values.data(), needed, &needed, &embedded.tokens);
  EXPECT_EQ(embedded.values.size(), needed);
  EXPECT_EQ(0u, statsOf(loaded).position);
  return embedded;
}

double length(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) {
    squares += double{value} * double{value};
  }
  return std::sqrt(squares);
}

/// Rows of the last norm in float64, up to the first unclear choice (support/against_float64.h).
std::vector<std::vector<double>> exactNorms(const std::string& path,
                                            const std::vector<int32_t>& ids) {
  Float64Model model(path);
  std::vector<std::vector<double>> rows;
  for (const int32_t id : ids) {
    (void)model.step(id, kSinks, kWindow);
    if (model.leastMargin() < kLeastMargin) {
      break;
    }
    rows.push_back(model.lastNorm());
  }
  return rows;
}

std::vector<double> pooled(const std::vector<std::vector<double>>& rows, oriel_pooling pooling) {
  if (pooling != ORIEL_POOLING_MEAN) {
    return pooling == ORIEL_POOLING_LAST ? rows.back() : rows.front();
  }
  std::vector<double> mean(rows.front().size());
  for (const auto& row : rows) {
    for (size_t c = 0; c < mean.size(); ++c) {
      mean[c] += row[c] / static_cast<double>(rows.size());
    }
  }
  return mean;
}

class EmbeddedFamilies : public testing::TestWithParam<FamilyParam> {
 protected:
  TemporaryModel file_{GetParam()->model};
};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "gemma4");
TEST_P(EmbeddedFamilies, vectors_equal_float64) {
  const Loaded whole = load(file_.path(), windowOptions(kSinks, kWindow, 64));
  ASSERT_TRUE(whole.session);
  std::string text = kText;
  const std::vector<int32_t> ids = tokens(whole, text, ORIEL_TEXT_BOS);
  const auto rows = exactNorms(file_.path(), ids);
  text.resize(text.size() - (ids.size() - rows.size()));  // one token per byte
  ASSERT_GE(text.size(), 12u) << "too few choices are clear, take another seed";
  ASSERT_EQ(rows.size(), tokens(whole, text, ORIEL_TEXT_BOS).size());
  for (const uint32_t chunk : {1u, 7u, 64u}) {
    const Loaded loaded = load(file_.path(), windowOptions(kSinks, kWindow, chunk));
    ASSERT_TRUE(loaded.session);
    for (const oriel_pooling pooling :
         {ORIEL_POOLING_MEAN, ORIEL_POOLING_LAST, ORIEL_POOLING_FIRST}) {
      const Embedded got = embed(loaded, text, pooling, false);
      ASSERT_EQ(ORIEL_OK, got.status);
      EXPECT_EQ(rows.size(), got.tokens);
      EXPECT_LT(relativeL2(got.values, pooled(rows, pooling)), kTolerance)
          << "pooling " << pooling << " chunk " << chunk;
      const Embedded unit = embed(loaded, text, pooling);
      EXPECT_NEAR(1, length(unit.values), 1e-6);
      std::vector<double> scaled(got.values.begin(), got.values.end());
      for (double& value : scaled) {
        value /= length(got.values);
      }
      EXPECT_LT(relativeL2(unit.values, scaled), 1e-6);
    }
  }
}

std::vector<FamilyParam> embeddedFamilies() {
  static const RandomFamily llama{"llama", RandomLlama()};
  std::vector<FamilyParam> families = familyParams();
  families.push_back(&llama);
  return families;
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddedFamilies, testing::ValuesIn(embeddedFamilies()),
                         familyName);

TEST(Embedding, what_the_file_says_is_what_happens) {
  struct Case {
    int type;
    oriel_pooling same;
  };
  for (const Case c :
       {Case{-1, ORIEL_POOLING_MEAN}, Case{0, ORIEL_POOLING_MEAN}, Case{1, ORIEL_POOLING_MEAN},
        Case{2, ORIEL_POOLING_FIRST}, Case{3, ORIEL_POOLING_LAST}}) {
    RandomLlama model;
    model.pooling_type = c.type;
    const TemporaryModel file(model);
    const Loaded loaded = load(file.path(), windowOptions(kSinks, kWindow, 8));
    ASSERT_TRUE(loaded.session);
    EXPECT_EQ(embed(loaded, kText, c.same).values, embed(loaded, kText).values) << c.type;
  }
  RandomLlama model;
  model.pooling_type = 5;
  const TemporaryModel file(model);
  const Loaded loaded = load(file.path(), windowOptions(kSinks, kWindow, 8));
  ASSERT_TRUE(loaded.session);
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, embed(loaded, kText).status);
  EXPECT_EQ(ORIEL_OK, embed(loaded, kText, ORIEL_POOLING_LAST).status) << "asked for by name";
}

TEST(Embedding, texts_end_with_eos_where_the_file_asks_for_it) {
  RandomLlama model;
  model.ends_texts = true;
  const TemporaryModel file(model);
  const Loaded loaded = load(file.path(), windowOptions(kSinks, kWindow, 8));
  ASSERT_TRUE(loaded.session);
  std::vector<int32_t> ids = tokens(loaded, kText, ORIEL_TEXT_BOS);
  ids.push_back(static_cast<int32_t>(model.eos));
  const Embedded got = embed(loaded, kText, ORIEL_POOLING_LAST, false);
  EXPECT_EQ(ids.size(), got.tokens);
  EXPECT_LT(relativeL2(got.values, exactNorms(file.path(), ids).back()), kTolerance);
  // Nowhere else.
  ASSERT_EQ(ORIEL_OK, oriel_session_append_text(loaded.session.get(), kText, 10, ORIEL_TEXT_BOS));
  EXPECT_EQ(tokens(loaded, std::string(kText, 10), ORIEL_TEXT_BOS).size(),
            statsOf(loaded).position);
}

TEST(Embedding, sessions_are_empty_before_and_afterwards) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log, 200, 16));
  ASSERT_TRUE(loaded.session);
  const std::vector<int32_t> prompt = tokens(loaded, "Good morning", ORIEL_TEXT_BOS);
  ASSERT_EQ(ORIEL_OK, append(loaded, prompt));
  const std::vector<float> logits = logitsOf(loaded);
  size_t needed = 0;
  std::vector<float> values(4096);
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_embed(loaded.session.get(), ORIEL_POOLING_AUTO, 0, "a", 1,
                                           values.data(), values.size(), &needed, nullptr));
  EXPECT_EQ(prompt.size(), statsOf(loaded).position);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  const Embedded first = embed(loaded, kText);
  ASSERT_EQ(ORIEL_OK, first.status);
  EXPECT_EQ(first.values, embed(loaded, kText).values);
  ASSERT_EQ(ORIEL_OK, append(loaded, prompt));
  EXPECT_EQ(logits, logitsOf(loaded)) << "nothing of the text is left";
}

TEST(Embedding, ids_are_read_as_they_are) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log, 32, 16));
  ASSERT_TRUE(loaded.session);
  const auto of = [&](const std::vector<int32_t>& ids, size_t bytes) {
    Embedded embedded;
    size_t needed = 0;
    embedded.values.resize(4096);
    embedded.status =
        oriel_embed(loaded.session.get(), ORIEL_POOLING_AUTO, ORIEL_EMBED_IDS,
                    static_cast<const char*>(static_cast<const void*>(ids.data())), bytes,
                    embedded.values.data(), embedded.values.size(), &needed, &embedded.tokens);
    embedded.values.resize(needed);
    EXPECT_EQ(0u, statsOf(loaded).position);
    return embedded;
  };
  const auto whole = [&](const std::vector<int32_t>& ids) {
    return of(ids, ids.size() * sizeof(int32_t));
  };
  const Embedded text = embed(loaded, "Good morning");
  const Embedded same = whole(tokens(loaded, "Good morning", ORIEL_TEXT_BOS));
  ASSERT_EQ(ORIEL_OK, same.status) << log.errors();
  EXPECT_EQ(text.values, same.values);
  EXPECT_EQ(text.tokens, same.tokens);
  EXPECT_NE(text.values, whole({3, 5}).values);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, whole({}).status);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, whole({3, -1}).status);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, whole({3, INT32_MAX}).status);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, of({3, 5}, 7).status) << "part of an id";
  EXPECT_EQ(ORIEL_OK, whole(std::vector<int32_t>(36, 3)).status) << "as long as sinks and window";
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, whole(std::vector<int32_t>(37, 3)).status);
}

TEST(Embedding, refusals_leave_the_session_as_it_was) {
  CapturedLog log;
  const Loaded loaded = load(kTrained, sessionOptions(&log, 32, 16));
  ASSERT_TRUE(loaded.session);
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, embed(loaded, "").status);
  EXPECT_EQ(ORIEL_ERROR_TEXT, embed(loaded, "a\xff").status);
  const int none = 9;
  oriel_pooling unknown;
  std::memcpy(&unknown, &none,
              sizeof(unknown));  // casting a value outside the enum would be undefined
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, embed(loaded, "a", unknown).status);
  std::string text;
  while (tokens(loaded, text, ORIEL_TEXT_BOS).size() < 37) {
    text += "one ";
  }
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, embed(loaded, text).status);
  EXPECT_NE(std::string::npos, log.errors().find("sees 36")) << log.errors();
  while (tokens(loaded, text, ORIEL_TEXT_BOS).size() > 36) {
    text.pop_back();
  }
  EXPECT_EQ(ORIEL_OK, embed(loaded, text).status) << "as long as sinks and window";
  size_t needed = 0;
  std::vector<float> values(4096);
  EXPECT_EQ(ORIEL_ERROR_CANCELLED, cancelledBy(loaded.session.get(), [&] {
              return oriel_embed(loaded.session.get(), ORIEL_POOLING_AUTO, 0, text.data(),
                                 text.size(), values.data(), values.size(), &needed, nullptr);
            }));
  EXPECT_EQ(ORIEL_OK, embed(loaded, text).status);
}

}  // namespace
}  // namespace oriel_internal::test::test_embedding
