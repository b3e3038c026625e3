#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#if !defined(_WIN32)
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#endif

#include "os/os.h"
#include "tests/support/captured_log.h"
#include "tests/support/files.h"
#include "tests/support/target.h"

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

namespace oriel_internal::test_os_files {

// Small files: read whole, written under a unique name.

namespace {

namespace fs = std::filesystem;
using test::CapturedLog;

class OsFiles : public test::ScratchFolder {
 protected:
  static bool save(const std::string& name, const std::string& text,
                   FileUse use = FileUse::kCache) {
    CapturedLog log;
    const Status status =
        writeFileAtomically(name.c_str(), text.data(), text.size(), use, log.log());
    EXPECT_EQ(log.lines.size(), status.ok() ? 0u : 1u) << log.errors();
    EXPECT_TRUE(status.ok() || log.says(name.substr(0, 600))) << log.errors();
    error_ = log.errors();
    return status.ok();
  }
  std::string readSmall(const std::string& name) const {
    InputFile file;
    EXPECT_TRUE(file.openIfThere(name.c_str(), Log()).ok());
    std::string text(static_cast<size_t>(file.bytes()), '\0');
    EXPECT_TRUE(file.readAll(text.data(), Log()).ok());
    return text;
  }

  static std::string error_;  ///< of the latest save
};
std::string OsFiles::error_;

// --- Reading -------------------------------------------------------------------------------------

TEST_F(OsFiles, are_read_whole) {
  EXPECT_EQ(readSmall(write("gr\xc3\xbc\xc3\x9f dich", "hello")), "hello");
  EXPECT_EQ(readSmall(write("empty", "")), "");
  char text[5] = {};
  EXPECT_TRUE(readIfThere(write("five", "12345").c_str(), text, 5));
  EXPECT_EQ(std::string(text, 5), "12345");
  EXPECT_FALSE(readIfThere(path("five").c_str(), text, 4));
  EXPECT_FALSE(readIfThere(path("five").c_str(), text, 6));
  EXPECT_FALSE(readIfThere(path("missing").c_str(), text, 5));
}

TEST_F(OsFiles, that_are_not_there_are_no_error) {
  for (const std::string& name : {path("missing"), path("missing") + "/below", std::string()}) {
    CapturedLog log;
    InputFile file;
    EXPECT_TRUE(file.openIfThere(name.c_str(), log.log()).ok());
    EXPECT_FALSE(file.isOpen());
    EXPECT_TRUE(log.lines.empty()) << log.errors();
  }
}

TEST_F(OsFiles, whose_beginning_is_wanted_may_be_longer) {
  InputFile file;
  const std::string name = write("long", "beginning and end");
  ASSERT_TRUE(file.openIfThere(name.c_str(), Log()).ok());
  char text[9] = {};
  ASSERT_TRUE(file.read(0, text, sizeof(text), Log()).ok());
  EXPECT_EQ(std::string(text, 9), "beginning");
}

TEST_F(OsFiles, that_change_while_they_are_read_are_an_error_line) {
  for (const uintmax_t bytes : {uintmax_t{0}, uintmax_t{1}, uintmax_t{99999}, uintmax_t{100001}}) {
    const std::string name = write("changing", std::string(100000, 'x'));
    CapturedLog log;
    InputFile file;
    ASSERT_TRUE(file.openIfThere(name.c_str(), log.log()).ok());
    std::string text(static_cast<size_t>(file.bytes()), '\0');
#if defined(_WIN32)
    std::ofstream(name, std::ios::binary) << std::string(static_cast<size_t>(bytes), 'y');
#else
    fs::resize_file(name, bytes);
#endif
    EXPECT_EQ(file.readAll(text.data(), log.log()).code(), ORIEL_ERROR_IO) << bytes;
    EXPECT_EQ(log.lines.size(), 1u);
    EXPECT_TRUE(log.says("changed while it was being read") && log.says(name)) << log.errors();
  }
}

TEST_F(OsFiles, that_are_none_are_refused_without_waiting) {
  const auto expectRefused = [](const std::string& name, const char* word) {
    CapturedLog log;
    InputFile file;
    EXPECT_EQ(file.openIfThere(name.c_str(), log.log()).code(), ORIEL_ERROR_IO) << name;
    EXPECT_FALSE(file.isOpen());
    EXPECT_TRUE(log.says(word) && log.says(name)) << log.errors();
  };
  expectRefused(folder_.string(), "folder");
#if !defined(_WIN32)
  ASSERT_EQ(0, ::mkfifo(path("pipe").c_str(), 0600));
  expectRefused(path("pipe"), "pipe");
  expectRefused("/dev/zero", "device");
  ASSERT_EQ(0, ::chmod(write("secret", "x").c_str(), 0));
  const test::AsNobody nobody;
  ASSERT_TRUE(nobody.done());
  expectRefused(path("secret"), "no permission");
#endif
}

// --- Writing -------------------------------------------------------------------------------------

TEST_F(OsFiles, replace_the_old_ones_and_leave_nothing_else) {
  const std::string name = path("cache.bin");
  const std::string large(3 << 20, 'l');
  for (const FileUse use : {FileUse::kCache, FileUse::kKept}) {
    for (const std::string& text : {std::string("one"), large, std::string()}) {
      ASSERT_TRUE(save(name, text, use));
      EXPECT_EQ(read(name), text);
    }
  }
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(OsFiles, of_a_cache_have_their_folders_made) {
  const std::string name = path("a/b//c/file");
  ASSERT_TRUE(save(name, "x"));
  EXPECT_EQ(read(name), "x");
}

TEST_F(OsFiles, that_are_kept_want_their_folder_to_be_there) {
  EXPECT_FALSE(save(path("a/b/file"), "x", FileUse::kKept));
  EXPECT_NE(error_.find("its folder is not there"), std::string::npos) << error_;
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_TRUE(save(path("file"), "x", FileUse::kKept));
}

TEST_F(OsFiles, that_are_new_replace_nothing) {
  const std::string name = path("new");
  EXPECT_TRUE(save(name, "first", FileUse::kNew));
  EXPECT_FALSE(save(name, "second", FileUse::kNew));
  EXPECT_NE(error_.find("there already"), std::string::npos) << error_;
  EXPECT_EQ(read(name), "first");
  EXPECT_FALSE(save(path("a/b/file"), "x", FileUse::kNew));
  EXPECT_NE(error_.find("its folder is not there"), std::string::npos) << error_;
  EXPECT_EQ(filesInFolder(), 1u) << "nothing is left beside";
}

TEST_F(OsFiles, are_written_in_the_folder_one_is_in) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_TRUE(save("here", "x"));
  EXPECT_TRUE(save("here", "y", FileUse::kKept));
  fs::current_path(before);
  EXPECT_EQ(read(path("here")), "y");
  EXPECT_EQ(filesInFolder(), 1u);
}

TEST_F(OsFiles, may_have_the_longest_names_there_are) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows counts the whole path";
#endif
  std::string wide = "x";  // characters of two bytes that no round number of bytes ends between
  while (wide.size() < 253) {
    wide += "\xc3\xbc";
  }
  for (const std::string& name : {std::string(255, 'n'), wide}) {
    EXPECT_TRUE(save(path(name), "first")) << error_;
    EXPECT_TRUE(save(path(name), "second")) << error_;
    EXPECT_EQ(read(path(name)), "second");
  }
  EXPECT_EQ(filesInFolder(), 2u);
}

TEST_F(OsFiles, keep_their_old_text_for_who_reads_them) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows does not replace a file that is read";
#endif
  const std::string name = write("file", "old");
  InputFile file;
  ASSERT_TRUE(file.openIfThere(name.c_str(), Log()).ok());
  ASSERT_TRUE(save(name, "newer"));
  char text[3];
  ASSERT_TRUE(file.read(0, text, 3, Log()).ok());
  EXPECT_EQ(std::string(text, 3), "old");
  EXPECT_EQ(read(name), "newer");
}

