// LoRA adapters and control vectors: logits as the float64 pass of the reference data has them, sessions that change
// adapters, and files that do not fit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "device/count_mallocs.h"
#include "support/against_float64.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/target.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_adapters {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

using Ids = std::vector<int32_t>;

constexpr const char* kModel = "models/llama-mha.gguf";
constexpr const char* kActivated = "lora/alora-llama.gguf";
constexpr const char* kWhole = "lora/llama-untied-f16.gguf";

std::string at(const std::string& relative, const std::string& scale) {
  return dataFile(relative) + ":" + scale;
}

Ids promptIds(size_t count) { return someIds(count, 200); }

/// Greedy tokens of all these sessions, in shared steps for several sessions.
std::vector<Ids> generateTogether(const std::vector<oriel_session*>& sessions, uint32_t tokens) {
  ReplyOptions options = greedyOptions(tokens);
  options.set("ignore_stop", true);
  std::vector<Ids> ids(sessions.size());
  std::vector<oriel_reply> replies(sessions.size());
  for (size_t i = 0; i < sessions.size(); ++i) {
    replies[i] = {
        sizeof(oriel_reply), sessions[i], &options, keepId, &ids[i], nullptr, 1, ORIEL_OK};
  }
  EXPECT_EQ(ORIEL_OK, oriel_reply_many(replies.data(), replies.size()));
  for (Ids& of : ids) {
    of.resize(std::min<size_t>(of.size(), tokens));
  }
  return ids;
}

oriel_status append(oriel_session* session, const Ids& ids) {
  return oriel_session_append(session, ids.data(), ids.size(), nullptr, nullptr);
}

std::vector<float> logitsAfter(oriel_session* session) {
  const float* values = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_OK, oriel_session_logits(session, &values, &count))
      << oriel_session_last_error(session);
  return {values, values + count};
}

class Adapters : public testing::Test {
 protected:
  Options options() { return sessionOptions(&log_, 200, 16); }
  Options with(const std::string& lora) { return std::move(options().add("lora", lora)); }
  CapturedLog log_;
};

struct Case {
  std::string name;
  double tolerance;
  /// Keys and values rounded to f16 alone move the logits by more than the tolerance: compare with the float64 pass
  /// that rounds them.
  bool against_rounded = false;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Logits after the prompt in float64, with the adapters merged.
std::vector<double> mergedLogits(const nlohmann::json& golden, const Ids& ids, bool rounds_cache) {
  Float64Model model(dataFile(golden["model"]), rounds_cache);
  for (const nlohmann::json& adapter : golden["adapters"]) {
    model.adapt(dataFile(adapter["file"]), adapter["scale"]);
  }
  std::vector<double> logits;
  for (const int32_t id : ids) {
    logits = model.step(id, 0, ids.size());
  }
  return logits;
}

class GoldenAdapters : public testing::TestWithParam<Case> {};

RUNS_ON(kOneDevice, "llama_untied_f16");
TEST_P(GoldenAdapters, logits_are_those_of_the_float64_pass) {
  ORIEL_NEED_DATA(path, "lora/" + GetParam().name + ".json");
  const nlohmann::json golden = readJson(path);
  CapturedLog log;
  Options options = sessionOptions(&log, 200, 16);
  for (const nlohmann::json& adapter : golden["adapters"]) {
    options.add("lora", at(adapter["file"], adapter["scale"].dump()));
  }
  for (const nlohmann::json& vector : golden.value("control_vectors", nlohmann::json::array())) {
    options.add("control_vector", at(vector["file"], vector["scale"].dump()));
  }
  if (golden.contains("layers") && !golden["layers"].is_null()) {
    options.set("control_layers", golden["layers"][0].dump() + "," + golden["layers"][1].dump());
  }
  const Loaded loaded = load(dataFile(golden["model"]), options);
  for (const nlohmann::json& prompt : golden["prompts"]) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded.session.get(), prompt["ids"])) << log.errors();
    const std::vector<float> want = base64As<float>(prompt["exact"]["logits_f32_b64"]);
    const std::vector<float> got = logitsOf(loaded);
    if (!GetParam().against_rounded) {
      EXPECT_LT(relativeL2(got, want), GetParam().tolerance) << prompt["ids"].size() << " tokens";
      continue;
    }
    EXPECT_LT(relativeL2(mergedLogits(golden, prompt["ids"], false), want), 1e-6);
    EXPECT_LT(relativeL2(got, mergedLogits(golden, prompt["ids"], true)), GetParam().tolerance)
        << prompt["ids"].size() << " tokens";
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* name : {"alora-llama-absent",
                           "alora-llama",
                           "alora-qwen3",
                           "cvec-llama-a",
                           "cvec-llama-b",
                           "cvec-llama-range",
                           "cvec-qwen3-a",
                           "cvec-qwen3-b",
                           "cvec-qwen3-range",
                           "gemma3-tied-embd",
                           "gemma3",
                           "gemma4-e",
                           "granitemoe",
                           "lfm2",
                           "llama-alpha0",
                           "llama-half",
                           "llama-negative",
                           "llama-noalpha",
                           "llama-three",
                           "llama-tied-embd",
                           "llama-two",
                           "llama-untied-f16",
                           "llama-zero",
                           "llama",
                           "lora-and-cvec-qwen3",
                           "phi3",
                           "qwen3",
                           "qwen35"}) {
    all.push_back({name, 2e-3});
  }
  all.push_back({"llama-adapter-q8_0", 5e-3});
  all.push_back({"llama-base-q8_0", 5e-3});
  // The cache moves the logits by 1.3e-2 (keys have biases up to 150), 2.4e-3 and 2.03e-3.
  for (const char* name : {"qwen2", "qwen3moe", "granitemoe-shared"}) {
    all.push_back({name, 2e-3, true});
  }
  return all;
}
std::string nameOf(const testing::TestParamInfo<Case>& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, GoldenAdapters, testing::ValuesIn(cases()), nameOf);

