// Weights on file: the same bits as in memory, the planned memory, and files that change meanwhile.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "device/count_mallocs.h"
#include "oriel/advanced.h"
#include "support/allocators.h"
#include "support/files.h"
#include "support/reply.h"
#include "support/target.h"
#include "support/tiers.h"

#if !defined(_WIN32)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace oriel_internal::test::test_on_file {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

Options onFileOptions(CapturedLog* log, const char* on_file, uint32_t chunk = 0) {
  Options options = makeOptions(log);
  options.memory_bytes = 64u << 20;
  options.window_tokens = 200;
  options.set("prefill_batch", chunk);
  options.set("kv", "f16");
  options.set("offload", on_file);
  return options;
}

/// Logits after a prompt, after more tokens and at every position of a text, and the tokens.
struct Said {
  std::vector<std::vector<float>> logits;
  std::vector<int32_t> ids;
};

Said talk(const std::string& path, const Options& options) {
  Said said;
  const Loaded loaded = load(path, options);
  if (!loaded.session) {
    return said;
  }
  const std::vector<int32_t> prompt = someIds(61, 300);
  EXPECT_EQ(ORIEL_OK, append(loaded, prompt));
  said.logits.push_back(logitsOf(loaded));
  said.ids = greedy(loaded, 70);
  said.logits.push_back(logitsOf(loaded));
  for (const std::vector<float>& row : evaluate(loaded, someIds(20, 299))) {
    said.logits.push_back(row);
  }
  EXPECT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), statsOf(loaded).position - 1));
  EXPECT_EQ(ORIEL_OK, append(loaded, {5}));
  said.logits.push_back(logitsOf(loaded));
  return said;
}

void expectSame(const Said& held, const Said& on_file, const std::string& where) {
  EXPECT_EQ(held.ids, on_file.ids) << where;
  ASSERT_EQ(held.logits.size(), on_file.logits.size()) << where;
  for (size_t i = 0; i < held.logits.size(); ++i) {
    ASSERT_EQ(held.logits[i], on_file.logits[i]) << where << ", logits " << i;
  }
}

TEST(RowsOnFile, give_the_bits_of_rows_that_are_held) {
  ORIEL_NEED_DATA(path, "models/gemma4-e-q8_0.gguf");
  size_t number = 0;
  for (const uint32_t chunk : {0u, 1u, 7u}) {
    if (isOthersTurn(number++, false)) {
      continue;
    }
    CapturedLog log;
    const Said held = talk(path, onFileOptions(&log, "none", chunk));
    const Said on_file = talk(path, onFileOptions(&log, "auto", chunk));
    expectSame(held, on_file, "chunk " + std::to_string(chunk));
    EXPECT_EQ("", log.errors());
  }
}

void expectPlanned(const std::string& path, const Options& given) {
  Ledger ledger;
  Options options = given;
  options.allocator = ledger.allocator();
  oriel_plan plan = ORIEL_PLAN_INIT;
  ASSERT_EQ(ORIEL_OK, oriel_plan_file(path.c_str(), &options, &plan));
  ASSERT_EQ(1u, plan.fits);
  {
    const Loaded loaded = load(path, options);
    ASSERT_TRUE(loaded.session);
    const oriel_stats stats = statsOf(loaded);
    EXPECT_EQ(plan.host_bytes, stats.host_bytes);
    EXPECT_EQ(plan.total_bytes, stats.device_bytes + stats.host_bytes);
    const bool cpu = !onVulkan();
    EXPECT_EQ(cpu ? plan.total_bytes : plan.host_bytes, ledger.live_bytes);
    EXPECT_LE(ledger.peak_bytes, plan.total_bytes) << "more was taken for a while";
    ledger.refuse_all = true;
    const uint64_t calls = ledger.calls;
    EXPECT_EQ(ORIEL_OK, append(loaded, someIds(150, 300)));
    const std::vector<int32_t> more = someIds(150, 300);
    ReplyOptions generate = greedyOptions(200);
    generate.set("ignore_stop", true);
    const MallocCount mallocs;
    EXPECT_EQ(ORIEL_OK, append(loaded, more));
    EXPECT_EQ(ORIEL_OK,
              oriel_session_generate(loaded.session.get(), &generate, nullptr, nullptr, nullptr));
    if (cpu && canCountMallocs()) {
      EXPECT_EQ(0u, mallocs.calls());
    }
    EXPECT_EQ(calls, ledger.calls);
  }
  EXPECT_EQ(0u, ledger.live_bytes);
}

