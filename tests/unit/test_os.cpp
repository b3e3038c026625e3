#include "os/os.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/captured_log.h"
#include "tests/support/scratch_folder.h"

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace oriel_internal::test_os {
namespace {

namespace fs = std::filesystem;
using test::CapturedLog;
#if !defined(_WIN32)
using test::AsNobody;
#endif

class Os : public test::ScratchFolder {
 protected:
  /// Opening must fail with ORIEL_ERROR_IO and the reason.
  static void expectRefused(const std::string& name, const std::string& word) {
    CapturedLog log;
    InputFile file;
    EXPECT_EQ(file.open(name.c_str(), log.log()).code(), ORIEL_ERROR_IO);
    EXPECT_EQ(log.lines.size(), 1u);
    EXPECT_TRUE(log.says(word)) << log.errors();
    EXPECT_EQ(file.bytes(), 0u);
  }
};

std::string textOf(const InputFile& file) {
  std::string text(static_cast<size_t>(file.bytes()), '\0');
  EXPECT_TRUE(file.readAll(text.data(), Log()).ok());
  return text;
}

// --- Files that are read -------------------------------------------------------------------------

TEST_F(Os, a_file_is_read_whole_and_in_pieces) {
  CapturedLog log;
  InputFile file;
  const std::string name = write("gr\xc3\xbc\xc3\x9f dich.gguf", "hello");
  ASSERT_TRUE(file.open(name.c_str(), log.log()).ok()) << log.errors();
  EXPECT_EQ(textOf(file), "hello");
  char piece[3] = {};
  ASSERT_TRUE(file.read(2, piece, 3, log.log()).ok());
  EXPECT_EQ(std::string(piece, 3), "llo");
  ASSERT_TRUE(file.read(0, piece, 2, log.log()).ok());
  EXPECT_EQ(std::string(piece, 2), "he");
  ASSERT_TRUE(file.expectUnchanged(log.log()).ok());
  EXPECT_TRUE(log.lines.empty());
  EXPECT_EQ(file.read(3, piece, 3, log.log()).code(), ORIEL_ERROR_IO) << "past its end";
}

TEST_F(Os, a_file_that_was_removed_or_got_another_name_is_read_on) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows keeps the name of a file that is open";
#endif
  InputFile file;
  const std::string name = write("a", "kept");
  ASSERT_TRUE(file.open(name.c_str(), Log{}).ok());
  fs::create_hard_link(path("a"), path("b"));
  EXPECT_EQ(textOf(file), "kept");
  fs::remove(path("a"));
  fs::remove(path("b"));
  EXPECT_EQ(textOf(file), "kept");
}

TEST_F(Os, what_cannot_be_read_is_refused_with_a_reason) {
  expectRefused(path("missing"), "it is not there");
  expectRefused(path("missing"), path("missing"));
  expectRefused(folder_.string(), "it is a folder");
  expectRefused(write("empty", ""), "is empty");
  expectRefused(std::string(5000, 'x'), "path is too long");
  expectRefused("", "it is not there");
}

#if !defined(_WIN32)
TEST_F(Os, a_pipe_is_refused_without_waiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expectRefused(path("pipe"), "pipe");
}

TEST_F(Os, a_file_without_permission_is_refused) {
  ASSERT_EQ(::chmod(write("secret", "x").c_str(), 0), 0);
  const AsNobody nobody;
  ASSERT_TRUE(nobody.done());
  expectRefused(path("secret"), "no permission");
}
#endif

TEST_F(Os, a_file_that_is_cut_off_or_written_to_is_an_error_line) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows lets nobody write to it";
#endif
  for (const uintmax_t bytes : {uintmax_t{0}, uintmax_t{3}, uintmax_t{9}}) {
    CapturedLog log;
    InputFile file;
    const std::string name = write("cut", "hello");
    ASSERT_TRUE(file.open(name.c_str(), log.log()).ok());
    fs::resize_file(name, bytes);
    char text[5];
    EXPECT_EQ(file.read(0, text, 5, log.log()).ok(), bytes > 5);
    EXPECT_EQ(log.lines.size(), bytes > 5 ? 0u : 1u);
    EXPECT_EQ(file.expectUnchanged(log.log()).code(), ORIEL_ERROR_IO);
    EXPECT_TRUE(log.says("changed") && log.says(name)) << log.errors();
  }
  CapturedLog log;
  InputFile file;
  const std::string name = write("same", "hello");
  ASSERT_TRUE(file.open(name.c_str(), log.log()).ok());
  std::this_thread::sleep_for(
      std::chrono::milliseconds(20));  // file times tick more slowly than clocks
  write("same", "hullo");
  EXPECT_EQ(file.expectUnchanged(log.log()).code(), ORIEL_ERROR_IO);
}

// --- Memory, time, chance ------------------------------------------------------------------------