TEST_F(OsFiles, that_cannot_be_written_are_an_error_and_leave_nothing) {
  write("plain", "x");
  EXPECT_FALSE(save(path("plain") + "/file", "x"));
  fs::create_directory(folder_ / "taken");
  write("taken/inside", "x");
  EXPECT_FALSE(save(path("taken"), "x"));
  EXPECT_FALSE(save(path(std::string(300, 'x')), "x"));
  EXPECT_FALSE(save(path(std::string(5000, 'x')), "x"));
  EXPECT_EQ(filesInFolder(), 2u);
}

#if !defined(_WIN32)

// Renaming over /dev/null would remove it for everyone.
TEST_F(OsFiles, do_not_replace_what_is_none) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
  EXPECT_FALSE(save(pipe, "x"));
  EXPECT_NE(error_.find("it is a device or a pipe"), std::string::npos) << error_;
  EXPECT_TRUE(fs::is_fifo(pipe));
  fs::create_directory(folder_ / "folder");
  fs::create_directory_symlink(folder_ / "folder", folder_ / "link");  // a folder, too
  EXPECT_FALSE(save(path("folder"), "x"));
  CapturedLog log;
  EXPECT_FALSE(writeFileAtomically(path("link").c_str(), "x", 1, FileUse::kKept, log.log()).ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(filesInFolder(), 0u);
}

