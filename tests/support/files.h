// Test data and scratch folders.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
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
#include "support/encoding.h"

namespace oriel_internal::test {

// Locations of test data.

/// `relative` in tests/data, in the build (files that scripts/make_types.py made), or in the folder of reference
/// data (tests/data/README.md); empty if in none.
inline std::string dataFile(const std::string& relative) {
  for (const std::string root : {ORIEL_TEST_DATA, ORIEL_MADE_DATA, ORIEL_REFERENCE_DATA}) {
    if (fileExists(root + "/" + relative)) {
      return root + "/" + relative;
    }
  }
  return "";
}

/// A model's prompts with their exact logits, from data/logits.json or the folder of reference data; empty if in none.
inline nlohmann::json goldenPrompts(const std::string& model) {
  nlohmann::json models = readJson(ORIEL_TEST_DATA "/logits.json")["models"];
  if (models.contains(model)) {
    return models[model]["prompts"];
  }
  const std::string file = dataFile("logits/" + model + ".json");
  return file.empty() ? nlohmann::json() : readJson(file)["prompts"];
}

}  // namespace oriel_internal::test

/// Skips the test with a reason if data outside the repository is missing.
#define ORIEL_SKIP_WITHOUT(found, what)                                                    \
  if (!(found)) {                                                                          \
    GTEST_SKIP() << what << ": not in the repository, and not in the folder of reference " \
                 << "data (CMake's ORIEL_REFERENCE_DATA; see tests/data/README.md)";       \
  }
/// A constant with the path of a file that the test needs.
#define ORIEL_NEED_DATA(variable, relative)                                \
  const std::string variable = ::oriel_internal::test::dataFile(relative); \
  ORIEL_SKIP_WITHOUT(!variable.empty(), relative)
/// The same, with a model's prompts and their exact logits.
#define ORIEL_NEED_LOGITS(variable, model)                                      \
  const nlohmann::json variable = ::oriel_internal::test::goldenPrompts(model); \
  ORIEL_SKIP_WITHOUT(!variable.empty(), "logits of " << model)

namespace oriel_internal::test {

// A private folder for a test. Tests only.

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
    std::ostringstream text;
    text << std::ifstream(name, std::ios::binary).rdbuf();
    return text.str();
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
