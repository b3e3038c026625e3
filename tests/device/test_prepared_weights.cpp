// Weights in a mapped file: the same bits, no memory of their own, and no use of a damaged file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "oriel/advanced.h"
#include "support/allocators.h"
#include "support/api.h"
#include "support/files.h"
#include "support/target.h"
#include "support/tiers.h"

#if !defined(_WIN32)
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace oriel_internal::test::test_prepared_weights {
namespace {

FILE_RUNS_ON(kCpu);

namespace fs = std::filesystem;

const char* const kModel = ORIEL_TEST_DATA "/models/llama-q4_0.gguf";
const std::vector<int32_t> kIds = {5, 17, 230, 44, 9, 101, 63, 12, 12, 7, 300, 2};

class PreparedFiles : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    if (onVulkan()) {
      GTEST_SKIP() << "a graphics device holds its weights";
    }
    prepared_ = (folder_ / "prepared").string();
  }

  Options options(CapturedLog* log, bool maps = true) const {
    Options options = makeOptions(log);
    options.memory_bytes = 64u << 20;
    options.window_tokens = 64;
    if (maps) {
      options.set("prepared_dir", prepared_);
    }
    return options;
  }

  /// Prepared files with this magic in front, or all files.
  std::vector<fs::path> files(const std::string& magic = "OrielW01") const {
    std::vector<fs::path> found;
    if (fs::exists(prepared_)) {
      for (const fs::directory_entry& entry : fs::directory_iterator(prepared_)) {
        if (read(entry.path().string()).compare(0, magic.size(), magic) == 0) {
          found.push_back(entry.path());
        }
      }
    }
    return found;
  }
  std::vector<fs::path> texts() const { return files("OrielT01"); }
  std::vector<fs::path> allFiles() const { return files(""); }

  static std::vector<int32_t> idsOf(const ModelPtr& model) {
    const std::string text = "Once upon a time, 12 dogs\n\tran.";
    std::vector<int32_t> ids(text.size() + 8);
    size_t count = 0;
    EXPECT_EQ(ORIEL_OK, oriel_tokenize(model.get(), text.data(), text.size(), 0, ids.data(),
                                       ids.size(), &count));
    ids.resize(count);
    return ids;
  }

  /// Logits after kIds, or nothing if a step fails.
  static std::vector<float> logitsAfterIds(const Loaded& loaded) {
    if (oriel_session_append(loaded.session.get(), kIds.data(), kIds.size(), nullptr, nullptr) !=
        ORIEL_OK) {
      return {};
    }
    return logitsOf(loaded);
  }

  static void change(const fs::path& file, uint64_t offset, uint8_t bits) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(offset));
    const int was = stream.get();
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(static_cast<char>(was ^ bits));
  }

  std::string prepared_;
};

TEST_F(PreparedFiles, give_the_same_bits_and_take_no_memory) {
  CapturedLog log;
  const Loaded held = load(kModel, options(&log, false));
  const std::vector<float> expected = logitsAfterIds(held);
  ASSERT_FALSE(expected.empty());
  for (const char* when : {"written", "found"}) {
    SCOPED_TRACE(when);
    const Loaded mapped = load(kModel, options(&log));
    const FullPlan plan = planOf(mapped);
    EXPECT_EQ(plan.weights_bytes, plan.mapped_bytes);
    EXPECT_EQ(planOf(held).weights_bytes, plan.weights_bytes);
    EXPECT_EQ(0u, describe(mapped.model)["resident"]["weights_bytes"]);
    EXPECT_EQ(expected, logitsAfterIds(mapped));
    EXPECT_EQ(describe(held.model)["hash"], describe(mapped.model)["hash"]);
    EXPECT_EQ(idsOf(held.model), idsOf(mapped.model));
    ASSERT_EQ(1u, files().size());
    ASSERT_EQ(1u, texts().size());
    for (const fs::path& file : allFiles()) {
      struct stat info = {};
      ASSERT_EQ(0, ::stat(file.c_str(), &info));
      EXPECT_EQ(0600u, info.st_mode & 0777u);
    }
  }
  EXPECT_EQ("", log.errors());
}

TEST_F(PreparedFiles, are_not_bounded_by_the_cap) {
  CapturedLog log;
  const FullPlan plan = planOf(load(kModel, options(&log, false)));
  Options small = options(&log);
  small.memory_bytes = plan.total_bytes - plan.weights_bytes / 2;
  small.window_tokens = 64;
  const Loaded mapped = load(kModel, small);
  ASSERT_TRUE(mapped.session);
  EXPECT_FALSE(logitsAfterIds(mapped).empty());
  EXPECT_LE(planOf(mapped).total_bytes - planOf(mapped).mapped_bytes, small.memory_bytes);
}

