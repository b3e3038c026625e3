// Saved sessions continue bit for bit; data that is not such a session is refused.
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#if !defined(_WIN32)
#include <sys/stat.h>
#endif

#include "base/arena.h"
#include "exec/snapshot.h"
#include "oriel/advanced.h"
#include "support/api.h"
#include "support/files.h"
#include "support/forged_snapshots.h"
#include "support/random_families.h"
#include "support/reply.h"
#include "support/tiers.h"

namespace oriel_internal::test::test_snapshot {
namespace {

FILE_RUNS_ON(kCpu);  // host code: one test or more on a GPU, marked

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

RUNS_ON(kOneDevice);
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

namespace oriel_internal::test::test_snapshot_files {

// Snapshots in files: ownership, and other contents under that name. The rules are the host's: one device is enough.

namespace {

// Reads the current file, and checks the one log line about it.
void expectNotRestored(const Loaded& loaded, CapturedLog* log, const std::string& path,
                       oriel_status status, const char* word) {
  log->clear();
  EXPECT_EQ(status, oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr));
  EXPECT_TRUE(log->says(word)) << log->errors();
  EXPECT_TRUE(log->says(path)) << "the file has no name in: " << log->errors();
  EXPECT_EQ(std::string::npos, log->errors().find('\n'));
}

TEST(SnapshotFile, in_a_file_that_is_none_is_refused_by_name) {
  CapturedLog log;
  const std::string path = testing::TempDir() + "oriel-snapshot-refused.bin";
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_TRUE(loaded.session);
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(50, 200)));
  std::remove(path.c_str());
  expectNotRestored(loaded, &log, path, ORIEL_ERROR_IO, "not there");
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
  const std::vector<uint8_t> whole = readBytes(path);
  const auto write = [&](const std::vector<uint8_t>& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  };
  write({});
  expectNotRestored(loaded, &log, path, ORIEL_ERROR_FORMAT, "not a session snapshot");
  write(std::vector<uint8_t>(100000, 'x'));
  expectNotRestored(loaded, &log, path, ORIEL_ERROR_FORMAT, "not a session snapshot");
  write({whole.begin(), whole.end() - 1});
  expectNotRestored(loaded, &log, path, ORIEL_ERROR_FORMAT, "damaged");
  std::vector<uint8_t> damaged = whole;
  damaged[damaged.size() / 2] ^= 1;
  write(damaged);
  expectNotRestored(loaded, &log, path, ORIEL_ERROR_FORMAT, "damaged");
  write(whole);
  log.clear();
  EXPECT_EQ(ORIEL_OK, oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr));
  EXPECT_EQ("", log.errors());
  std::remove(path.c_str());
}

// With a mapping this would crash the process.
RUNS_ON(kOneDevice);
TEST(SnapshotFile, that_is_cut_off_while_it_is_restored_is_refused) {
  CapturedLog log;
  const std::string path = testing::TempDir() + "oriel-snapshot-cut.bin";
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_TRUE(loaded.session);
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(100, 200)));
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
  const std::vector<uint8_t> whole = readBytes(path);
  std::atomic<bool> ends{false};
  std::thread changing([&] {
    while (!ends) {
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(whole.data()),
                 static_cast<std::streamsize>(whole.size()));
    }
  });
  int restored = 0;
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    const oriel_status status =
        oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr);
    restored += status == ORIEL_OK ? 1 : 0;
    refused += status == ORIEL_ERROR_IO || status == ORIEL_ERROR_FORMAT ? 1 : 0;
  }
  ends = true;
  changing.join();
  EXPECT_EQ(300, restored + refused);
  EXPECT_EQ(ORIEL_OK, oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr));
  std::remove(path.c_str());
}

