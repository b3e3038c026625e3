// Files that loading and planning must refuse, with one line that names the fault and the remedy, and nothing left
// behind. Tests only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "support/api.h"
#include "support/gguf_writer.h"
#include "support/ledger.h"

namespace oriel_internal::test {

class BadFiles : public testing::Test {
 protected:
  BadFiles() : path_(testing::TempDir() + "/oriel-bad-" + std::to_string(getpid()) + ".gguf") {}
  ~BadFiles() override { std::remove(path_.c_str()); }

  void write(const std::vector<uint8_t>& bytes) {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }

  /// Loads and plans `path`; both must fail alike.
  void expectRefused(const std::string& path, oriel_status status, const std::string& culprit,
                     uint64_t memory_bytes = 64u << 20) {
    Ledger ledger;
    CapturedLog log;
    Options options = makeOptions(&log);
    options.device = "cpu";
    options.memory_bytes = memory_bytes;
    options.allocator = ledger.allocator();
    oriel_model* model = nullptr;
    EXPECT_EQ(status, oriel_model_load(path.c_str(), &options, &model)) << log.errors();
    EXPECT_EQ(nullptr, model);
    oriel_model_free(model);
    expectOneLine(log, culprit);
    EXPECT_EQ(0u, ledger.live_bytes);
    if (status == ORIEL_ERROR_MEMORY_BUDGET) {
      return;
    }
    log.clear();
    oriel_plan plan = ORIEL_PLAN_INIT;
    EXPECT_EQ(status, oriel_plan_file(path.c_str(), &options, &plan));
    expectOneLine(log, culprit);
    EXPECT_EQ(0u, ledger.live_bytes);
  }
  void expectRefused(const GgufWriter& file, oriel_status status, const std::string& culprit) {
    write(file.build());
    expectRefused(path_, status, culprit);
  }
  /// As invalid, or as unsupported by this build.
  void expectRefused(const GgufWriter& file, const std::string& culprit) {
    write(file.build());
    Options options = makeOptions();
    options.device = "cpu";
    oriel_plan plan = ORIEL_PLAN_INIT;
    const oriel_status status = oriel_plan_file(path_.c_str(), &options, &plan);
    EXPECT_TRUE(status == ORIEL_ERROR_FORMAT || status == ORIEL_ERROR_UNSUPPORTED)
        << oriel_status_text(status);
    expectRefused(path_, status, culprit);
  }

  static void expectOneLine(const CapturedLog& log, const std::string& culprit) {
    const std::string said = log.errors();
    EXPECT_FALSE(said.empty());
    EXPECT_EQ(std::string::npos, said.find('\n')) << said;
    const size_t colon = said.rfind(": ");
    ASSERT_NE(std::string::npos, colon) << said;
    EXPECT_GT(colon, 10u) << said;
    EXPECT_GT(said.size() - colon, 6u) << said;
    EXPECT_NE(std::string::npos, said.find(culprit)) << said;
  }

  std::string path_;
};

}  // namespace oriel_internal::test
