// Saved sessions continue bit for bit; data that is not such a session is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "exec/snapshot_format.h"
#include "oriel/advanced.h"
#include "support/api.h"
#include "support/files.h"
#include "support/forged_snapshots.h"
#include "support/random_families.h"
#include "support/sessions.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_snapshot {
namespace {

const char* const kSmall = ORIEL_TEST_DATA "/models/llama-mqa.gguf";
const char* const kOther = ORIEL_TEST_DATA "/models/qwen3.gguf";

using Bytes = std::vector<uint8_t>;

Options snapshotOptions(CapturedLog* log, uint32_t window = 200,
                        oriel_kv_format format = ORIEL_KV_F16) {
  Options options = makeOptions(log);
  options.memory_bytes = 64u << 20;
  options.window_tokens = window;
  options.set("prefill_batch", 16);
  setFormats(&options, format);
  return options;
}

Bytes save(const Loaded& loaded) { return savedBytes(loaded.session.get()); }

oriel_status restore(const Loaded& loaded, const Bytes& bytes) {
  return restoreFrom(loaded.session.get(), bytes);
}

/// Reproducible ids below `vocabulary`.
std::vector<int32_t> someIds(size_t count, int32_t vocabulary, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random() % static_cast<uint32_t>(vocabulary));
  }
  return ids;
}

/// Saves at token 700 and continues in a freshly loaded model.
void expectToGoOn(const char* path, const Options& options, const CapturedLog& log) {
  Bytes snapshot;
  std::vector<int32_t> expected;
  std::vector<float> expected_logits;
  {
    const Loaded loaded = load(path, options);
    ASSERT_TRUE(loaded.session);
    mustAppend(loaded, someIds(600, 200));
    greedy(loaded, 100);
    ASSERT_EQ(700u, statsOf(loaded).position);
    snapshot = save(loaded);
    expected = greedy(loaded, 300);
    expected_logits = logitsOf(loaded);
  }
  const Loaded fresh = load(path, options);
  ASSERT_TRUE(fresh.session);
  mustAppend(fresh, someIds(333, 200, 2));  // earlier contents must not matter
  ASSERT_EQ(ORIEL_OK, restore(fresh, snapshot)) << log.errors();
  EXPECT_EQ(700u, statsOf(fresh).position);
  EXPECT_EQ(snapshot, save(fresh));
  EXPECT_EQ(expected, greedy(fresh, 300));
  EXPECT_EQ(expected_logits, logitsOf(fresh));
}

TEST(Snapshot, a_fresh_model_goes_on_to_the_bit_from_token_700) {
  CapturedLog log;
  Options options = snapshotOptions(&log);
  options.device = "cpu";
  expectToGoOn(kTrained, options, log);
}

class SnapshotFormats : public testing::TestWithParam<oriel_kv_format> {};

RUNS_ON(kCpu, "f16", "int8");
TEST_P(SnapshotFormats, a_fresh_model_on_this_device_goes_on_to_the_bit) {
  CapturedLog log;
  expectToGoOn(kSmall, snapshotOptions(&log, 200, GetParam()), log);
}

RUNS_ON(kCpu, "f16", "int8");
TEST_P(SnapshotFormats, a_fresh_model_of_short_convolutions_goes_on_to_the_bit) {
  CapturedLog log;
  const TemporaryModel file(smallLfm2());
  expectToGoOn(file.path().c_str(), snapshotOptions(&log, 200, GetParam()), log);
}

INSTANTIATE_TEST_SUITE_P(Snapshot, SnapshotFormats,
                         testing::Values(ORIEL_KV_F16, ORIEL_KV_INT8, ORIEL_KV_INT4),
                         [](const testing::TestParamInfo<oriel_kv_format>& test) {
                           return test.param == ORIEL_KV_F16    ? "f16"
                                  : test.param == ORIEL_KV_INT8 ? "int8"
                                                                : "int4";
                         });