TEST(RowsOnFile, are_planned_to_the_byte_and_take_nothing_while_decoding) {
  ORIEL_NEED_DATA(path, "models/gemma4-e-q8_0.gguf");
  CapturedLog log;
  const Options held = onFileOptions(&log, "none");
  const Options on_file = onFileOptions(&log, "auto");
  expectPlanned(path, held);
  expectPlanned(path, on_file);
  EXPECT_EQ("", log.errors());
}

/// A writable copy of a model.
class ChangedFile : public ScratchFolder {
 protected:
  std::string copyOf(const std::string& model) const {
    const std::string copy = path("model.gguf");
    std::filesystem::copy_file(model, copy, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(copy, std::filesystem::perms::owner_all);
    return copy;
  }
  /// Rewrites a file with identical bytes.
  static void touch(const std::string& file) {
    std::filesystem::last_write_time(
        file, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(7));
  }
  static void cutOff(const std::string& file) {
    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 3);
  }
};

/// The call fails with one line, and the session is unchanged.
void expectRefused(const Loaded& loaded, CapturedLog* log, const std::vector<int32_t>& ids) {
  const uint64_t position = statsOf(loaded).position;
  const std::vector<float> logits = logitsOf(loaded);
  log->clear();
  EXPECT_EQ(ORIEL_ERROR_IO, append(loaded, ids));
  EXPECT_EQ(1u, errorLines(*log)) << log->errors();
  EXPECT_EQ(log->errors(), oriel_session_last_error(loaded.session.get()));
  EXPECT_EQ(position, statsOf(loaded).position);
  EXPECT_EQ(logits, logitsOf(loaded));
  log->clear();
  const std::vector<int32_t> other = someIds(4, 290);
  std::vector<std::vector<float>> rows;
  EXPECT_EQ(ORIEL_ERROR_IO,
            oriel_session_append(loaded.session.get(), ids.data(), ids.size(), keepRow, &rows));
  EXPECT_EQ(1u, errorLines(*log)) << log->errors();
  EXPECT_TRUE(rows.empty());
  EXPECT_EQ(position, statsOf(loaded).position);
}

class RowsOnChangedFile : public ChangedFile {};

TEST_F(RowsOnChangedFile, are_refused_unless_they_are_in_memory) {
  ORIEL_NEED_DATA(model, "models/gemma4-e-q8_0.gguf");
  for (const bool cut : {false, true}) {
    SCOPED_TRACE(cut ? "cut off" : "written to");
    const std::string file = copyOf(model);
    CapturedLog log;
    const Loaded loaded = load(file, onFileOptions(&log, "auto"));
    ASSERT_TRUE(loaded.session);
    ASSERT_EQ(ORIEL_OK, append(loaded, {1, 2, 3, 4}));
    cut ? cutOff(file) : touch(file);
    expectRefused(loaded, &log, {3, 250, 251, 1});
    // Data read before the change is valid.
    EXPECT_EQ(ORIEL_OK, append(loaded, {4, 3, 2, 1}));
    EXPECT_EQ(8u, statsOf(loaded).position);
  }
}

TEST_F(RowsOnChangedFile, are_read_from_a_file_that_was_removed) {
  ORIEL_NEED_DATA(model, "models/gemma4-e-q8_0.gguf");
  const std::string file = copyOf(model);
  CapturedLog log;
  const Said held = talk(file, onFileOptions(&log, "none"));
  const Loaded loaded = load(file, onFileOptions(&log, "auto"));
  ASSERT_TRUE(loaded.session);
  std::filesystem::remove(file);
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(61, 300)));
  EXPECT_EQ(held.logits[0], logitsOf(loaded));
  EXPECT_EQ("", log.errors());
}