RUNS_ON(kOneDevice);
TEST_F(Adapters, scale_0_and_none_are_the_model_to_the_bit) {
  ORIEL_NEED_DATA(model, kModel);
  const Ids ids = promptIds(40);
  const Loaded plain = load(model, options());
  ASSERT_EQ(ORIEL_OK, append(plain.session.get(), ids));
  const std::vector<float> expected = logitsOf(plain);
  const Loaded zero = load(model, with(at(kWhole, "0")));
  ASSERT_EQ(ORIEL_OK, append(zero.session.get(), ids));
  EXPECT_EQ(expected, logitsOf(zero));
  const Loaded loaded = load(model, with(at(kWhole, "1")));
  ASSERT_EQ(ORIEL_OK, oriel_session_use_adapters(loaded.session.get(), "none"));
  ASSERT_EQ(ORIEL_OK, append(loaded.session.get(), ids));
  EXPECT_EQ(expected, logitsOf(loaded));
}

TEST_F(Adapters, a_model_without_any_has_no_bytes_for_them) {
  ORIEL_NEED_DATA(model, kModel);
  EXPECT_EQ(0u, planOf(load(model, options())).count("adapter_bytes"));
  const Loaded loaded = load(model, with(at(kWhole, "1")));
  EXPECT_LT(170'000u, planOf(loaded).count("adapter_bytes"));
}

// After each switch, a session has the same logits as a session that had these adapters from the beginning.
TEST_F(Adapters, switching_1000_times_is_as_a_fresh_session_and_allocates_nothing) {
  ORIEL_NEED_DATA(model, kModel);
  Options options = with(at(kWhole, "1"));
  options.add("lora", at("lora/bad/empty.gguf", "1"));
  options.set("sessions", 2u);
  const ModelPtr loaded = loadModel(model, options);
  ASSERT_NE(nullptr, loaded);
  const Ids ids = promptIds(24);
  const char* const choices[] = {"llama-untied-f16:0.5", "none", "llama-untied-f16",
                                 "empty,llama-untied-f16:-0.25"};
  std::vector<std::vector<float>> expected;
  for (const char* choice : choices) {
    SessionOptions session_options;
    session_options.set("adapters", choice);
    const SessionPtr fresh = newSession(loaded, &session_options);
    ASSERT_EQ(ORIEL_OK, append(fresh.get(), ids));
    expected.push_back(logitsAfter(fresh.get()));
  }
  const SessionPtr session = newSession(loaded);
  ASSERT_EQ(ORIEL_OK, append(session.get(), ids));
  uint64_t calls = 0;
  for (size_t i = 0; i < 1000; ++i) {
    const MallocCount mallocs;
    ASSERT_EQ(ORIEL_OK, oriel_session_use_adapters(session.get(), choices[i % 4]));
    calls += mallocs.calls();
    ASSERT_EQ(expected[i % 4], logitsAfter(session.get())) << "switch " << i;
  }
  EXPECT_TRUE(onVulkan() || calls == 0) << calls;
}

TEST_F(Adapters, sessions_with_different_adapters_do_not_disturb_each_other) {
  ORIEL_NEED_DATA(model, kModel);
  Options options = with(at(kWhole, "1"));
  options.set("sessions", 2u);
  const ModelPtr loaded = loadModel(model, options);
  ASSERT_NE(nullptr, loaded);
  SessionOptions without;
  without.set("adapters", "none");
  const SessionPtr a = newSession(loaded);
  const SessionPtr b = newSession(loaded, &without);
  const Ids ids = promptIds(24);
  std::vector<std::vector<int32_t>> alone;
  for (const SessionPtr* session : {&a, &b}) {
    ASSERT_EQ(ORIEL_OK, append(session->get(), ids));
    alone.push_back(generateTogether({session->get()}, 12)[0]);
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(session->get()));
    ASSERT_EQ(ORIEL_OK, append(session->get(), ids));
  }
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_EQ(alone, generateTogether({a.get(), b.get()}, 12));
}

