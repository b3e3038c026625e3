// Snapshots in files: ownership, and other contents under that name. The rules are the host's: one device is enough.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "base/workspace.h"
#include "support/files.h"
#include "support/sessions.h"

#if !defined(_WIN32)
#include <sys/stat.h>
#endif

namespace oriel_internal::test::test_snapshot_files {
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
