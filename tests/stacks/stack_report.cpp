// Runs the device tests with stack measurement of threads and calls: neither may exceed the limits in oriel.h and of
// the threads. With ORIEL_STACKS_ALL every public function must be called.
#include <gtest/gtest.h>
#include <oriel/advanced.h>
#include <oriel/tools.h>

#include <cstdlib>

#include "support/api.h"
#include "support/files.h"
#include "support/painted_stacks.h"

namespace oriel_internal::test::stack_report {
namespace {

constexpr size_t kKib = 1024;
constexpr size_t kOfCalls = 256 * kKib;       // oriel.h
constexpr size_t kOfWorkers = 256 * kKib;     // platform/cpu/pool.cpp
constexpr size_t kOfCompilers = 8192 * kKib;  // platform/vulkan/pipelines.h
// Leaves an eighth for an app's signal handlers, and for frames of other compilers.
constexpr size_t mostOf(size_t bytes) { return bytes - bytes / 8; }

class Stacks : public testing::Environment {
 public:
  void TearDown() override {
    const bool all = std::getenv("ORIEL_STACKS_ALL") != nullptr;
    for (size_t i = 0; i < calls_measured_count; ++i) {
      const size_t bytes = calls_measured[i].deepest_bytes;
      std::printf("stack of %-40s %6.1f KiB\n", calls_measured[i].function,
                  static_cast<double>(bytes) / kKib);
      EXPECT_LE(bytes, mostOf(kOfCalls)) << calls_measured[i].function;
      EXPECT_TRUE(bytes > 0 || !all) << calls_measured[i].function << " is not called";
    }
    const StackUse worker = deepestThread(kOfWorkers, 2 * kOfWorkers);
    const StackUse compiler = deepestThread(kOfCompilers, SIZE_MAX);
    std::printf("stack of a worker %.1f KiB, of a thread with 8 MiB %.1f KiB\n",
                static_cast<double>(worker.used_bytes) / kKib,
                static_cast<double>(compiler.used_bytes) / kKib);
    EXPECT_LE(worker.used_bytes, mostOf(kOfWorkers));
    EXPECT_LE(compiler.used_bytes, mostOf(kOfCompilers));
  }
};

[[maybe_unused]] testing::Environment* const stacks = testing::AddGlobalTestEnvironment(new Stacks);

}  // namespace
}  // namespace oriel_internal::test::stack_report

// Calls public functions that no device test calls, to measure their stacks.

namespace oriel_internal::test::rest_of_calls {
namespace {

const char* const kModel = ORIEL_TEST_DATA "/models/llama-q4_0.gguf";

class RestOfCalls : public ScratchFolder {};

TEST_F(RestOfCalls, of_devices) {
  CapturedLog log;
  const std::string cache_dir = path("cache");
  Options options = makeOptions(&log);
  options.cache_folder = cache_dir.c_str();
  EXPECT_FALSE(describeDevices(options, ORIEL_DEVICE_FORGET).empty()) << log.errors();
}

TEST_F(RestOfCalls, of_json) {
  CapturedLog log;
  const Options options = makeOptions(&log);
  std::string deep = "7";
  for (int i = 0; i < 63; ++i) {
    deep = "{\"a\": [1, \"text\"], \"b\": " + deep + "}";
  }
  const auto nothing = [](const oriel_json_item*, void*) { return 0; };
  EXPECT_EQ(ORIEL_OK,
            oriel_json_read(deep.data(), deep.size(), "the text", &options, nothing, nullptr))
      << log.errors();
}

TEST_F(RestOfCalls, of_shapes_and_files) {
  CapturedLog log;
  Options options = makeOptions(&log);
  std::string latent;  // its attention uses the most stack
  for (const Json& shape : shapes()) {
    const std::string name = shape.at("name");
    EXPECT_FALSE(describeShape(name + ":q4_0", options).empty()) << log.errors();
    latent = shape.at("latent_dim") != 0 && latent.empty() ? name : latent;
  }
  ASSERT_NE("", latent);
  oriel_speed speed = ORIEL_INIT(oriel_speed);
  EXPECT_EQ(ORIEL_OK, oriel_speed_measure(nullptr, latent.c_str(), 0, &options, &speed))
      << log.errors();
  EXPECT_FALSE(describeFile(kModel, options).empty()) << log.errors();
  // The CPU has no timestamps; it is refused before any other work.
  const oriel_status timed = oriel_op_times_measure(
      kModel, 0, 1, &options,
      [](const char*, const char*, uint32_t, uint32_t, double, double, void*) {}, nullptr);
  EXPECT_TRUE(timed == ORIEL_OK || timed == ORIEL_ERROR_UNSUPPORTED) << log.errors();
  // Without golden's encoder it is refused before any other work.
  const std::string encoder = dataFile("vision/mmproj-gemma4v.gguf");
  Options looking = makeOptions(&log);
  if (!encoder.empty()) {
    looking.set("mmproj", encoder);
  }
  const uint8_t pixel[3] = {};
  EXPECT_EQ(encoder.empty(),
            oriel_picture_rows(
                encoder.empty() ? kModel : dataFile("vision/gemma4.gguf").c_str(), pixel, 1, 1,
                &looking, [](const float*, size_t, size_t, void*) {}, nullptr) != ORIEL_OK);
  EXPECT_FALSE(described(oriel_option_list).empty());
  EXPECT_NE(nullptr, oriel_status_text(ORIEL_OK));
  EXPECT_NE(nullptr, oriel_version());
}

TEST_F(RestOfCalls, of_marks_and_snapshots) {
  CapturedLog log;
  Options options = makeOptions(&log);
  options.memory_bytes = uint64_t{200} << 20;
  options.window_tokens = 64;
  oriel_model* model = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_model_load(kModel, &options, &model)) << log.errors();
  oriel_session* session = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(model, nullptr, &session)) << log.errors();
  const std::vector<int32_t> tokens = {7, 8, 9};
  EXPECT_EQ(ORIEL_OK, oriel_session_append(session, tokens.data(), tokens.size(), nullptr, nullptr))
      << log.errors();
  EXPECT_EQ(ORIEL_OK, oriel_session_mark(session, "here")) << log.errors();
  EXPECT_EQ(ORIEL_OK, oriel_session_use_adapters(session, nullptr)) << log.errors();
  size_t needed = 0;
  EXPECT_EQ(1u, describe(session)["marks"].size());
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_snapshot_save(session, nullptr, 0, &needed));
  std::vector<uint8_t> snapshot(needed);
  EXPECT_EQ(ORIEL_OK, oriel_snapshot_save(session, snapshot.data(), snapshot.size(), &needed));
  const std::string file = path("snapshot");
  EXPECT_EQ(ORIEL_OK, oriel_session_save(session, file.c_str(), 0)) << log.errors();
  EXPECT_FALSE(describeSnapshot(snapshot.data(), snapshot.size()).empty());
  char text[4096];
  EXPECT_EQ(ORIEL_OK, oriel_snapshot_describe(file.c_str(), nullptr, 0, nullptr, text, sizeof(text),
                                              &needed));
  oriel_session_destroy(session);
  oriel_model_free(model);
}

}  // namespace
}  // namespace oriel_internal::test::rest_of_calls