TEST_F(OsFiles, behind_a_link_are_replaced_and_the_link_stays) {
  const std::string target = write("target", "old");
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(save(path("link"), "new", FileUse::kKept));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(target), "new");
  // Also for a missing target, and through another link.
  fs::create_directory(folder_ / "folder");
  fs::create_symlink("folder/first", folder_ / "leads");
  fs::create_symlink(folder_ / "leads", folder_ / "far");
  ASSERT_TRUE(save(path("far"), "made", FileUse::kKept));
  EXPECT_TRUE(fs::is_symlink(path("far")) && fs::is_symlink(path("leads")));
  EXPECT_EQ(read(path("folder/first")), "made");
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_FALSE(save(path("circle"), "x", FileUse::kKept));
  EXPECT_TRUE(fs::is_symlink(path("circle")));
}

mode_t modeOf(const std::string& name) {
  struct stat info = {};
  EXPECT_EQ(0, ::stat(name.c_str(), &info));
  return info.st_mode & 0777;
}

TEST_F(OsFiles, are_their_owners_alone_whatever_the_umask) {
  for (const mode_t mask : {mode_t{0}, mode_t{022}, mode_t{077}}) {
    const mode_t before = ::umask(mask);
    for (const FileUse use : {FileUse::kCache, FileUse::kKept}) {
      EXPECT_TRUE(save(path("kept"), "x", use));
      EXPECT_EQ(modeOf(path("kept")), 0600u);
    }
    EXPECT_TRUE(save(path("cache/below/file"), "x"));
    EXPECT_EQ(modeOf(path("cache/below/file")), 0600u);
    EXPECT_EQ(modeOf(path("cache/below")), 0700u);
    EXPECT_EQ(modeOf(path("cache")), 0700u);
    fs::remove_all(path("cache"));
    fs::remove(path("kept"));
    ::umask(before);
  }
}

TEST_F(OsFiles, keep_the_stricter_of_two_modes_when_they_are_replaced) {
  const mode_t before = ::umask(0);
  for (const auto& [old, wanted] : {std::pair<mode_t, mode_t>{0644, 0600},
                                    {0666, 0600},
                                    {0600, 0600},
                                    {0400, 0400},
                                    {0640, 0600},
                                    {0444, 0400}}) {
    const std::string name = write("kept", "old");
    ASSERT_EQ(0, ::chmod(name.c_str(), old));
    EXPECT_TRUE(save(name, "new", FileUse::kKept));
    EXPECT_EQ(read(name), "new");
    EXPECT_EQ(modeOf(name), wanted) << old;
    fs::remove(name);
  }
  ::umask(before);
}

TEST_F(OsFiles, are_not_written_through_what_somebody_planted_beside_them) {
  const std::string name = path("kept");
  const std::string victim = write("victim", "untouched");
  fs::create_symlink("victim", folder_ / "kept.oriel-tmp");
  fs::create_symlink("victim", folder_ / "kept.0123456789abcdef.oriel-tmp");
  fs::create_directory(folder_ / "kept.fedcba9876543210.oriel-tmp");
  ASSERT_EQ(0, ::mkfifo(path("kept.00000000000000ff.oriel-tmp").c_str(), 0600));
  EXPECT_TRUE(save(name, "new"));
  EXPECT_EQ(read(name), "new");
  EXPECT_FALSE(fs::is_symlink(name));
  EXPECT_EQ(read(victim), "untouched");
  // Not a file, so no writer's leftover: it stays.
  EXPECT_TRUE(fs::is_symlink(path("kept.oriel-tmp")));
  EXPECT_TRUE(fs::is_symlink(path("kept.0123456789abcdef.oriel-tmp")));
  EXPECT_TRUE(fs::is_directory(path("kept.fedcba9876543210.oriel-tmp")));
  EXPECT_TRUE(fs::is_fifo(path("kept.00000000000000ff.oriel-tmp")));
}

// A cache folder may be writable for others: a link's target is not touched.
TEST_F(OsFiles, of_a_cache_replace_a_link_and_others_follow_it) {
  const std::string victim = write("victim", "untouched");
  const std::string cached = path("cached");
  fs::create_symlink("victim", cached);
  EXPECT_TRUE(save(cached, "new", FileUse::kCache));
  EXPECT_FALSE(fs::is_symlink(cached));
  EXPECT_EQ(read(cached), "new");
  EXPECT_EQ(read(victim), "untouched");
  fs::create_symlink("nowhere", path("dangling"));
  EXPECT_TRUE(save(path("dangling"), "new", FileUse::kCache));
  EXPECT_FALSE(fs::exists(path("nowhere")));
}