// After going back into the sinks, the whole ring is reused for repeated tokens.
RUNS_ON(kCpu);
TEST(Snapshot, holds_what_was_said_after_going_back_to_the_sinks) {
  CapturedLog log;
  const Options options = snapshotOptions(&log, 24);
  for (const size_t again : {10u, 30u, 60u}) {  // less than the ring, into its wrap, past it
    const Loaded loaded = load(kSmall, options);
    mustAppend(loaded, someIds(300, 200));
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 2));
    mustAppend(loaded, someIds(again, 200, 2));
    const Bytes snapshot = save(loaded);
    const Loaded fresh = load(kSmall, options);
    ASSERT_EQ(ORIEL_OK, restore(fresh, snapshot)) << log.errors();
    EXPECT_EQ(snapshot, save(fresh));
    EXPECT_EQ(greedy(loaded, 30), greedy(fresh, 30)) << again;
    EXPECT_EQ(logitsOf(loaded), logitsOf(fresh)) << again;
  }
}

RUNS_ON(kCpu);
TEST(Snapshot, says_nothing_of_what_was_taken_back) {
  CapturedLog log;
  const Loaded loaded = load(kSmall, snapshotOptions(&log, 24));
  std::vector<Bytes> snapshots;
  for (const uint32_t seed : {1u, 2u}) {
    ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
    mustAppend(loaded, someIds(16, 200));  // in the same chunks both times
    mustAppend(loaded, someIds(96, 200));
    mustAppend(loaded, someIds(5, 200, seed));
    ASSERT_EQ(ORIEL_OK, goBackTo(loaded.session.get(), 112));
    mustAppend(loaded, {7});
    snapshots.push_back(save(loaded));
  }
  EXPECT_NE(someIds(5, 200, 1), someIds(5, 200, 2));
  // The penalty still includes them: its tokens are in the header.
  const size_t differ = static_cast<size_t>(std::count_if(
      snapshots[0].begin(), snapshots[0].end(),
      [&, i = size_t{0}](uint8_t byte) mutable { return byte != snapshots[1][i++]; }));
  EXPECT_LE(differ, 5 * sizeof(int32_t) + sizeof(uint64_t)) << "the checksum";
}

RUNS_ON(kCpu);
TEST(Snapshot, through_a_file_it_is_the_same) {
  CapturedLog log;
  const std::string path = testing::TempDir() + "oriel-snapshot-test.bin";
  const Loaded loaded = load(kSmall, snapshotOptions(&log));
  ASSERT_TRUE(loaded.session);
  mustAppend(loaded, someIds(50, 200));
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
  // Except the save time, which only files have, and checksums.
  Bytes file = readBytes(path);
  ASSERT_GE(file.size(), sizeof(SnapshotHeader));
  SnapshotHeader header = headerOf(file);
  EXPECT_GT(header.saved_at, 1700000000);
  header.saved_at = 0;
  std::memcpy(file.data(), &header, sizeof(header));
  makeSumsTrue(&file);
  EXPECT_EQ(save(loaded), file);
  const std::vector<int32_t> expected = greedy(loaded, 40);
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(loaded.session.get()));
  ASSERT_EQ(ORIEL_OK, oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr));
  EXPECT_EQ(expected, greedy(loaded, 40));
  EXPECT_EQ("", log.errors());

  EXPECT_EQ(ORIEL_ERROR_IO, oriel_session_restore(loaded.session.get(),
                                                  (path + ".is-not-there").c_str(), 0, nullptr));
  EXPECT_EQ(ORIEL_ERROR_IO,
            oriel_session_save(loaded.session.get(), (path + "/is-no-folder").c_str(), 0));
  std::remove(path.c_str());
}

RUNS_ON(kCpu);
TEST(Snapshot, a_conversation_goes_on_with_its_turns) {
  CapturedLog log;
  const Options options = snapshotOptions(&log, 64);
  const Loaded loaded = load(kSmall, options);
  ASSERT_TRUE(loaded.session);
  for (const char* text : {"One", "Two", "Three", "Four", "Five", "Six"}) {
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", text));
  }
  const ReplyOptions few = greedyOptions(5);
  ASSERT_EQ(ORIEL_OK, oriel_chat_reply(loaded.session.get(), &few, nullptr, nullptr, nullptr));
  const Bytes snapshot = save(loaded);
  const Loaded other = load(kSmall, options);
  ASSERT_EQ(ORIEL_OK, restore(other, snapshot));
  for (const Loaded* session : {&loaded, &other}) {
    // A reply that was open when saved is closed by the next message.
    ASSERT_EQ(ORIEL_OK, add(*session, "user", "And now?"));
  }
  EXPECT_EQ(statsOf(loaded).position, statsOf(other).position);
  EXPECT_EQ(statsOf(loaded).window_used, statsOf(other).window_used);
  EXPECT_EQ(logitsOf(loaded), logitsOf(other));
  EXPECT_EQ(save(loaded), save(other));
}