TEST_F(PreparedFiles, a_changed_block_is_an_error_and_the_next_load_writes_the_file_again) {
  CapturedLog log;
  const std::vector<float> expected = logitsAfterIds(load(kModel, options(&log)));
  ASSERT_EQ(1u, files().size());
  change(files()[0], fs::file_size(files()[0]) / 2, 1);
  {
    const Loaded damaged = load(kModel, options(&log));
    ASSERT_TRUE(damaged.session);
    EXPECT_EQ(ORIEL_ERROR_IO, oriel_session_append(damaged.session.get(), kIds.data(), kIds.size(),
                                                   nullptr, nullptr));
    EXPECT_TRUE(log.says("load the model again")) << log.errors();
    EXPECT_TRUE(files().empty());
    EXPECT_EQ(1u, texts().size());
  }
  EXPECT_EQ(expected, logitsAfterIds(load(kModel, options(&log))));
}

TEST_F(PreparedFiles, a_file_of_another_shape_is_written_again) {
  CapturedLog log;
  const std::vector<float> expected = logitsAfterIds(load(kModel, options(&log)));
  ASSERT_EQ(1u, files().size());
  const fs::path file = files()[0];
  const uint64_t bytes = fs::file_size(file);
  const std::function<void()> faults[] = {[&] { fs::resize_file(file, bytes - 1); },
                                          [&] { fs::resize_file(file, 100); },
                                          [&] { fs::resize_file(file, 0); },
                                          [&] { fs::resize_file(file, bytes + 4096); },
                                          [&] { change(file, 3, 255); },
                                          [&] { change(file, 9, 1); },
                                          [&] { change(file, 400, 1); },
                                          [&] { fs::permissions(file, fs::perms::all); }};
  for (const std::function<void()>& fault : faults) {
    fault();
    EXPECT_EQ(expected, logitsAfterIds(load(kModel, options(&log))));
    EXPECT_EQ(bytes, fs::file_size(file));
  }
  EXPECT_EQ("", log.errors());
}

TEST_F(PreparedFiles, a_changed_tokenizer_is_made_again) {
  CapturedLog log;
  const std::vector<int32_t> expected = idsOf(load(kModel, options(&log)).model);
  const std::string whole = read(texts().at(0).string());
  std::mt19937_64 random(11);
  for (int i = 0; i < (allCases() ? 500 : 50); ++i) {
    const fs::path file = texts().at(0);
    if (i % 10 == 0) {
      fs::resize_file(file, random() % whole.size());
    } else {
      change(file, random() % whole.size(), static_cast<uint8_t>(1 + random() % 255));
    }
    EXPECT_EQ(expected, idsOf(load(kModel, options(&log)).model)) << "mutant " << i;
    EXPECT_EQ(whole.size(), fs::file_size(texts().at(0))) << "mutant " << i;
  }
  EXPECT_EQ("", log.errors());
}

TEST_F(PreparedFiles, hold_the_trie_of_models_with_constraints) {
  CapturedLog log;
  (void)load(kModel, options(&log));
  const uint64_t without = fs::file_size(texts().at(0));
  Options constrained = options(&log);
  constrained.set("constraints", true);
  std::vector<int32_t> expected;
  for (const char* when : {"added to the file", "found"}) {
    SCOPED_TRACE(when);
    const Loaded mapped = load(kModel, constrained);
    ASSERT_EQ(1u, texts().size());
    EXPECT_GT(fs::file_size(texts()[0]), without);
    ReplyOptions reply = greedyOptions(12);
    reply.set("grammar", "root ::= [a-z ]+ [0-9]");
    std::vector<int32_t> ids;
    ASSERT_EQ(ORIEL_OK, oriel_session_append(mapped.session.get(), kIds.data(), kIds.size(),
                                             nullptr, nullptr));
    ASSERT_EQ(ORIEL_OK,
              oriel_session_generate(mapped.session.get(), &reply, keepId, &ids, nullptr));
    EXPECT_TRUE(expected.empty() || expected == ids);
    expected = ids;
  }
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ("", log.errors());
}

TEST_F(PreparedFiles, a_process_that_is_killed_while_it_writes_leaves_nothing_wrong) {
  CapturedLog log;
  const std::vector<float> expected = logitsAfterIds(load(kModel, options(&log, false)));
  std::mt19937_64 random(5);
  uint32_t unfinished = 0;
  for (int round = 0; round < (allCases() ? 100 : 10); ++round) {
    SCOPED_TRACE(round);
    for (const fs::path& file : allFiles()) {
      fs::remove(file);
    }
    int ends[2];
    ASSERT_EQ(0, ::pipe(ends));
    // Tells the parent at some piece of the file, and is killed at whatever it does then.
    struct Teller {
      int pieces;
      int end;
    } teller = {static_cast<int>(random() % 30), ends[1]};
    const pid_t child = ::fork();
    if (child == 0) {
      Options wanted = options(nullptr);
      wanted.progress_user = &teller;
      wanted.progress = [](uint64_t, uint64_t, void* user) {
        Teller& told = *static_cast<Teller*>(user);
        if (told.pieces-- == 0) {
          (void)!::write(told.end, "x", 1);
        }
        return 0;
      };
      oriel_model* model = nullptr;
      (void)oriel_model_load(kModel, &wanted, &model);
      (void)!::write(ends[1], "x", 1);
      ::pause();
      ::_exit(0);
    }
    ::close(ends[1]);
    char begun = 0;
    EXPECT_EQ(1, ::read(ends[0], &begun, 1));
    EXPECT_EQ(0, ::kill(child, SIGKILL));
    EXPECT_EQ(child, ::waitpid(child, nullptr, 0));
    ::close(ends[0]);
    unfinished += files().empty() ? 1 : 0;
    EXPECT_EQ(expected, logitsAfterIds(load(kModel, options(&log))));
    EXPECT_EQ(2u, allFiles().size());  // no temporary file
  }
  EXPECT_GT(unfinished, 0u);
  EXPECT_EQ("", log.errors());
}