TEST_F(OsFiles, past_the_largest_size_are_an_error_and_not_the_end) {
  const pid_t writes = ::fork();
  if (writes == 0) {
    const struct rlimit little = {100, 100};
    if (::setrlimit(RLIMIT_FSIZE, &little) != 0) {
      ::_exit(2);
    }
    const std::string much(1000, 'x');
    SpillFile spill;
    const bool refused =
        writeFileAtomically(path("large").c_str(), much.data(), much.size(), FileUse::kKept, Log())
                .code() == ORIEL_ERROR_IO &&
        spill.create(folder_.c_str(), much.size(), Log()).code() == ORIEL_ERROR_IO;
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(writes, ::waitpid(writes, &status, 0));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(OsFiles, in_a_folder_that_cannot_be_looked_at_are_not_said_to_be_gone) {
  fs::create_symlink("loop", path("loop"));
  uint32_t left = 0;
  EXPECT_EQ(0u, removeFiles(path("loop").c_str(), "oriel-", ".verdict", &left));
  EXPECT_EQ(1u, left);
  left = 0;
  EXPECT_EQ(0u, removeFiles(path("none").c_str(), "oriel-", ".verdict", &left));
  EXPECT_EQ(0u, left);
}

// The first one's file was removed; it must not remove the second one's.
TEST_F(OsFiles, of_work_under_way_are_removed_by_their_owner_alone) {
  const std::string name = path("mark");
  uint8_t was[WorkMarker::kMostBytes];
  size_t left = 0;
  WorkMarker first;
  WorkMarker second;
  ASSERT_TRUE(first.begin(name.c_str(), was, &left));
  fs::remove(name);
  ASSERT_TRUE(second.begin(name.c_str(), was, &left));
  first.end();
  EXPECT_TRUE(fs::exists(name));
  second.end();
  EXPECT_FALSE(fs::exists(name));
}

TEST_F(OsFiles, that_others_can_write_to_are_no_markers) {
  uint8_t was[WorkMarker::kMostBytes];
  size_t left = 0;
  const std::string open_to_all = write("open", "of anybody");
  ASSERT_EQ(0, ::chmod(open_to_all.c_str(), 0666));
  const std::string linked = write("linked", "precious");
  ASSERT_EQ(0, ::link(linked.c_str(), path("second").c_str()));
  for (const std::string& each : {open_to_all, linked}) {
    WorkMarker marker;
    EXPECT_FALSE(marker.begin(each.c_str(), was, &left)) << each;
    marker.write("overwritten", 11);
    marker.end();
    EXPECT_TRUE(fs::exists(each)) << each;
  }
  EXPECT_EQ(read(linked), "precious");
}

TEST_F(OsFiles, of_another_user_are_not_taken_up_nor_removed) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can make another user's file";
  }
  fs::permissions(folder_, fs::perms::all);
  const std::string planted = write("kept.oriel-tmp", "somebody else's");
  ASSERT_EQ(0, ::chown(planted.c_str(), 1, 1));
  ASSERT_EQ(0, ::chmod(planted.c_str(), 0666));
  EXPECT_TRUE(save(path("kept"), "secret"));
  EXPECT_EQ(read(planted), "somebody else's");
  struct stat info = {};
  ASSERT_EQ(0, ::stat(path("kept").c_str(), &info));
  EXPECT_EQ(info.st_uid, 0u);
}

TEST_F(OsFiles, that_processes_left_behind_go_with_the_next_write) {
  for (const FileUse use : {FileUse::kCache, FileUse::kKept}) {
    write("kept.oriel-tmp", "half of something longer");
    write("kept.0123456789abcdef.oriel-tmp", "half");
    ASSERT_EQ(0, ::chmod(write("kept.0123456789abcde0.oriel-tmp", "half").c_str(), 0400));
    write("kept.0123456789abcdeX.oriel-tmp", "not one of those");
    write("other.0123456789abcdef.oriel-tmp", "of another file");
    write("kept.0123456789abcdef.oriel-tmp.txt", "the user's");
    ASSERT_TRUE(save(path("kept"), "new", use));
    EXPECT_EQ(read(path("kept")), "new");
    EXPECT_EQ(filesInFolder(), 4u);
  }
}