RUNS_ON(kCpu);
TEST(Snapshot, a_system_prompt_is_restored_for_every_conversation) {
  CapturedLog log;
  const Loaded loaded = load(kSmall, snapshotOptions(&log));
  ASSERT_TRUE(loaded.session);
  ASSERT_EQ(ORIEL_OK, add(loaded, "system", "You answer in one word."));
  const Bytes prompt = save(loaded);
  ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello!"));
  const std::vector<float> expected = logitsOf(loaded);
  for (int i = 0; i < 20; ++i) {
    mustAppend(loaded, someIds(static_cast<size_t>(10 * i), 200));  // past the window at the end
    ASSERT_EQ(ORIEL_OK, restore(loaded, prompt));
    ASSERT_EQ(ORIEL_OK, add(loaded, "user", "Hello!"));
    EXPECT_EQ(expected, logitsOf(loaded));
  }
}

TEST(Snapshot, an_empty_session_can_be_saved) {
  CapturedLog log;
  const Loaded loaded = load(kSmall, snapshotOptions(&log));
  ASSERT_TRUE(loaded.session);
  const Bytes empty = save(loaded);
  mustAppend(loaded, {1, 2, 3});
  const std::vector<float> expected = logitsOf(loaded);
  ASSERT_EQ(ORIEL_OK, restore(loaded, empty));
  EXPECT_EQ(0u, statsOf(loaded).position);
  const float* logits = nullptr;
  size_t count = 0;
  EXPECT_EQ(ORIEL_ERROR_STATE, oriel_session_logits(loaded.session.get(), &logits, &count));
  mustAppend(loaded, {1, 2, 3});
  EXPECT_EQ(expected, logitsOf(loaded));
}

TEST(Snapshot, a_buffer_that_is_too_small_is_not_written) {
  CapturedLog log;
  const Loaded loaded = load(kSmall, snapshotOptions(&log));
  mustAppend(loaded, {1, 2, 3});
  Bytes bytes(save(loaded).size() - 1, 0x5a);
  size_t needed = 0;
  EXPECT_EQ(ORIEL_ERROR_BUFFER_TOO_SMALL,
            oriel_snapshot_save(loaded.session.get(), bytes.data(), bytes.size(), &needed));
  EXPECT_EQ(bytes.size() + 1, needed);
  EXPECT_EQ(Bytes(bytes.size(), 0x5a), bytes);
}

// ---- Refusals ------------------------------------------------------------------------------------

/// A session that must not change for any input.
class Guarded {
 public:
  Guarded(const char* model, const Options& options) : loaded_(load(model, options)) {
    mustAppend(loaded_, someIds(21, 200));
    before_ = save(loaded_);
  }

  testing::AssertionResult refuses(const Bytes& bytes, CapturedLog* log) {
    log->clear();
    const oriel_status status = restore(loaded_, bytes);
    if (status != ORIEL_ERROR_FORMAT) {
      return testing::AssertionFailure() << "status " << status;
    }
    if (log->lines.size() != 1) {
      return testing::AssertionFailure() << log->lines.size() << " log lines";
    }
    return testing::AssertionSuccess();
  }
  testing::AssertionResult unchanged() const {
    return save(loaded_) == before_ ? testing::AssertionSuccess()
                                    : testing::AssertionFailure() << "the session has changed";
  }
  const Bytes& saved() const { return before_; }

 private:
  Loaded loaded_;
  Bytes before_;
};

