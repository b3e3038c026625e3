// What oriel_inspect says of files that run and of files that do not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "support/captured_log.h"
#include "support/files.h"
#include "support/ledger.h"
#include "support/vocabulary.h"

namespace oriel_internal::test::test_inspect {
namespace {

const char* const kModel = ORIEL_TEST_DATA "/models/llama-q8_0.gguf";

struct Inspected {
  oriel_status status = ORIEL_OK;
  oriel_file_info info = {};
  CapturedLog log;
};

Inspected inspectFile(const std::string& path) {
  Inspected result;
  result.info.struct_size = sizeof(result.info);
  Options options;
  options.log = result.log.log().callback;
  options.log_user = result.log.log().user;
  result.status = oriel_inspect(path.c_str(), &options, &result.info);
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

// Nor does a model without weights lose its shape.
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
      oriel_file_info file = ORIEL_INIT(oriel_file_info);
      oriel_model* model = nullptr;
      const oriel_status status = load ? oriel_model_load(kModel, &options, &model)
                                       : oriel_inspect(kModel, &options, &file);
      if (status == ORIEL_OK) {
        oriel_model_info info = ORIEL_INIT(oriel_model_info);
        EXPECT_TRUE(load ? oriel_model_get_info(model, &info) == ORIEL_OK && info.n_layers == 2
                         : file.runs == 1);
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
  const oriel_file_info& info = got.info;
  EXPECT_STREQ("llama", info.architecture);
  EXPECT_EQ(1u, info.runs);
  EXPECT_EQ(0u, info.missing_count);
  EXPECT_EQ(954656u, info.file_bytes);
  EXPECT_EQ(2u, info.n_layers);
  EXPECT_EQ(4u, info.n_heads);
  EXPECT_EQ(2u, info.n_kv_heads);
  EXPECT_EQ(64u, info.head_dim);
  EXPECT_EQ(384u, info.n_vocab);
  ASSERT_EQ(2u, info.tensor_type_count);
  uint64_t parameters = 0;
  for (const oriel_tensor_type& type : info.tensor_types) {
    parameters += type.parameters;
    if (std::string(type.name) == "Q8_0") {
      EXPECT_EQ(15u, type.tensors);
      EXPECT_EQ(type.parameters / 32 * 34, type.bytes);
    }
  }
  EXPECT_EQ(info.parameters, parameters);
  EXPECT_EQ(20u, info.tensor_count);
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
  EXPECT_STREQ("Telegraph", got.info.name);
  EXPECT_STREQ("cc0-1.0", got.info.license);
  EXPECT_EQ(3u, got.info.n_layers);
  EXPECT_EQ(16u, got.info.head_dim);
  EXPECT_EQ(4u, got.info.n_kv_heads);
  EXPECT_EQ(2u, got.info.n_vocab);
  EXPECT_EQ(0u, got.info.runs);
  ASSERT_EQ(2u, got.info.missing_count);
  EXPECT_NE(std::string(got.info.missing[0]).find("feed_forward_length"), std::string::npos);
  EXPECT_NE(std::string(got.info.missing[1]).find("morse"), std::string::npos);
  EXPECT_EQ("", got.log.errors()) << "what is missing is the answer, not a failure";
}

TEST(Inspect, a_file_that_states_nothing_is_no_failure) {
  const Inspected got = inspectBytes(GgufWriter().build());
  ASSERT_EQ(ORIEL_OK, got.status) << got.log.errors();
  EXPECT_STREQ("", got.info.architecture);
  EXPECT_EQ(0u, got.info.runs);
  EXPECT_GE(got.info.missing_count, 1u);
}

TEST(Inspect, every_truncation_is_a_failure_with_a_reason) {
  const std::vector<uint8_t> whole = readBytes(kModel);
  for (size_t bytes = 0; bytes < whole.size(); bytes = bytes * 5 / 4 + 97) {
    const Inspected got = inspectBytes({whole.begin(), whole.begin() + static_cast<long>(bytes)});
    EXPECT_NE(ORIEL_OK, got.status) << bytes;
    EXPECT_NE("", got.log.errors()) << bytes;
  }
}

TEST(Inspect, an_older_app_gets_as_much_as_it_knows) {
  struct {
    size_t struct_size;
    char architecture[64];
    char guard[8];
  } old = {sizeof(size_t) + 64, "", "guard"};
  ASSERT_EQ(ORIEL_OK, oriel_inspect(kModel, nullptr, reinterpret_cast<oriel_file_info*>(&old)));
  EXPECT_STREQ("llama", old.architecture);
  EXPECT_STREQ("guard", old.guard);
}

}  // namespace
}  // namespace oriel_internal::test::test_inspect
