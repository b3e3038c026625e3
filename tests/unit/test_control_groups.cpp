// Memory limits in file trees like Linux's.
#if defined(__linux__)
#include "os/control_groups.h"

#include <filesystem>

#include "tests/support/scratch_folder.h"

namespace oriel_internal::test_control_groups {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kNone = UINT64_MAX;
const std::string kNoLegacyLimit = "9223372036854771712\n";  // version 1's equivalent of "max"

class ControlGroups : public test::ScratchFolder {
 protected:
  void file(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    write(name, text);
  }
  void inGroups(const std::string& lines) const { file("proc/self/cgroup", lines); }
  /// `idle` and `active`: pages of files in the two lists of the kernel.
  void unified(const std::string& group, const std::string& limit, uint64_t used, uint64_t idle,
               uint64_t active = 0) const {
    const std::string at = "sys/fs/cgroup" + group;
    file(at + "/memory.max", limit);
    file(at + "/memory.current", std::to_string(used) + "\n");
    file(at + "/memory.stat", "anon 1\nfile " + std::to_string(kMiB + idle + active) + "\nshmem " +
                                  std::to_string(kMiB) + "\nfile_dirty " + std::to_string(idle) +
                                  "\ninactive_anon 3\ninactive_file " + std::to_string(idle) +
                                  "\nactive_file " + std::to_string(active) + "\nunevictable 5\n");
  }
  void legacy(const std::string& group, const std::string& limit, uint64_t used, uint64_t idle,
              uint64_t active = 0) const {
    const std::string at = "sys/fs/cgroup/memory" + group;
    file(at + "/memory.limit_in_bytes", limit);
    file(at + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    // The first ones exclude child groups.
    file(at + "/memory.stat",
         "cache 1\ninactive_file 7\nactive_file 8\nhierarchical_memory_limit 5\ntotal_cache " +
             std::to_string(kMiB + idle + active) + "\ntotal_shmem " + std::to_string(kMiB) +
             "\ntotal_inactive_file " + std::to_string(idle) + "\ntotal_active_file " +
             std::to_string(active) + "\n");
  }
  uint64_t left() const { return freeInControlGroups(folder_.string().c_str()); }
};

TEST_F(ControlGroups, that_are_not_there_limit_nothing) {
  EXPECT_EQ(left(), kNone);
  inGroups("");
  EXPECT_EQ(left(), kNone);
  inGroups("nonsense\n:::\n0:\n0::\n\n7:memory\n:memory:/x\n0::relative\n");
  EXPECT_EQ(left(), kNone);
}

TEST_F(ControlGroups, of_version_2_limit_what_is_below_them) {
  inGroups("0::/user.slice/app.scope\n");
  unified("/user.slice/app.scope", "max\n", 10 * kMiB, 0);
  EXPECT_EQ(left(), kNone);
  unified("/user.slice", std::to_string(100 * kMiB) + "\n", 60 * kMiB, 20 * kMiB);
  EXPECT_EQ(left(), 60 * kMiB);
  unified("/user.slice/app.scope", std::to_string(30 * kMiB) + "\n", 10 * kMiB, kMiB);
  EXPECT_EQ(left(), 21 * kMiB);
  unified("", std::to_string(5 * kMiB) + "\n", 9 * kMiB, 0);  // more than allowed is in use
  EXPECT_EQ(left(), 0u);
}

TEST_F(ControlGroups, of_version_1_are_seen) {
  inGroups("11:cpu,cpuacct:/app\n9:memory:/user.slice/app\n1:name=systemd:/user.slice\n");
  legacy("", kNoLegacyLimit, 900 * kMiB, 0);
  legacy("/user.slice", std::to_string(100 * kMiB) + "\n", 60 * kMiB, 20 * kMiB);
  EXPECT_EQ(left(), 60 * kMiB);
  legacy("/user.slice/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 4 * kMiB);
  EXPECT_EQ(left(), 24 * kMiB);
}

TEST_F(ControlGroups, of_version_1_may_be_mounted_with_others) {
  legacy("/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 0);
  for (const std::string controllers :
       {"memory", "cpu,memory", "memory,cpu", "a,memory,b", ",memory"}) {
    inGroups("4:" + controllers + ":/app\n");
    EXPECT_EQ(left(), 20 * kMiB) << controllers;
  }
  for (const std::string controllers : {"name=memory", "memory2", "hugememory", "cpu", ","}) {
    inGroups("4:" + controllers + ":/app\n");
    EXPECT_EQ(left(), kNone) << controllers;
  }
}

TEST_F(ControlGroups, of_both_versions_at_once_are_those_that_have_the_memory) {
  inGroups("9:memory:/app\n1:name=systemd:/app.service\n0::/app.service\n");
  file("sys/fs/cgroup/unified/app.service/cgroup.procs", "1\n");
  legacy("/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 0);
  EXPECT_EQ(left(), 20 * kMiB);
}

// A model that was read twice (e.g. downloaded and checked) is on the list of active pages. These never count against a
// limit. The megabyte of shmem stays in use.
TEST_F(ControlGroups, leave_the_pages_of_files_however_lately_they_were_used) {
  const std::string limit = std::to_string(256 * kMiB) + "\n";
  inGroups("9:memory:/app\n");
  legacy("/app", limit, 250 * kMiB, 10 * kMiB, 230 * kMiB);
  EXPECT_EQ(left(), 246 * kMiB);
  legacy("", limit, 255 * kMiB, 0, 30 * kMiB);  // including other users of the machine
  EXPECT_EQ(left(), 31 * kMiB);
  inGroups("0::/pod/app\n");
  unified("/pod/app", limit, 250 * kMiB, 10 * kMiB, 230 * kMiB);
  EXPECT_EQ(left(), 246 * kMiB);
  unified("/pod", limit, 255 * kMiB, 10 * kMiB, 20 * kMiB);
  EXPECT_EQ(left(), 31 * kMiB);
  unified("/pod", limit, 3 * kMiB, 2 * kMiB, 2 * kMiB);  // the numbers are read at different times
  EXPECT_EQ(left(), 246 * kMiB);
}

// Beyond memory.high nothing is killed, but the kernel stops the group's threads while it looks for memory.
TEST_F(ControlGroups, of_version_2_are_not_filled_until_they_are_slowed_down) {
  inGroups("0::/app\n");
  unified("/app", "max\n", 50 * kMiB, 10 * kMiB);
  file("sys/fs/cgroup/app/memory.high", "max\n");
  EXPECT_EQ(left(), kNone);
  file("sys/fs/cgroup/app/memory.high", std::to_string(70 * kMiB) + "\n");
  EXPECT_EQ(left(), 30 * kMiB);
  unified("/app", std::to_string(60 * kMiB) + "\n", 50 * kMiB, 10 * kMiB);
  EXPECT_EQ(left(), 20 * kMiB);
}

// A container sees its own group as the mount, under the host's name for it.
TEST_F(ControlGroups, of_a_container_are_what_is_mounted) {
  inGroups("9:memory:/docker/0123456789abcdef\n");
  legacy("", std::to_string(64 * kMiB) + "\n", 24 * kMiB, 0);
  EXPECT_EQ(left(), 40 * kMiB);
  inGroups("0::/docker/0123456789abcdef\n");
  unified("", std::to_string(50 * kMiB) + "\n", 20 * kMiB, 0);
  EXPECT_EQ(left(), 30 * kMiB);
  inGroups("0::/../../outside\n");
  file("outside/memory.max", "1\n");
  file("sys/outside/memory.max", "1\n");
  EXPECT_EQ(left(), 30 * kMiB);
}

TEST_F(ControlGroups, are_found_behind_a_kilobyte_of_others_and_in_a_last_line_without_end) {
  legacy("/app", std::to_string(30 * kMiB) + "\n", 10 * kMiB, 0);
  std::string lines;
  for (int i = 200; i > 9; --i) {
    lines += std::to_string(i) + ":name=other" + std::to_string(i) + ":/kubepods/" +
             std::string(60, 'x') + "\n";
  }
  for (const std::string end : {"\n", "", "\n0::/\n"}) {
    inGroups(lines + "9:memory:/app" + end);
    EXPECT_EQ(left(), 20 * kMiB);
  }
  for (const size_t length : {4000u, 4300u, 4351u, 4352u, 9000u}) {
    inGroups("10:name=long:/" + std::string(length, 'y') + "\n9:memory:/app\n");
    EXPECT_EQ(left(), 20 * kMiB) << length;
    inGroups("10:memory:/" + std::string(length, 'y') + "\n");
    EXPECT_EQ(left(), kNone) << length;
  }
}

TEST_F(ControlGroups, of_this_machine_can_be_read) { EXPECT_GT(freeInControlGroups(""), kMiB); }

}  // namespace
}  // namespace oriel_internal::test_control_groups
#endif
