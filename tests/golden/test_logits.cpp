// Whole models against logits computed in float64 by an independent implementation.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/api.h"
#include "plan/memory_layout.h"
#include "support/api.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"
#include "support/golden.h"
#include "support/picture_rig.h"
#include "support/random_llama.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_logits {
namespace {

std::string caseName(const testing::TestParamInfo<GoldenModel>& tested) {
  std::string name = tested.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class ModelLogits : public testing::TestWithParam<GoldenModel> {};

RUNS_ON(kCpu);
RUNS_ON(kOneDevice, "lfm2", "gemma4_e", "deepseek2", "qwen3moe", "qwen35");
RUNS_ON(kEachDevice, "llama_q4_k_m");
TEST_P(ModelLogits, equal_the_float64_reference) {
  const GoldenModel& c = GetParam();
  ORIEL_NEED_DATA(model, "models/" + c.name + ".gguf");
  ORIEL_NEED_LOGITS(prompts, c.name);
  int excepted = 0;
  uint32_t number = 0;
  for (const char letter : c.name) {
    number += static_cast<unsigned char>(letter);
  }
  for (const uint32_t chunk : {0u, 1u, 7u}) {
    if (!allCases() && !onVulkan() && ++number % 3 != 0) {
      continue;  // In an ordinary run each model has one length.
    }
    Options options = makeOptions();
    options.memory_bytes = 256u << 20;
    options.set("prefill_batch", chunk);
    const Loaded loaded = load(model, options);
    ASSERT_TRUE(loaded.session);
    size_t compared = 0;
    for (const nlohmann::json& prompt : prompts) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      const std::vector<int32_t> ids = prompt["ids"];
      ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), ids.data(), ids.size(),
                                               nullptr, nullptr));
      // Published models have the GELU that llama.cpp computes another way.
      const nlohmann::json& exact = prompt["exact"];
      const nlohmann::json& published =
          prompt.contains("exact_erf_gelu") ? prompt["exact_erf_gelu"] : exact;
      const double distance =
          relativeL2(logitsOf(loaded), base64As<float>(published["logits_f32_b64"]));
      if (distance >= c.tolerance && hasCloseExperts(exact, c.tolerance)) {
        std::cout << c.name << " chunk " << chunk << " prompt of " << ids.size() << " is "
                  << distance << " away: excepted, its experts are close\n";
        ++excepted;
        continue;
      }
      EXPECT_LT(distance, c.tolerance)
          << c.name << " chunk " << chunk << " prompt of " << ids.size();
      std::vector<int32_t> want = exact["greedy"];
      want.resize(std::min(want.size(), trustedSteps(exact, c.tolerance)));
      if (!want.empty()) {  // none asked for would mean no end
        EXPECT_EQ(want, greedy(loaded, static_cast<uint32_t>(want.size()))) << c.name;
        compared += want.size();
      }
    }
    EXPECT_GT(compared, 0u) << "no step can be trusted: the tolerance is too wide";
  }
  RecordProperty("excepted_prompts", excepted);
}