// The tokens come turn by turn; with a later occurrence the adapter begins there.
TEST_F(Adapters, an_activated_adapter_begins_at_the_last_occurrence) {
  ORIEL_NEED_DATA(path, "lora/alora-llama.json");
  const nlohmann::json golden = readJson(path);
  const Loaded loaded = load(dataFile(kModel), with(at(kActivated, "1")));
  for (const nlohmann::json& prompt : golden["prompts"]) {
    const Ids ids = prompt["ids"];
    const std::vector<float> want = base64As<float>(prompt["exact"]["logits_f32_b64"]);
    for (size_t step = 1; step <= ids.size(); step = step * 2 + 1) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      for (size_t i = 0; i < ids.size(); i += step) {
        const Ids some(ids.begin() + static_cast<ptrdiff_t>(i),
                       ids.begin() + static_cast<ptrdiff_t>(std::min(i + step, ids.size())));
        ASSERT_EQ(ORIEL_OK, append(loaded.session.get(), some));
      }
      EXPECT_LT(relativeL2(logitsOf(loaded), want), 2e-3) << step << " tokens at a time";
    }
  }
}

// The adapter acts from an earlier occurrence on, or not at all.
TEST_F(Adapters, going_back_behind_an_invocation_is_as_if_it_had_not_come) {
  ORIEL_NEED_DATA(path, "lora/alora-llama.json");
  const nlohmann::json golden = readJson(path);
  for (const nlohmann::json& prompt : golden["prompts"]) {
    const Ids ids = prompt["ids"];
    const uint64_t from = prompt["alora_from"];
    Ids other(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(from));
    const Loaded loaded = load(dataFile(kModel), with(at(kActivated, "1")));
    const Loaded fresh = load(dataFile(kModel), with(at(kActivated, "1")));
    ASSERT_EQ(ORIEL_OK, append(loaded.session.get(), ids));
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), from));
    ASSERT_EQ(ORIEL_OK, append(loaded.session.get(), {7}));
    ASSERT_EQ(ORIEL_OK, append(fresh.session.get(), other));
    ASSERT_EQ(ORIEL_OK, append(fresh.session.get(), {7}));
    EXPECT_LT(relativeL2(logitsOf(loaded), logitsOf(fresh)), 1e-5) << from;
  }
}

TEST_F(Adapters, a_snapshot_goes_to_sessions_with_the_same_adapters_only) {
  ORIEL_NEED_DATA(model, kModel);
  const Loaded loaded = load(model, with(at(kWhole, "1")));
  oriel_session* const session = loaded.session.get();
  ASSERT_EQ(ORIEL_OK, append(session, promptIds(20)));
  const std::vector<float> logits = logitsOf(loaded);
  const std::vector<uint8_t> saved = savedBytes(session);
  ASSERT_EQ(ORIEL_OK, oriel_session_use_adapters(session, "llama-untied-f16:0.5"));
  EXPECT_EQ(ORIEL_ERROR_FORMAT, restoreFrom(session, saved));
  EXPECT_NE(std::string::npos, log_.errors().find("llama-untied-f16:1")) << log_.errors();
  EXPECT_NE(std::string::npos, log_.errors().find("llama-untied-f16:0.5")) << log_.errors();
  ASSERT_EQ(ORIEL_OK, oriel_session_use_adapters(session, nullptr));
  ASSERT_EQ(ORIEL_OK, restoreFrom(session, saved)) << log_.errors();
  EXPECT_EQ(logits, logitsOf(loaded));
}

