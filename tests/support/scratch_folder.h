// A private folder for a test. Tests only.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <gtest/gtest.h>
#include <cstdlib>  // defines __GLIBC__

#if !defined(_WIN32)
#include <unistd.h>
#endif

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "os/os.h"

namespace oriel_internal::test {

/// A fresh folder, removed at the end.
class ScratchFolder : public testing::Test {
 protected:
  ScratchFolder()
      : folder_(std::filesystem::temp_directory_path() /
                ("oriel-test-" + std::to_string(entropy()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ScratchFolder() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }
  static std::string read(const std::string& name) {
    std::ifstream in(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  size_t filesInFolder() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  std::filesystem::path folder_;
};

#if !defined(_WIN32)
/// Acts as a user without files, even if the tests run as root.
class AsNobody {
 public:
  AsNobody() : user_(::geteuid()) { done_ = user_ != 0 || ::seteuid(65534) == 0; }
  ~AsNobody() { EXPECT_EQ(0, ::seteuid(user_)); }
  bool done() const { return done_; }

 private:
  uid_t user_;
  bool done_;
};
#endif

// Keeps freed memory in the process. Tests only.

/// Tests load and free models many times: getting zeroed pages from the system each time takes a third of the tests'
/// time.
inline void keepFreedMemory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 1 << 24);
#endif
}

}  // namespace oriel_internal::test
