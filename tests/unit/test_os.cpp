#include "os/os.h"

#include <gtest/gtest.h>

#include <chrono>
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

namespace oriel {
namespace {

namespace fs = std::filesystem;
using test::CapturedLog;
#if !defined(_WIN32)
using test::AsNobody;
#endif

class Os : public test::ScratchFolder {
 protected:
  /// Opening must fail with ORIEL_ERROR_IO and say why.
  static void expectNoMapping(const std::string& name, const std::string& word) {
    CapturedLog log;
    MappedFile file;
    EXPECT_EQ(file.open(name.c_str(), log.log()).code(), ORIEL_ERROR_IO);
    EXPECT_EQ(log.lines.size(), 1u);
    EXPECT_TRUE(log.says(word)) << log.errors();
    EXPECT_EQ(file.data(), nullptr);
    EXPECT_EQ(file.bytes(), 0u);
  }
};

std::string textOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.data()), static_cast<size_t>(file.bytes())};
}

// --- Mapping -------------------------------------------------------------------------------------

TEST_F(Os, a_file_is_mapped_whole) {
  CapturedLog log;
  MappedFile file;
  ASSERT_TRUE(file.open(write("gr\xc3\xbc\xc3\x9f dich.gguf", "hello").c_str(), log.log()).ok())
      << log.errors();
  EXPECT_EQ(textOf(file), "hello");
  EXPECT_TRUE(log.lines.empty());
}

TEST_F(Os, opening_again_replaces_the_mapping) {
  MappedFile file;
  ASSERT_TRUE(file.open(write("a", "first").c_str(), Log{}).ok());
  ASSERT_TRUE(file.open(write("b", "second").c_str(), Log{}).ok());
  EXPECT_EQ(textOf(file), "second");
  EXPECT_FALSE(file.open(path("missing").c_str(), Log{}).ok());
  EXPECT_EQ(file.data(), nullptr);
}

TEST_F(Os, a_mapping_moves) {
  MappedFile a;
  MappedFile b;
  ASSERT_TRUE(a.open(write("a", "first").c_str(), Log{}).ok());
  ASSERT_TRUE(b.open(write("b", "second").c_str(), Log{}).ok());
  b = std::move(a);
  EXPECT_EQ(textOf(b), "first");
  EXPECT_EQ(a.data(), nullptr);
  MappedFile& same = b;
  b = std::move(same);
  EXPECT_EQ(textOf(b), "first");
  const MappedFile c(std::move(b));
  EXPECT_EQ(textOf(c), "first");
  EXPECT_EQ(b.data(), nullptr);
}

TEST_F(Os, a_removed_file_stays_readable_while_mapped) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows keeps a mapped file's name";
#endif
  MappedFile file;
  ASSERT_TRUE(file.open(write("a", "kept").c_str(), Log{}).ok());
  fs::remove(path("a"));
  EXPECT_EQ(textOf(file), "kept");
}

TEST_F(Os, what_cannot_be_mapped_is_refused_with_a_reason) {
  expectNoMapping(path("missing"), "it is not there");
  expectNoMapping(path("missing"), path("missing"));
  expectNoMapping(folder_.string(), "it is a folder");
  expectNoMapping(write("empty", ""), "is empty");
  expectNoMapping(std::string(5000, 'x'), "path is too long");
  expectNoMapping("", "it is not there");
}

TEST_F(Os, what_the_address_space_cannot_hold_is_refused_with_a_reason) {
  if (sizeof(size_t) > 4) {
    GTEST_SKIP() << "64 bits can hold any file";
  }
  fs::resize_file(write("large", "x"), uint64_t{3} << 30);  // takes no room on the disk
  expectNoMapping(path("large"), "3221225472 bytes");
  expectNoMapping(path("large"), "64-bit build");
}

#if !defined(_WIN32)
TEST_F(Os, a_pipe_is_refused_without_waiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expectNoMapping(path("pipe"), "pipe");
}

TEST_F(Os, a_file_without_permission_is_refused) {
  ASSERT_EQ(::chmod(write("secret", "x").c_str(), 0), 0);
  const bool root = ::geteuid() == 0;  // who may read everything
  ASSERT_TRUE(!root || ::seteuid(65534) == 0);
  expectNoMapping(path("secret"), "no permission");
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
}
#endif

TEST_F(Os, a_missing_file_may_be_fine) {
  MappedFile file;
  EXPECT_EQ(file.openIfThere(path("missing").c_str()).code(), ORIEL_ERROR_IO);
  EXPECT_TRUE(file.openIfThere(write("there", "x").c_str()).ok());
}

TEST_F(Os, dropped_pages_can_still_be_read) {
  const std::string text(100000, 'p');
  MappedFile file;
  file.dropPages(0, 1);  // nothing mapped: nothing happens
  ASSERT_TRUE(file.open(write("pages", text).c_str(), Log{}).ok());
  for (const auto& [offset, bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 100000},
                                                  {1, 4095},
                                                  {4096, 4096},
                                                  {5000, 50000},
                                                  {99999, 1},
                                                  {100000, 1},
                                                  {0, UINT64_MAX},
                                                  {50, UINT64_MAX},
                                                  {UINT64_MAX, UINT64_MAX}}) {
    file.dropPages(offset, bytes);
  }
  EXPECT_EQ(textOf(file), text);
}

// --- Memory, time, chance ------------------------------------------------------------------------

TEST_F(Os, free_memory_is_known_and_plausible) {
  EXPECT_GT(freeMemoryBytes(), uint64_t{1} << 20);
  EXPECT_LT(freeMemoryBytes(), uint64_t{1} << 50);
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

// What lies beside the block keeps its pages; what is in it is as it was.
TEST(LargePages, are_asked_for_within_a_block_wherever_it_begins_and_ends) {
  constexpr size_t kBytes = 9 << 20;
  std::vector<uint8_t> bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) {
    bytes[i] = static_cast<uint8_t>(i * 7 + (i >> 12));
  }
  const std::vector<uint8_t> before = bytes;
  const std::pair<size_t, size_t> blocks[] = {{0, 0}, {1, 5}, {64, 4096}, {64, kBytes - 128},
                                              {4097, (4 << 20) + 1}};
  for (const auto& [at, size] : blocks) {
    preferLargePages(bytes.data() + at, size);
    EXPECT_EQ(before, bytes) << at << " " << size;
  }
  preferLargePages(nullptr, 0);
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
      MappedFile file;
      ASSERT_TRUE(file.open((folder + std::to_string(fd)).c_str(), Log{}).ok()) << folder;
      EXPECT_EQ("what is in it",
                std::string(reinterpret_cast<const char*>(file.data()), file.bytes()));
    }
  }
  EXPECT_EQ(5, ::lseek(fd, 0, SEEK_CUR)) << "the caller's place in it was moved";
  ::close(fd);
  expectNoMapping("/dev/fd/" + std::to_string(fd), "descriptor");
  expectNoMapping("/dev/fd/", "folder");
  expectNoMapping("/dev/fd/x", "not there");
}
#endif

}  // namespace
}  // namespace oriel