TEST_F(PreparedFiles, mutants_never_give_other_logits) {
  CapturedLog log;
  const std::vector<float> expected = logitsAfterIds(load(kModel, options(&log)));
  std::mt19937_64 random(7);
  uint32_t refused = 0;
  for (int i = 0; i < (allCases() ? 1000 : 60); ++i) {
    const fs::path file = files().at(0);
    change(file, random() % fs::file_size(file), static_cast<uint8_t>(1 + random() % 255));
    const std::vector<float> got = logitsAfterIds(load(kModel, options(&log)));
    refused += got.empty() ? 1 : 0;
    if (got.empty()) {
      (void)load(kModel, options(&log));  // writes the file again
    } else {
      EXPECT_EQ(expected, got) << "mutant " << i;
    }
  }
  EXPECT_GT(refused, 10u);
}

TEST_F(PreparedFiles, belong_to_one_file_and_are_kept_within_their_share_of_the_disk) {
  CapturedLog log;
  const fs::path copy = folder_ / "copy.gguf";
  fs::copy_file(kModel, copy);
  (void)load(copy.string(), options(&log));
  ASSERT_EQ(1u, files().size());
  const fs::path first = files()[0];
  const uint64_t bytes = fs::file_size(first);
  fs::last_write_time(copy, fs::last_write_time(copy) + std::chrono::seconds(5));
  (void)load(copy.string(), options(&log));
  EXPECT_EQ(2u, files().size());
  fs::last_write_time(copy, fs::last_write_time(copy) + std::chrono::seconds(5));
  Options bounded = options(&log);
  bounded.set("prepared_bytes", 2 * bytes);
  (void)load(copy.string(), bounded);
  const auto kept = [&] {
    uint64_t sum = 0;
    for (const fs::path& file : allFiles()) {
      sum += fs::file_size(file);
    }
    return sum;
  };
  EXPECT_GE(2 * bytes, kept());
  EXPECT_FALSE(fs::exists(first));
  fs::remove_all(prepared_);
  bounded.set("prepared_bytes", bytes);
  for (int i = 0; i < 2; ++i) {  // the tables of its tokenizer have no room beside the weights
    (void)load(copy.string(), bounded);
    EXPECT_GE(bytes, kept());
    EXPECT_EQ(1u, files().size());
  }
  EXPECT_EQ("", log.errors());
  fs::remove_all(prepared_);
  bounded.set("prepared_bytes", bytes - 1);
  oriel_model* model = nullptr;
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_model_load(copy.string().c_str(), &bounded, &model));
  EXPECT_TRUE(log.says("prepared_bytes")) << log.errors();
  EXPECT_TRUE(files().empty());
}

TEST_F(PreparedFiles, held_bytes_are_the_plan_without_the_mapped_ones) {
  for (const char* when : {"written", "found"}) {
    SCOPED_TRACE(when);
    Ledger ledger;
    CapturedLog log;
    Options wanted = options(&log);
    wanted.allocator = ledger.allocator();
    const Loaded mapped = load(kModel, wanted);
    EXPECT_FALSE(logitsAfterIds(mapped).empty());
    const FullPlan plan = planOf(mapped);
    EXPECT_GT(plan.mapped_bytes, 0u);
    EXPECT_EQ(plan.total_bytes - plan.mapped_bytes, ledger.live_bytes);
  }
}

TEST_F(PreparedFiles, weights_are_given_back_and_taken_again) {
  CapturedLog log;
  const Loaded mapped = load(kModel, options(&log));
  const std::vector<float> expected = logitsAfterIds(mapped);
  ASSERT_EQ(ORIEL_OK, oriel_trim(mapped.model.get(), ORIEL_TRIM_WEIGHTS, nullptr));
  ASSERT_EQ(ORIEL_OK, oriel_resume(mapped.model.get(), nullptr, nullptr));
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(mapped.session.get()));
  EXPECT_EQ(expected, logitsAfterIds(mapped));
}

TEST_F(PreparedFiles, a_folder_that_cannot_be_written_is_one_line) {
  CapturedLog log;
  std::ofstream(prepared_) << "a file";
  oriel_model* model = nullptr;
  const Options wanted = options(&log);
  EXPECT_EQ(ORIEL_ERROR_IO, oriel_model_load(kModel, &wanted, &model));
  EXPECT_TRUE(log.says("cannot write")) << log.errors();
}

}  // namespace
}  // namespace oriel_internal::test::test_prepared_weights
#endif