/// A child process that is killed at the end. It runs `work`, which gets the place to report its start.
class Child {
 public:
  template <typename Work>
  explicit Child(const Work& work) {
    int ends[2];
    EXPECT_EQ(0, ::pipe(ends));
    id_ = ::fork();
    if (id_ == 0) {
      work([&] { return ::write(ends[1], "x", 1) == 1; });
      ::_exit(0);
    }
    ::close(ends[1]);
    char begun = 0;
    EXPECT_EQ(1, ::read(ends[0], &begun, 1));
    ::close(ends[0]);
  }
  ~Child() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t id() const { return id_; }

 private:
  pid_t id_ = -1;
};

TEST_F(OsFiles, are_written_at_once_beside_a_frozen_writer_whose_file_stays) {
  for (const std::string half : {"kept.oriel-tmp", "kept.0123456789abcdef.oriel-tmp"}) {
    const std::string held = write(half, "half");
    {
      const Child frozen([&](const auto& begin) {
        const int fd = ::open(held.c_str(), O_WRONLY);
        if (::flock(fd, LOCK_EX) == 0 && begin()) {
          ::pause();
        }
      });
      ASSERT_EQ(0, ::kill(frozen.id(), SIGSTOP));
      const double begin = nowMs();
      EXPECT_TRUE(save(path("kept"), "new", FileUse::kKept));
      EXPECT_LT(nowMs() - begin, 5000.0);
      EXPECT_EQ(read(path("kept")), "new");
      EXPECT_EQ(read(held), "half") << "somebody was writing it";
    }
    EXPECT_TRUE(save(path("kept"), "newer"));  // its writer has died
    EXPECT_FALSE(fs::exists(held));
  }
}

TEST_F(OsFiles, are_old_or_new_when_writers_are_killed_and_litter_does_not_grow) {
  const std::string name = path("kept");
  const std::string old_text(1 << 20, 'o');
  const std::string new_text(1 << 20, 'n');
  ASSERT_TRUE(save(name, old_text));
  size_t most = 0;
  const int rounds = test::allCases() ? 40 : 20;
  for (int i = 0; i < rounds; ++i) {
    {
      const Child writer([&](const auto& begin) {
        (void)begin();
        for (bool flip = false;; flip = !flip) {
          const std::string& text = flip ? old_text : new_text;
          (void)writeFileAtomically(name.c_str(), text.data(), text.size(), FileUse::kCache, Log());
        }
      });
      std::this_thread::sleep_for(std::chrono::microseconds(500 * (i % 10)));
    }
    const std::string text = read(name);
    ASSERT_TRUE(text == old_text || text == new_text) << text.size();
    most = std::max(most, filesInFolder());
  }
  EXPECT_LE(most, 2u) << "one file, and what the last one left";
  ASSERT_TRUE(save(name, new_text));
  EXPECT_EQ(filesInFolder(), 1u);
}

// Every write looks for leftovers, so another process's current file must not look like one.
TEST_F(OsFiles, do_not_fail_each_other_from_several_processes) {
  const std::string name = path("shared");
  std::vector<pid_t> writers;
  for (char letter = 'a'; letter < 'd'; ++letter) {
    const pid_t id = ::fork();
    if (id == 0) {
      const std::string text(10000, letter);
      int failed = 0;
      for (int i = 0; i < 100; ++i) {
        failed +=
            writeFileAtomically(name.c_str(), text.data(), text.size(), FileUse::kCache, Log()).ok()
                ? 0
                : 1;
      }
      ::_exit(failed);
    }
    writers.push_back(id);
  }
  for (const pid_t id : writers) {
    int status = -1;
    ASSERT_EQ(id, ::waitpid(id, &status, 0));
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(filesInFolder(), 1u);
}

#endif

TEST_F(OsFiles, written_at_the_same_time_are_one_whole_file) {
  const std::string name = path("shared");
  std::vector<std::thread> writers;
  std::atomic<int> failed{0};
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.emplace_back([&, letter] {
      const std::string text(10000, letter);
      for (int i = 0; i < 20; ++i) {
        failed +=
            writeFileAtomically(name.c_str(), text.data(), text.size(), FileUse::kCache, Log()).ok()
                ? 0
                : 1;
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  EXPECT_EQ(failed.load(), 0);
  const std::string text = read(name);
  EXPECT_EQ(text.size(), 10000u);
  EXPECT_EQ(std::set<char>(text.begin(), text.end()).size(), 1u);
  EXPECT_EQ(filesInFolder(), 1u);
}

}  // namespace
}  // namespace oriel_internal::test_os_files