std::vector<GoldenModel> everyModel() {
  std::vector<GoldenModel> models = goldenModels(ORIEL_TEST_DATA "/logits.json");
  for (const char* name :
       {"llama-mha", "llama3-rope", "phi3", "olmo3", "granite", "minicpm", "ernie4_5",
        "hunyuan-dense", "mistral3", "exaone4", "olmo2", "gemma2", "lfm2", "gemma4-e",
        "gemma4-e-q8_0", "gemma4-nov", "gemma4-512", "deepseek2", "minicpm3"}) {
    models.push_back({name, 2e-3});
  }
  for (const std::string name :
       {"lfm2moe", "granitemoe", "granitemoe-shared", "olmoe", "qwen3moe"}) {
    for (const char* type : {"", "-q8_0", "-q4_0"}) {
      models.push_back({name + type, 2e-3});
    }
  }
  for (const char* name : {"qwen35", "qwen35-128", "qwen35-q8_0", "qwen35-nextn", "granitehybrid",
                           "granitehybrid-moe", "falcon-h1"}) {
    models.push_back({name, 2e-3});
  }
  // A float64 pass with nothing but keys and values rounded to f16 is 2.24e-3, 2.22e-3 and 2.11e-3 away.
  models.push_back({"smollm3", 2.5e-3});
  models.push_back({"exaone4-swa", 2.5e-3});
  models.push_back({"lfm2-b", 2.5e-3});
  models.push_back({"deepseek2-lite", 3e-3});  // of latents: 2.35e-3
  for (const char* name : {"qwen35moe",    "qwen35moe-fused",
                           "qwen3next",    "gemma4-dense",
                           "gpt-oss",      "gpt-oss-plain",
                           "nemotron_h",   "nemotron_h_moe",
                           "afmoe",        "bailingmoe2",
                           "bailingmoe",   "ernie4_5-moe",
                           "hunyuan-moe",  "qwen2moe",
                           "deepseek",     "deepseek2-groups",
                           "glm4",         "chatglm",
                           "glm4moe",      "seed_oss",
                           "gemma",        "cohere2",
                           "arcee",        "apertus",
                           "smallthinker", "smallthinker-full",
                           "stablelm",     "stablelm-parallel",
                           "starcoder2",   "gptneox",
                           "gpt2",         "falcon",
                           "olmo",         "laguna",
                           "cohere2moe",   "hy_v3",
                           "k2-horizon",   "k2-horizon-mova",
                           "qwen2vl",      "qwen3vl",
                           "qwen3vlmoe",   "mellum",
                           "granite_swa",  "bitnet",
                           "internlm2",    "nemotron",
                           "jais2",        "exaone",
                           "nanbeige",     "plm"}) {
    models.push_back({name, 2e-3});
  }
  for (const char* name : {"llama-q4_k", "llama-q5_k", "llama-q6_k", "llama-q2_0", "llama-nvfp4",
                           "llama-nvfp4-scale"}) {
    models.push_back({name, 5e-3});
  }
  models.push_back({"bailingmoe3", 2e-3});
  // A float64 pass with nothing but keys and values rounded to f16 is 1.99e-3 and 3.02e-3 away.
  models.push_back({"spark2_5", 2.5e-3});
  models.push_back({"gemma4-moe", 3.5e-3});
  models.push_back({"stories260K", 2e-3});
  models.push_back({"TinyStories-656K-Q2_K", 1e-3});
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, ModelLogits, testing::ValuesIn(everyModel()), caseName);

// Shapes that no published model has: odd rows, every GQA ratio, heads of any even size.
RUNS_ON(kCpu);
TEST(Logits, odd_shapes_equal_the_float64_reference) {
  struct Shape {
    uint32_t n_embd, n_heads, n_kv_heads, head_dim, n_ff;
    bool tied;
  };
  for (const Shape& s : {Shape{60, 3, 1, 20, 100, true}, Shape{33, 4, 2, 8, 50, false},
                         Shape{64, 6, 3, 10, 172, true}, Shape{100, 2, 2, 256, 31, true},
                         Shape{48, 8, 1, 6 * 4, 77, false}, Shape{40, 8, 1, 512, 60, true},
                         Shape{72, 4, 2, 322, 60, false}}) {
    RandomLlama llama;
    llama.n_embd = s.n_embd;
    llama.n_heads = s.n_heads;
    llama.n_kv_heads = s.n_kv_heads;
    llama.head_dim = s.head_dim;
    llama.n_ff = s.n_ff;
    llama.tied_output = s.tied;
    const TemporaryModel file(llama);
    Options options = makeOptions();
    options.memory_bytes = 256u << 20;
    options.set("kv", "f16");
    const std::vector<int32_t> ids = someIds(40, static_cast<int32_t>(llama.n_vocab));
    const auto rows = evaluate(load(file.path(), options), ids);
    Float64Model reference(file.path());
    for (size_t t = 0; t < ids.size(); ++t) {
      EXPECT_LT(relativeL2(rows[t], reference.step(ids[t], 4, 512)), 2e-3)
          << "n_embd " << s.n_embd << " head_dim " << s.head_dim << " token " << t;
    }
  }
}