TEST(Snapshot, one_wrong_bit_in_any_byte_is_refused) {
  CapturedLog log;
  Guarded guarded(kSmall, snapshotOptions(&log));
  std::mt19937 random(7);
  Bytes bytes = guarded.saved();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint8_t bit = static_cast<uint8_t>(1u << random() % 8);
    bytes[i] ^= bit;
    ASSERT_TRUE(guarded.refuses(bytes, &log)) << "byte " << i;
    bytes[i] ^= bit;
  }
  EXPECT_TRUE(guarded.unchanged());
}

TEST(Snapshot, cut_off_anywhere_or_with_more_behind_it_is_refused) {
  CapturedLog log;
  Guarded guarded(kSmall, snapshotOptions(&log));
  const Bytes& whole = guarded.saved();
  for (size_t size = 0; size < whole.size(); size += size < 512 ? 1 : 97) {
    // Separate memory, so that a sanitizer detects reads past the end.
    Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    part.reserve(part.size() + 1);
    ASSERT_TRUE(guarded.refuses(part, &log)) << size << " bytes";
  }
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_TRUE(guarded.refuses(longer, &log));
  EXPECT_TRUE(guarded.unchanged());
}

RUNS_ON(kCpu);
TEST(Snapshot, of_a_model_with_one_other_weight_is_refused) {
  std::ifstream in(kSmall, std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::string path =
      testing::TempDir() + "/oriel-other-weight-" + std::to_string(getpid()) + ".gguf";
  CapturedLog log;
  Guarded guarded(kSmall, snapshotOptions(&log));
  // Anywhere in the weights, not only at the ends of tensors.
  for (const size_t at : {file.size() / 4, file.size() / 2 + 1, file.size() - 1000}) {
    file[at] ^= 1;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << file;
    file[at] ^= 1;
    const Guarded other(path.c_str(), snapshotOptions(&log));
    EXPECT_TRUE(guarded.refuses(other.saved(), &log)) << "byte " << at;
  }
  std::remove(path.c_str());
  const Guarded same(kSmall, snapshotOptions(&log));
  EXPECT_FALSE(guarded.refuses(same.saved(), &log));
}

RUNS_ON(kCpu);
TEST(Snapshot, of_another_model_is_refused_and_of_another_cache_where_it_must_be_the_same) {
  CapturedLog log;
  const Loaded loaded = load(kSmall, snapshotOptions(&log));
  mustAppend(loaded, someIds(21, 200));
  const Bytes before = save(loaded);
  const auto refuses = [&](const Bytes& bytes, const std::vector<std::string>& words) {
    log.clear();
    EXPECT_EQ(ORIEL_ERROR_FORMAT,
              oriel_snapshot_restore(loaded.session.get(), bytes.data(), bytes.size(),
                                     ORIEL_RESTORE_EXACT, nullptr));
    EXPECT_EQ(1u, log.lines.size());
    for (const std::string& word : words) {
      EXPECT_TRUE(log.says(word)) << word << " in: " << log.errors();
    }
    EXPECT_EQ(before, save(loaded));
  };
  Guarded guarded(kSmall, snapshotOptions(&log));
  EXPECT_TRUE(guarded.refuses(Guarded(kOther, snapshotOptions(&log)).saved(), &log));
  EXPECT_TRUE(log.says("another model")) << log.errors();
  EXPECT_TRUE(guarded.unchanged());
  refuses(Guarded(kSmall, snapshotOptions(&log, 199)).saved(),
          {"window of 199 tokens", "window of 200 tokens", "ask for the same"});
  refuses(Guarded(kSmall, snapshotOptions(&log, 200, ORIEL_KV_INT8)).saved(), {"K8V8", "f16"});
  Options other = snapshotOptions(&log);
  other.set("sinks", 5);
  refuses(Guarded(kSmall, other).saved(), {"5 sinks", "4 sinks"});
  other = snapshotOptions(&log);
  other.set("prefill_batch", 8);
  refuses(Guarded(kSmall, other).saved(), {"batches of 8", "batches of 16"});
  EXPECT_EQ(ORIEL_ERROR_ARGUMENT, oriel_snapshot_restore(nullptr, "", 0, 0, nullptr));
}

}  // namespace
}  // namespace oriel_internal::test::test_snapshot
