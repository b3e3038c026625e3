// oriel_file_describe for runnable and other files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "support/captured_log.h"
#include "support/describe.h"
#include "support/files.h"
#include "support/ledger.h"
#include "support/vocabulary.h"

namespace oriel_internal::test::test_inspect {
namespace {

const char* const kModel = ORIEL_TEST_DATA "/models/llama-q8_0.gguf";

struct Inspected {
  oriel_status status = ORIEL_OK;
  Json info;
  CapturedLog log;
};

Inspected inspectFile(const std::string& path) {
  Inspected result;
  Options options;
  options.log = result.log.log().callback;
  options.log_user = result.log.log().user;
  size_t needed = 0;
  result.status = oriel_file_describe(path.c_str(), &options, nullptr, 0, &needed);
  if (result.status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    result.status = ORIEL_OK;
    result.info = describeFile(path, options);
  }
  return result;
}

Inspected inspectBytes(const std::vector<uint8_t>& bytes) {
  const std::string path =
      testing::TempDir() + "oriel-inspect-" + std::to_string(getpid()) + ".gguf";
  {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  Inspected result = inspectFile(path);
  std::remove(path.c_str());
  return result;
}

// A model without weights keeps its shape, too.
TEST(Inspect, memory_that_is_refused_says_nothing_of_a_model) {
  std::string told;
  for (const bool load : {false, true}) {
    for (uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE((load ? "load, allocation " : "inspect, allocation ") + std::to_string(nth));
      Ledger ledger;
      ledger.refuse_nth = nth;
      CapturedLog log;
      Options options;
      options.log = log.log().callback;
      options.log_user = log.log().user;
      options.allocator = ledger.allocator();
      options.device = "none";
      oriel_model* model = nullptr;
      char text[8192];
      size_t needed = 0;
      const oriel_status status =
          load ? oriel_model_load(kModel, &options, &model)
               : oriel_file_describe(kModel, &options, text, sizeof(text), &needed);
      if (status == ORIEL_OK) {
        EXPECT_EQ(2u, (load ? describe(model) : Json::parse(text)).at("n_layers"));
        EXPECT_EQ("", log.errors());
      } else {
        EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status);
        EXPECT_NE("", log.errors());
        EXPECT_EQ(std::string::npos, log.errors().find('\n')) << log.errors();
        told += log.errors();
      }
      oriel_model_free(model);
      if (ledger.calls < nth) {
        break;
      }
    }
  }
  EXPECT_NE(std::string::npos, told.find("list of tensors")) << told;
}

TEST(Inspect, a_file_that_runs_is_described_in_full) {
  const Inspected got = inspectFile(kModel);
  ASSERT_EQ(ORIEL_OK, got.status);
  const Json& info = got.info;
  EXPECT_EQ("llama", got.info.at("architecture"));
  EXPECT_EQ(true, got.info.at("runs"));
  EXPECT_EQ(0u, got.info.at("missing").size());
  EXPECT_EQ(954656u, got.info.at("file_bytes"));
  EXPECT_EQ(2u, got.info.at("n_layers"));
  EXPECT_EQ(4u, got.info.at("n_heads"));
  EXPECT_EQ(2u, got.info.at("n_kv_heads"));
  EXPECT_EQ(64u, got.info.at("head_dim"));
  EXPECT_EQ(384u, got.info.at("n_vocab"));
  ASSERT_EQ(2u, info.at("tensor_types").size());
  uint64_t parameters = 0;
  for (const auto& [name, type] : info.at("tensor_sizes").items()) {
    EXPECT_EQ(type.at("tensors"), info.at("tensor_types").at(name));
    const uint64_t of_type = type.at("parameters");
    parameters += of_type;
    if (name == "Q8_0") {
      EXPECT_EQ(15u, type.at("tensors"));
      EXPECT_EQ(of_type / 32 * 34, type.at("bytes"));
    }
  }
  EXPECT_EQ(info.at("parameters"), parameters);
  EXPECT_EQ(20u, got.info.at("tensor_count"));
}

TEST(Inspect, a_file_that_does_not_run_is_described_and_what_it_lacks_is_said) {
  Vocabulary v;
  v.add("a");
  v.add("b");
  v.model = "morse";
  GgufWriter file = v.writer();
  file.addString("general.name", "Telegraph");
  file.addString("general.license", "cc0-1.0");
  file.addUint32("llama.block_count", 3);
  file.addUint32("llama.embedding_length", 64);
  file.addUint32("llama.attention.head_count", 4);
  file.addFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const Inspected got = inspectBytes(file.build());
  ASSERT_EQ(ORIEL_OK, got.status) << got.log.errors();
  EXPECT_EQ("Telegraph", got.info.at("name"));
  EXPECT_EQ("cc0-1.0", got.info.at("license"));
  EXPECT_EQ(3u, got.info.at("n_layers"));
  EXPECT_EQ(16u, got.info.at("head_dim"));
  EXPECT_EQ(4u, got.info.at("n_kv_heads"));
  EXPECT_EQ(2u, got.info.at("n_vocab"));
  EXPECT_EQ(false, got.info.at("runs"));
  ASSERT_EQ(2u, got.info.at("missing").size());
  EXPECT_NE(got.info.at("missing").at(0).get<std::string>().find("feed_forward_length"),
            std::string::npos);
  EXPECT_NE(got.info.at("missing").at(1).get<std::string>().find("morse"), std::string::npos);
  EXPECT_EQ("", got.log.errors()) << "what is missing is the answer, not a failure";
}

TEST(Inspect, a_file_that_states_nothing_is_no_failure) {
  const Inspected got = inspectBytes(GgufWriter().build());
  ASSERT_EQ(ORIEL_OK, got.status) << got.log.errors();
  EXPECT_EQ("", got.info.at("architecture"));
  EXPECT_EQ(false, got.info.at("runs"));
  EXPECT_GE(got.info.at("missing").size(), 1u);
}

TEST(Inspect, every_truncation_is_a_failure_with_a_reason) {
  const std::vector<uint8_t> whole = readBytes(kModel);
  for (size_t bytes = 0; bytes < whole.size(); bytes = bytes * 5 / 4 + 97) {
    const Inspected got = inspectBytes({whole.begin(), whole.begin() + static_cast<long>(bytes)});
    EXPECT_NE(ORIEL_OK, got.status) << bytes;
    EXPECT_NE("", got.log.errors()) << bytes;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_inspect