TEST(OrielTiny, equals_its_float64_reference) {
  const nlohmann::json file = readJson(ORIEL_TEST_DATA "/oriel-tiny-golden.json")["files"][0];
  const std::string path = ORIEL_SOURCE_DIR "/models/oriel-tiny/" + file["file"].get<std::string>();
  const Loaded loaded = load(path, makeOptions());
  ASSERT_TRUE(loaded.session);
  for (const nlohmann::json& c : file["cases"]) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    const std::string text = c["prompt"];
    ASSERT_EQ(ORIEL_OK, oriel_session_append_text(loaded.session.get(), text.data(), text.size(),
                                                  ORIEL_TEXT_SPECIAL));
    EXPECT_EQ(c["prompt_ids"].size(), statsOf(loaded).position);
    const std::vector<float> logits = logitsOf(loaded);
    std::vector<float> top;
    for (const int32_t id : c["top_ids"]) {
      top.push_back(logits[static_cast<size_t>(id)]);
    }
    EXPECT_LT(relativeL2(top, c["top_logits"].get<std::vector<double>>()), 2e-3) << c["name"];
    // The two best logits are never closer than 0.017 on any of these paths: far wider than our error.
    std::vector<int32_t> want = c["greedy_ids"];
    EXPECT_EQ(want, greedy(loaded, static_cast<uint32_t>(want.size()))) << c["name"];
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_logits

namespace oriel_internal::test::test_states {

// Recurrent states in a device's memory against those computed in float64 by an independent implementation.

namespace {

/// A version of a layer's state as it lies in memory: 32-bit floats.
std::vector<std::vector<float>> slotsOf(const oriel_model& model, uint32_t layer) {
  std::vector<std::vector<float>> slots;
  forEachPlacedMemory(model.desc, model.plan.cache, model.plan.formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        if (memory.layer != layer || memory.kind != MemoryKind::kState) {
                          return;
                        }
                        const uint32_t words = memory.shape.head_dim;
                        for (uint32_t slot = 0; slot < memory.shape.ring; ++slot) {
                          slots.emplace_back(words);
                          const auto most =
                              static_cast<uint32_t>(model.plan.upload.size_bytes / 2 / 4);
                          for (uint32_t first = 0; first < words; first += most) {
                            const uint32_t count = std::min(most, words - first);
                            const void* piece = nullptr;
                            ASSERT_TRUE(model.executor
                                            ->read(sides[0], 4 * (uint64_t{slot} * words + first),
                                                   uint64_t{4} * count, &piece)
                                            .ok());
                            std::memcpy(slots.back().data() + first, piece, size_t{4} * count);
                          }
                        }
                      });
  return slots;
}

class States : public testing::TestWithParam<std::string> {};

RUNS_ON(kCpu);
TEST_P(States, equal_the_float64_reference) {
  const std::string name = GetParam();
  ORIEL_NEED_DATA(path, "models/" + name + ".gguf");
  ORIEL_NEED_LOGITS(prompts, name);
  for (const uint32_t chunk : {0u, 1u, 7u}) {
    Options options = makeOptions();
    options.memory_bytes = 256u << 20;
    options.set("prefill_batch", chunk);
    options.set("kv", "f16");
    const Loaded loaded = load(path, options);
    ASSERT_TRUE(loaded.session);
    for (const nlohmann::json& prompt : prompts) {
      ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
      const std::vector<int32_t> ids = prompt["ids"];
      ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), ids.data(), ids.size(),
                                               nullptr, nullptr));
      (void)logitsOf(loaded);
      const nlohmann::json& state = prompt["exact"]["recurrent_state"];
      const uint32_t layer = state["layer"], head = state["head"];
      const std::vector<float> want = base64As<float>(state["state_f32_b64"]);
      const std::vector<float> want_columns = base64As<float>(state["conv_f32_b64"]);
      const StateShape& shape = loaded.model->desc.kind(layer).state;
      ASSERT_EQ(want.size(), size_t{shape.value_dim} * shape.key_dim);
      // Which of the versions is the latest, a session knows alone.
      double nearest = HUGE_VAL, columns = HUGE_VAL;
      for (const std::vector<float>& slot : slotsOf(*loaded.model, layer)) {
        std::vector<float> got;
        for (uint32_t i = 0; i < want.size(); ++i) {
          const bool delta = shape.rule == StateRule::kDelta;  // there keys come first
          const uint32_t value = delta ? i % shape.value_dim : i / shape.key_dim;
          const uint32_t key = delta ? i / shape.value_dim : i % shape.key_dim;
          got.push_back(slot[(size_t{head} * shape.value_dim + value) * shape.key_dim + key]);
        }
        if (const double distance = relativeL2(got, want); distance < nearest) {
          nearest = distance;
          columns = relativeL2(
              std::vector<float>(slot.end() - static_cast<std::ptrdiff_t>(want_columns.size()),
                                 slot.end()),
              want_columns);
        }
      }
      EXPECT_LT(nearest, 1e-3) << "chunk " << chunk << " prompt of " << ids.size();
      EXPECT_LT(columns, 1e-3) << "chunk " << chunk << " prompt of " << ids.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, States,
                         testing::Values("qwen35", "qwen35-128", "qwen35-nextn", "granitehybrid",
                                         "granitehybrid-moe", "falcon-h1"),
                         [](const testing::TestParamInfo<std::string>& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace oriel_internal::test::test_states

namespace oriel_internal::test::test_picture_encoder {

// Rows of encoders against float64, for pictures that need no resizing.

namespace {

using nlohmann::json;

constexpr const char* kEncoders[] = {"gemma4v", "gemma4v-std", "qwen3vl", "qwen3vl-deepstack",
                                     "lfm2",    "lfm2-nonorm", "idefics3"};

/// A picture in the form that the encoder reads.
struct Golden {
  explicit Golden(const std::string& name)
      : values(readJson(dataFile("vision/encoder-" + name + ".json"))),
        pixels(base64(values["pixels_u8_b64"])) {
    const std::string sizes = dataFile("vision/sizes.json");
    path = sizes.substr(0, sizes.size() - std::strlen("vision/sizes.json")) +
           values["mmproj"].get<std::string>();
    layout.whole = {values["width"], values["height"]};
    picture = {pixels.data(), layout.whole.width, layout.whole.height,
               size_t{layout.whole.width} * 3, PixelOrder::kRgb8};
  }
  std::vector<float> rows() const {
    for (const json& stage : values["stages"]) {
      if (stage["name"] == "rows") {
        for (const auto& [key, value] : stage.items()) {
          if (key.find("b64") != std::string::npos) {
            return base64As<float>(value);
          }
        }
      }
    }
    return {};
  }

  json values;
  std::vector<uint8_t> pixels;
  std::string path;
  PictureLayout layout;
  Picture picture;
};

TEST(PictureEncoder, rows_are_those_of_float64) {
  ORIEL_SKIP_WITHOUT(!dataFile("vision/sizes.json").empty(), "vision/");
  for (const char* const name : kEncoders) {
    Golden golden(name);
    for (const bool on_reference : {false, true}) {
      PictureRig rig(golden.path, 0, on_reference);
      ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
      golden.layout.cell = rig.desc.cell();
      std::vector<float> rows;
      for (int times = 0; times < 2; ++times) {  // the second meets what the first left
        ASSERT_TRUE(rig.encode(golden.picture, golden.layout, &rows).ok()) << rig.log.errors();
        EXPECT_LE(relativeError(golden.rows(), rows), 1e-3) << name << " " << on_reference;
      }
    }
  }
}

RUNS_ON(kCpu);
TEST(PictureEncoder, no_numbers_are_an_error_of_a_line) {
  ORIEL_SKIP_WITHOUT(!dataFile("vision/sizes.json").empty(), "vision/");
  Golden golden("qwen3vl");
  std::vector<uint8_t> file = readBytes(golden.path);
  GgufFile gguf;
  CapturedLog log;
  ASSERT_TRUE(gguf.open(file.data(), file.size(), log.log()).ok());
  GgufTensor tensor;
  ASSERT_TRUE(gguf.findTensor("v.blk.1.ffn_up.weight", &tensor));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(file.data() + tensor.offset + 40, &nan, sizeof(nan));
  PictureRig rig(std::move(file), 0);
  ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
  golden.layout.cell = rig.desc.cell();
  std::vector<float> rows;
  EXPECT_EQ(ORIEL_ERROR_FORMAT, rig.encode(golden.picture, golden.layout, &rows).code());
  const std::string errors = rig.log.errors();
  EXPECT_FALSE(errors.empty());
  EXPECT_EQ(std::string::npos, errors.find('\n')) << errors;
}

RUNS_ON(kCpu);
TEST(PictureEncoder, a_stopped_picture_can_be_read_again) {
  ORIEL_SKIP_WITHOUT(!dataFile("vision/sizes.json").empty(), "vision/");
  Golden golden("gemma4v");
  PictureRig rig(golden.path, 70);
  ASSERT_TRUE(rig.status.ok()) << rig.log.errors();
  golden.layout.cell = rig.desc.cell();
  std::vector<float> rows;
  for (int left = 0; left < 40; left += 3) {
    int checks = left;
    const StopCheck stop = {[](void* user) { return (*static_cast<int*>(user))-- == 0; }, &checks};
    const Status status = rig.encode(golden.picture, golden.layout, &rows, stop);
    EXPECT_TRUE(status.ok() || status.code() == ORIEL_ERROR_CANCELLED);
  }
  ASSERT_TRUE(rig.encode(golden.picture, golden.layout, &rows).ok());
  EXPECT_LE(relativeError(golden.rows(), rows), 1e-3);
}

}  // namespace
}  // namespace oriel_internal::test::test_picture_encoder