#if !defined(_WIN32)
TEST_F(RowsOnChangedFile, are_read_from_a_descriptor_that_the_app_has_closed) {
  ORIEL_NEED_DATA(model, "models/gemma4-e-q8_0.gguf");
  CapturedLog log;
  const Said held = talk(model, onFileOptions(&log, "none"));
  const int fd = ::open(model.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  std::string name = "/dev/fd/" + std::to_string(fd);
  const Loaded loaded = load(name, onFileOptions(&log, "auto"));
  ASSERT_TRUE(loaded.session);
  ::close(fd);
  name.assign(name.size(), '?');  // the app may change its path string
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(61, 300)));
  EXPECT_EQ(held.logits[0], logitsOf(loaded));
  EXPECT_EQ("", log.errors());
}
#endif

void expectSameSnapshots(const std::string& path, const char* other) {
  CapturedLog log;
  std::vector<uint8_t> snapshot;
  std::vector<float> logits;
  for (const char* on_file : {"none", other}) {
    const Loaded loaded = load(path, onFileOptions(&log, on_file));
    ASSERT_TRUE(loaded.session);
    oriel_session* const session = loaded.session.get();
    if (snapshot.empty()) {
      ASSERT_EQ(ORIEL_OK, append(loaded, someIds(30, 300)));
      size_t needed = 0;
      ASSERT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL, oriel_snapshot_save(session, nullptr, 0, &needed));
      snapshot.resize(needed);
      ASSERT_EQ(ORIEL_OK, oriel_snapshot_save(session, snapshot.data(), needed, &needed));
      ASSERT_EQ(ORIEL_OK, append(loaded, {9, 8, 7}));
      logits = logitsOf(loaded);
      continue;
    }
    ASSERT_EQ(ORIEL_OK, restoreFrom(session, snapshot));
    ASSERT_EQ(ORIEL_OK, append(loaded, {9, 8, 7}));
    EXPECT_EQ(logits, logitsOf(loaded)) << "held here, on file there";
  }
  EXPECT_EQ("", log.errors());
}

TEST(RowsOnFile, leave_snapshots_as_they_are) {
  ORIEL_NEED_DATA(path, "models/gemma4-e-q8_0.gguf");
  expectSameSnapshots(path, "auto");
}

TEST(ExpertsOnFileOrNot, leave_snapshots_as_they_are) {
  ORIEL_NEED_DATA(path, "models/lfm2moe-q4_0.gguf");
  expectSameSnapshots(path, "all");
}

// --- Experts --------------------------------------------------------------------------------------

struct ExpertModel {
  std::string name;
  uint32_t used, count;
};

class ExpertsOnFile : public testing::TestWithParam<ExpertModel> {};

TEST_P(ExpertsOnFile, give_the_bits_of_experts_that_are_held_in_any_number_of_slots) {
  const ExpertModel& model = GetParam();
  ORIEL_NEED_DATA(path, "models/" + model.name + ".gguf");
  // On Vulkan an ordinary run uses the fewest slots, some, and all.
  const bool all = !onVulkan() || allCases();
  const uint32_t some = (model.used + model.count) / 2;
  size_t number = 0;
  for (const uint32_t chunk : {0u, 1u, 7u}) {
    if (isOthersTurn(number++, false)) {
      continue;
    }
    CapturedLog log;
    const Said held = talk(path, onFileOptions(&log, "none", chunk));
    for (uint32_t slots = model.used; slots <= model.count; ++slots) {
      if (!all && slots != model.used && slots != some && slots != model.count) {
        continue;
      }
      Options options = onFileOptions(&log, "all", chunk);
      options.set("expert_slots", slots);
      const std::string where = std::to_string(slots) + " slots, chunk " + std::to_string(chunk);
      expectSame(held, talk(path, options), where);
    }
    EXPECT_EQ("", log.errors());
  }
}