TEST_F(Os, free_memory_is_known_and_plausible) {
  EXPECT_GT(freeMemoryBytes(), uint64_t{1} << 20);
  EXPECT_LT(freeMemoryBytes(), uint64_t{1} << 50);
}

TEST_F(Os, the_clock_tells_the_date) {
  const int64_t now = unixSeconds();
  EXPECT_NEAR(static_cast<double>(now), static_cast<double>(std::time(nullptr)), 2);
}

TEST_F(Os, the_clock_counts_milliseconds_and_never_goes_back) {
  const double begin = nowMs();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double end = nowMs();
  EXPECT_GE(end - begin, 19.0);
  EXPECT_LT(end - begin, 5000.0);
  double last = end;
  for (int i = 0; i < 1000; ++i) {
    const double now = nowMs();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST_F(Os, entropy_differs_from_call_to_call) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    seen.insert(entropy());
  }
  EXPECT_EQ(seen.size(), 100u);
}

// --- Shared libraries ----------------------------------------------------------------------------

TEST_F(Os, a_shared_library_gives_its_symbols) {
#if defined(_WIN32)
  const char* const name = "kernel32.dll";
  const char* const symbol = "GetTickCount";
#elif defined(__APPLE__)
  const char* const name = "/usr/lib/libSystem.B.dylib";
  const char* const symbol = "strlen";
#else
  const char* const name = "libm.so.6";
  const char* const symbol = "cos";
#endif
  SharedLibrary library;
  EXPECT_FALSE(library.isOpen());
  EXPECT_EQ(library.symbol(symbol), nullptr);
  EXPECT_FALSE(library.open("no-such-library-anywhere"));
  EXPECT_FALSE(library.isOpen());
  ASSERT_TRUE(library.open(name));
  EXPECT_NE(library.symbol(symbol), nullptr);
  EXPECT_EQ(library.symbol("no_such_symbol_anywhere"), nullptr);
  EXPECT_FALSE(library.open("no-such-library-anywhere"));
  EXPECT_FALSE(library.isOpen());
}

// Memory next to the block keeps its pages; the block's contents are unchanged.
TEST(LargePages, are_asked_for_within_a_block_wherever_it_begins_and_ends) {
  constexpr size_t kBytes = 9 << 20;
  std::vector<uint8_t> bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) {
    bytes[i] = static_cast<uint8_t>(i * 7 + (i >> 12));
  }
  const std::vector<uint8_t> before = bytes;
  const std::pair<size_t, size_t> blocks[] = {
      {0, 0}, {1, 5}, {64, 4096}, {64, kBytes - 128}, {4097, (4 << 20) + 1}};
  for (const auto& [at, size] : blocks) {
    preferLargePages(bytes.data() + at, size);
    EXPECT_EQ(before, bytes) << at << " " << size;
  }
  preferLargePages(nullptr, 0);
}

TEST_F(Os, wiping_pages_leaves_zeros_and_nothing_else_changed) {
  constexpr size_t kBytes = 3 << 20;
  for (const auto& [at, size] : {std::pair<size_t, size_t>{0, 0},
                                 {1, 5},
                                 {4000, 200000},
                                 {64, kBytes - 128},
                                 {4096, 1 << 20},
                                 {0, kBytes}}) {
    std::vector<uint8_t> bytes(kBytes, 7);
    wipePages(bytes.data() + at, size);
    std::vector<uint8_t> wanted(kBytes, 7);
    std::fill_n(wanted.begin() + static_cast<ptrdiff_t>(at), size, uint8_t{0});
    EXPECT_EQ(wanted, bytes) << at << " " << size;
  }
  wipePages(nullptr, 0);
}

#if !defined(_WIN32)
TEST_F(Os, a_descriptor_that_was_handed_over_opens_what_its_path_may_not) {
  const std::string name = write("private", "what is in it");
  const int fd = ::open(name.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(5, ::lseek(fd, 5, SEEK_SET));
  ASSERT_EQ(0, ::chmod(name.c_str(), 0));
  {
    const AsNobody nobody;
    ASSERT_TRUE(nobody.done());
    EXPECT_EQ(-1, ::open(name.c_str(), O_RDONLY)) << "the file is not private";
    for (const char* folder : {"/dev/fd/", "/proc/self/fd/"}) {
      const std::string given = folder + std::to_string(fd);
      InputFile file;
      ASSERT_TRUE(file.open(given.c_str(), Log{}).ok()) << folder;
      EXPECT_EQ("what is in it", textOf(file));
    }
  }
  EXPECT_EQ(5, ::lseek(fd, 0, SEEK_CUR)) << "the caller's place in it was moved";
  ::close(fd);
  expectRefused("/dev/fd/" + std::to_string(fd), "descriptor");
  expectRefused("/dev/fd/", "folder");
  expectRefused("/dev/fd/x", "not there");
}
#endif

}  // namespace
}  // namespace oriel_internal::test_os
