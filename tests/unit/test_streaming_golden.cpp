// The committed logits of a sliding window against the float64 pass that they came from.
#include <gtest/gtest.h>

#include "support/distances.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/float64_model.h"

namespace oriel_internal::test::test_streaming_golden {
namespace {

TEST(StreamingGolden, is_what_streaming_llm_gives_in_float64) {
  const nlohmann::json file = readJson(ORIEL_TEST_DATA "/streaming/llama-mqa.json");
  const std::string model = ORIEL_TEST_DATA "/models/" + file["model"].get<std::string>() + ".gguf";
  const std::vector<int32_t> ids = file["ids"];
  ASSERT_GE(file["runs"].size(), 4u);
  for (const nlohmann::json& run : file["runs"]) {
    std::map<size_t, std::vector<float>> wanted;
    for (const nlohmann::json& at : run["logits"]) {
      wanted[at["token"]] = base64As<float>(at["logits_f32_b64"]);
    }
    ASSERT_EQ(1u, wanted.count(ids.size() - 1));
    Float64Model reference(model);
    for (size_t t = 0; t < ids.size(); ++t) {
      const std::vector<double> row = reference.step(ids[t], run["sinks"], run["window"]);
      if (wanted.count(t) != 0) {
        EXPECT_LT(relativeL2(wanted[t], row), 1e-6) << "token " << t << " of " << run["sinks"];
      }
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_streaming_golden
