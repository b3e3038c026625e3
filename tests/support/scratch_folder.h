// A private folder for a test. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "os/os.h"

#if !defined(_WIN32)
#include <unistd.h>
#endif

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

}  // namespace oriel_internal::test
