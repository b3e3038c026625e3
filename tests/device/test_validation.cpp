// A session's whole life on the device in one test. Also run under the Khronos validation layer, where any message is a
// failure (support/device_main.cpp).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/api.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_validation {
namespace {

/// A private folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(testing::TempDir() + "/oriel-validation-cache-" + std::to_string(getpid())) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const char* path() const { return path_.c_str(); }

 private:
  std::string path_;
};

RUNS_ON(kOneDevice | kValidated);
TEST(Validation, a_whole_life_loads_prefills_slides_evaluates_resets_and_loads_again) {
  const TemporaryFolder cache;
  std::vector<int32_t> first_life;
  for (int life = 0; life < 2; ++life) {  // the second finds the pipelines of the first
    CapturedLog log;
    Options options = makeOptions(&log);
    options.memory_bytes = 64u << 20;
    options.window_tokens = 24;
    options.set("prefill_batch", 8);
    options.cache_folder = cache.path();
    const Loaded loaded = load(ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf", options);
    ASSERT_TRUE(loaded.session) << log.errors();
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < 21; ++i) {  // two whole chunks and a part of one
      prompt.push_back(300 + i * 7);
    }
    ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    const std::vector<int32_t> ids = greedy(loaded, 20);  // past the window
    EXPECT_GT(statsOf(loaded).evicted, 0u);
    EXPECT_EQ(prompt.size(), evaluate(loaded, prompt).size());
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, oriel_session_append(loaded.session.get(), prompt.data(), prompt.size(),
                                             nullptr, nullptr));
    EXPECT_EQ(ids, greedy(loaded, 20));
    if (life == 0) {
      first_life = ids;
    }
    EXPECT_EQ(first_life, ids);
    EXPECT_EQ("", log.errors());
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_validation