TEST(SnapshotFile, replaces_no_other_file) {
  CapturedLog log;
  const std::string path = testing::TempDir() + "oriel-snapshot-over.bin";
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_TRUE(loaded.session);
  ASSERT_EQ(ORIEL_OK, append(loaded, someIds(5, 200)));
  const auto saveOver = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    log.clear();
    return oriel_session_save(loaded.session.get(), path.c_str(), 0);
  };
  for (const std::string text : {"a letter to a friend", "x", "ORIELSN", "GGUF"}) {
    EXPECT_EQ(ORIEL_ERROR_IO, saveOver(text));
    EXPECT_TRUE(log.says("is not a snapshot") && log.says(path)) << log.errors();
    const std::vector<uint8_t> bytes = readBytes(path);
    EXPECT_EQ(text, std::string(bytes.begin(), bytes.end()));
  }
  EXPECT_EQ(ORIEL_OK, saveOver(""));  // apps create such a placeholder
  EXPECT_EQ(ORIEL_OK, saveOver("ORIELSNP of another version"));
  EXPECT_EQ(ORIEL_OK, oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr));
  EXPECT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
  std::remove(path.c_str());
}

#if !defined(_WIN32)
TEST(SnapshotFile, is_its_owners_alone_and_stays_so) {
  CapturedLog log;
  const std::string path = testing::TempDir() + "oriel-snapshot-mode.bin";
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_TRUE(loaded.session);
  std::remove(path.c_str());
  const mode_t before = ::umask(0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
    struct stat info = {};
    EXPECT_EQ(0, ::stat(path.c_str(), &info));
    EXPECT_EQ(0600u, info.st_mode & 0777u);
    EXPECT_EQ(0, ::chmod(path.c_str(), 0644));  // the mode of older versions
  }
  ::umask(before);
  std::remove(path.c_str());
}
#endif

TEST(SnapshotFile, is_in_no_folder_that_was_not_there) {
  CapturedLog log;
  const Loaded loaded = load(kRandom, cpuOptions(&log));
  ASSERT_TRUE(loaded.session);
  const std::string folder = testing::TempDir() + "oriel-no-such-folder";
  EXPECT_EQ(ORIEL_ERROR_IO,
            oriel_session_save(loaded.session.get(), (folder + "/kept").c_str(), 0));
  EXPECT_TRUE(log.says("its folder is not there") && log.says(folder)) << log.errors();
  EXPECT_FALSE(fileExists(folder));
}

// Any file may be named, even of many gigabytes: only snapshots borrow memory.
TEST(SnapshotFile, borrows_memory_only_for_what_begins_as_one) {
  CapturedLog log;
  const std::string path = testing::TempDir() + "oriel-snapshot-large.bin";
  Options options = cpuOptions(&log);
  static size_t largest;
  static const oriel_allocator counting = {
      [](size_t bytes, void*) -> void* {
        largest = std::max(largest, bytes);
        return defaultAllocator().allocate(bytes, nullptr);
      },
      [](void* block, size_t bytes, void*) { defaultAllocator().release(block, bytes, nullptr); },
      nullptr};
  options.allocator = &counting;
  const Loaded loaded = load(kRandom, options);
  ASSERT_TRUE(loaded.session);
  std::ofstream(path, std::ios::binary).seekp(1 << 30) << "x";  // sparse
  largest = 0;
  expectNotRestored(loaded, &log, path, ORIEL_ERROR_FORMAT, "not a session snapshot");
  EXPECT_EQ(0u, largest);
  ASSERT_EQ(ORIEL_ERROR_IO, oriel_session_save(loaded.session.get(), path.c_str(), 0));
  std::remove(path.c_str());
  ASSERT_EQ(ORIEL_OK, oriel_session_save(loaded.session.get(), path.c_str(), 0));
  largest = 0;
  ASSERT_EQ(ORIEL_OK, oriel_session_restore(loaded.session.get(), path.c_str(), 0, nullptr));
  EXPECT_GE(largest, readBytes(path).size()) << "not with the app's allocator";
  std::remove(path.c_str());
}

}  // namespace
}  // namespace oriel_internal::test::test_snapshot_files