TEST_F(Adapters, a_fork_has_the_adapters_of_its_source) {
  ORIEL_NEED_DATA(model, kModel);
  Options options = with(at(kWhole, "1"));
  options.set("sessions", 2u);
  const ModelPtr loaded = loadModel(model, options);
  ASSERT_NE(nullptr, loaded);
  SessionOptions half;
  half.set("adapters", "llama-untied-f16:0.5");
  const SessionPtr session = newSession(loaded, &half);
  ASSERT_EQ(ORIEL_OK, append(session.get(), promptIds(20)));
  const SessionPtr fork = forkOf(session);
  for (const SessionPtr* each : {&session, &fork}) {
    ASSERT_EQ(ORIEL_OK, append(each->get(), {5, 6}));
  }
  EXPECT_EQ(logitsAfter(session.get()), logitsAfter(fork.get()));
}

TEST_F(Adapters, weights_that_were_given_back_come_again) {
  ORIEL_NEED_DATA(model, kModel);
  const Loaded loaded = load(model, with(at(kWhole, "1")));
  const Ids ids = promptIds(20);
  ASSERT_EQ(ORIEL_OK, append(loaded.session.get(), ids));
  const std::vector<float> logits = logitsOf(loaded);
  ASSERT_EQ(ORIEL_OK, oriel_trim(loaded.model.get(), ORIEL_TRIM_WEIGHTS, nullptr));
  ASSERT_EQ(ORIEL_OK, oriel_resume(loaded.model.get(), nullptr, nullptr)) << log_.errors();
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK, append(loaded.session.get(), ids));
  EXPECT_EQ(logits, logitsOf(loaded));
}

TEST_F(Adapters, unknown_names_are_refused_with_those_that_there_are) {
  ORIEL_NEED_DATA(model, kModel);
  const Loaded loaded = load(model, with(at(kWhole, "1")));
  for (const char* name : {"style", "llama-untied-f16,style:2", "llama-untied-f16:x", ","}) {
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_use_adapters(loaded.session.get(), name));
    EXPECT_NE(std::string::npos,
              std::string(oriel_session_last_error(loaded.session.get())).find("llama-untied-f16"))
        << name;
  }
  const Loaded plain = load(model, options());
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_session_use_adapters(plain.session.get(), "style"));
}

TEST_F(Adapters, faulty_files_are_refused_in_one_line) {
  ORIEL_NEED_DATA(path, "lora/bad/cases.json");
  for (const nlohmann::json& c : readJson(path)) {
    log_.clear();
    const bool control = c.value("control_vector", false);
    Options options = this->options();
    options.add(control ? "control_vector" : "lora", dataFile(c["file"]));
    oriel_model* model = nullptr;
    const oriel_status status = oriel_model_load(dataFile(c["model"]).c_str(), &options, &model);
    const ModelPtr owner(model);
    EXPECT_TRUE(status != ORIEL_OK || c["may_run"]) << c["file"];
    EXPECT_EQ(status != ORIEL_OK, !log_.errors().empty()) << c["file"];
    const std::string lines = log_.errors();
    EXPECT_EQ(0, std::count(lines.begin(), lines.end(), '\n')) << lines;
  }
}

TEST_F(Adapters, two_of_a_name_and_missing_files_are_refused) {
  ORIEL_NEED_DATA(model, kModel);
  Options twice = with(at(kWhole, "1"));
  twice.add("lora", at(kWhole, "2"));
  Options missing = with("no-such-file.gguf:0.5");
  for (const Options* options : {&twice, &missing}) {
    oriel_model* made = nullptr;
    EXPECT_NE(ORIEL_OK, oriel_model_load(model.c_str(), options, &made));
    EXPECT_EQ(nullptr, made);
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_adapters

namespace oriel_internal::test::test_embedding {

// Embeddings against float64, for any architecture, pooling and chunking.

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
  std::vector<FamilyParam> families = onVulkan() ? familyParams() : familiesOfEachKind();
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

RUNS_ON(kOneDevice);
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