TEST_P(ExpertsOnFile, are_planned_to_the_byte_and_take_nothing_while_decoding) {
  const ExpertModel& model = GetParam();
  ORIEL_NEED_DATA(path, "models/" + model.name + ".gguf");
  CapturedLog log;
  for (uint32_t slots = model.used; slots <= model.count; ++slots) {
    SCOPED_TRACE(std::to_string(slots) + " slots");
    Options options = onFileOptions(&log, "auto");
    options.set("expert_slots", slots);
    expectPlanned(path, options);
  }
  EXPECT_EQ("", log.errors());
}

// With one token every expert counts once in each layer with experts.
RUNS_ON(kOneDevice, "qwen3moe_q4_0");
TEST_P(ExpertsOnFile, are_counted) {
  const ExpertModel& model = GetParam();
  ORIEL_NEED_DATA(path, "models/" + model.name + ".gguf");
  CapturedLog log;
  Options options = onFileOptions(&log, "auto");
  options.set("expert_slots", model.count);
  const Loaded loaded = load(path, options);
  ASSERT_TRUE(loaded.session);
  EXPECT_EQ(0u, countOf(loaded, "expert_hits") + countOf(loaded, "expert_misses"));
  ASSERT_EQ(ORIEL_OK, append(loaded, {7}));
  const uint64_t first = countOf(loaded, "expert_misses");
  EXPECT_GT(first, 0u);
  EXPECT_EQ(0u, first % model.used);
  EXPECT_EQ(0u, countOf(loaded, "expert_hits"));
  for (int i = 0; i < 3; ++i) {  // the same again: all are in slots
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    ASSERT_EQ(ORIEL_OK, append(loaded, {7}));
    EXPECT_EQ(first, countOf(loaded, "expert_misses"));
  }
  EXPECT_EQ(3 * first, countOf(loaded, "expert_hits"));
  // With a slot for every expert, none is read twice.
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(100, 300)));
  (void)greedy(loaded, 60);
  EXPECT_LE(countOf(loaded, "expert_misses"), first / model.used * model.count);
}

RUNS_ON(kOneDevice, "qwen3moe_q4_0");
TEST_P(ExpertsOnFile, take_no_number_of_slots_that_cannot_be) {
  const ExpertModel& model = GetParam();
  ORIEL_NEED_DATA(path, "models/" + model.name + ".gguf");
  for (const uint32_t slots : {model.used - 1, model.count + 1, UINT32_MAX}) {
    CapturedLog log;
    Options options = onFileOptions(&log, "auto");
    options.set("expert_slots", slots);
    oriel_model* none = nullptr;
    EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(path.c_str(), &options, &none)) << slots;
    EXPECT_EQ(1u, errorLines(log)) << log.errors();
  }
  CapturedLog log;
  Options options = onFileOptions(&log, "rows");
  options.set("expert_slots", model.used);
  oriel_model* none = nullptr;
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_model_load(path.c_str(), &options, &none));
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertsOnFile,
                         testing::Values(ExpertModel{"lfm2moe-q4_0", 2, 6},
                                         ExpertModel{"qwen3moe-q4_0", 2, 6},
                                         ExpertModel{"olmoe-q8_0", 3, 8},
                                         ExpertModel{"granitemoe-shared-q4_0", 3, 8}),
                         [](const testing::TestParamInfo<ExpertModel>& tested) {
                           std::string name = tested.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// float32 experts: with smaller ones the op lists outweigh them.
class ExpertsOfSomeBytes : public testing::TestWithParam<ExpertModel> {};

TEST_P(ExpertsOfSomeBytes, are_as_many_as_the_memory_has_room_for) {
  const ExpertModel& model = GetParam();
  ORIEL_NEED_DATA(path, "models/" + model.name + ".gguf");
  CapturedLog log;
  Options options = onFileOptions(&log, "auto", 8);
  FullPlan plan = planOf(path, options);
  EXPECT_EQ(0u, plan.count("expert_slots")) << "there is room for all";
  EXPECT_EQ(0u, plan.count("on_file_bytes"));
  EXPECT_EQ(model.count, plan.count("expert_count"));
  const uint64_t held = plan.total_bytes;
  uint64_t before = UINT32_MAX;
  for (uint64_t memory = held - 1; plan.fits != 0; memory = plan.total_bytes - 1) {
    options.memory_bytes = memory;
    plan = planOf(path, options);
    if (plan.fits != 0) {
      EXPECT_LE(plan.total_bytes, memory);
      EXPECT_LE(plan.count("expert_slots"), before);
      EXPECT_GE(plan.count("expert_slots"), model.used);
      EXPECT_GT(plan.count("on_file_bytes"), 0u);
      before = plan.count("expert_slots");
      expectPlanned(path, options);
    }
  }
  EXPECT_LT(before, model.count);
  const uint64_t minimum = plan.minimum_bytes;
  options.memory_bytes = minimum;
  ASSERT_EQ(ORIEL_OK, oriel_plan_file(path.c_str(), &options, &plan));
  EXPECT_EQ(1u, plan.fits);
  EXPECT_EQ(minimum, plan.total_bytes);
  options.memory_bytes = minimum - 1;
  oriel_model* refused = nullptr;
  EXPECT_EQ(ORIEL_ERROR_MEMORY_BUDGET, oriel_model_load(path.c_str(), &options, &refused));
}

INSTANTIATE_TEST_SUITE_P(Models, ExpertsOfSomeBytes,
                         testing::Values(ExpertModel{"lfm2moe", 2, 6},
                                         ExpertModel{"qwen3moe", 2, 6}, ExpertModel{"olmoe", 3, 8}),
                         [](const testing::TestParamInfo<ExpertModel>& tested) {
                           return tested.param.name;
                         });

class ExpertsOnChangedFile : public ChangedFile {};

TEST_F(ExpertsOnChangedFile, are_refused_and_the_session_stays) {
  ORIEL_NEED_DATA(model, "models/qwen3moe-q4_0.gguf");
  for (const bool cut : {false, true}) {
    SCOPED_TRACE(cut ? "cut off" : "written to");
    const std::string file = copyOf(model);
    CapturedLog log;
    Options options = onFileOptions(&log, "auto");
    options.set("expert_slots", 2);
    const Loaded loaded = load(file, options);
    ASSERT_TRUE(loaded.session);
    ASSERT_EQ(ORIEL_OK, append(loaded, {1, 2, 3, 4}));
    cut ? cutOff(file) : touch(file);
    expectRefused(loaded, &log, someIds(40, 300));
    log.clear();
    ReplyOptions generate = greedyOptions(20);
    generate.set("ignore_stop", true);
    EXPECT_EQ(ORIEL_ERROR_IO,
              oriel_session_generate(loaded.session.get(), &generate, nullptr, nullptr, nullptr));
    EXPECT_EQ(1u, errorLines(log)) << log.errors();
    EXPECT_LT(statsOf(loaded).position, 24u);
  }
}

// A failed step's data in slots is not mistaken for an expert.
TEST_F(ExpertsOnChangedFile, come_from_the_file_again_once_it_can_be_read) {
  ORIEL_NEED_DATA(model, "models/qwen3moe-q4_0.gguf");
  const std::string file = copyOf(model);
  CapturedLog log;
  Options options = onFileOptions(&log, "auto");
  options.set("expert_slots", 3);
  const Said expected = talk(file, options);
  const Loaded loaded = load(file, options);
  ASSERT_TRUE(loaded.session);
  const auto written = std::filesystem::last_write_time(file);
  const std::string other = path("other name");
  std::filesystem::create_hard_link(file,
                                    other);  // renaming is not a change, although it updates a time
  touch(file);
  EXPECT_EQ(ORIEL_ERROR_IO, append(loaded, someIds(61, 300)));
  EXPECT_EQ(0u, statsOf(loaded).position);
  std::filesystem::last_write_time(file, written);
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(61, 300)));
  EXPECT_EQ(expected.logits[0], logitsOf(loaded));
}

}  // namespace
}  // namespace oriel_internal::test::test_on_file
