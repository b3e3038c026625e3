// Runs the device tests on one device, ORIEL_TEST_TARGET (a compile definition, one program each):
//   cpu               the CPU executor; kernels on the reference executor, too
//   vulkan=ICD        the Vulkan driver with this ICD json, and no other
//   validation=ICD    the same under the Khronos validation layer with synchronisation validation; any
//                     message fails the run
// ORIEL_TEST_PLACES (support/tiers.h) gives the tiers of a run without a filter. Each pattern of a filter must match a test,
// and each mark of a tier. The exit code is 77 if all tests were skipped.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include "os/os.h"
#include "support/files.h"
#include "support/target.h"
#include "support/tiers.h"

namespace {

bool takePrefix(std::string* text, const std::string& prefix) {
  if (text->compare(0, prefix.size(), prefix) != 0) {
    return false;
  }
  text->erase(0, prefix.size());
  return true;
}

void setVariable(const char* name, const std::string& value) {
#ifdef _WIN32
  _putenv_s(name, value.c_str());
#else
  setenv(name, value.c_str(), 1);
#endif
}

/// ORIEL_TEST_ICD: another driver (scripts/newer_lavapipe.sh).
bool useDriver(std::string icd) {
  if (const char* const other = std::getenv("ORIEL_TEST_ICD")) {
    icd = other;
  }
#ifndef _WIN32  // In Windows emulation it is a path of the host system.
  if (!std::filesystem::exists(icd)) {
    std::cerr << "the Vulkan driver's manifest is gone: " << icd << ": configure the build again\n";
    return false;
  }
#endif
  setVariable("VK_ICD_FILENAMES", icd);
  setVariable("VK_DRIVER_FILES", icd);
  return true;
}

// A folder for the layer's settings and log, removed at the end.
class ValidationLog {
 public:
  ValidationLog() {
    std::filesystem::create_directories(folder_);
    std::ofstream settings(folder_ / "vk_layer_settings.txt");
    settings << "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
             << "khronos_validation.report_flags = error,warn,perf\n"
             << "khronos_validation.log_filename = " << path() << "\n"
             << "khronos_validation.enables = "
                "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n";
    setVariable("VK_LAYER_SETTINGS_PATH", folder_.string());
    setVariable("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation");
  }
  ~ValidationLog() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string messages() const {
    std::ifstream log(path());
    return std::string(std::istreambuf_iterator<char>(log), {});
  }

 private:
  std::string path() const { return (folder_ / "messages.txt").string(); }
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      ("oriel-validation-" + std::to_string(oriel_internal::entropy()));
};

/// As gtest matches names: * is any text, ? any character.
bool matches(const char* pattern, const char* name) {
  if (*pattern == '*') {
    return matches(pattern + 1, name) || (*name != '\0' && matches(pattern, name + 1));
  }
  return *pattern == '\0' ? *name == '\0'
                          : *name != '\0' && (*pattern == '?' || *pattern == *name) &&
                                matches(pattern + 1, name + 1);
}

bool isNameOfATest(const std::string& pattern) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(j)->name();
      if (matches(pattern.c_str(), name.c_str())) {
        return true;
      }
    }
  }
  return false;
}

/// Otherwise a renamed test would silently disappear from filters.
bool filterNamesTests() {
  const std::string filter = testing::GTEST_FLAG(filter);
  std::istringstream wanted(filter.substr(0, filter.find('-')));
  for (std::string pattern; std::getline(wanted, pattern, ':');) {
    if (!isNameOfATest(pattern)) {
      std::cerr << "no test is called " << pattern << "\n";
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  oriel_internal::test::keepFreedMemory();
  std::string target = ORIEL_TEST_TARGET;
  std::optional<ValidationLog> validation;
  if (takePrefix(&target, "validation=")) {
    validation.emplace();
    target = "vulkan=" + target;
  }
  if (takePrefix(&target, "vulkan=")) {
    if (!useDriver(target)) {
      return 1;
    }
    oriel_internal::test::setTarget(true);
  }
  if (ORIEL_TEST_EVERY_TIER) {
    setVariable("ORIEL_TEST_ALL", "1");
  }
  // The set of tests depends on the target and on allCases(), so they are registered here.
  testing::InitGoogleTest(&argc, argv);
  using namespace oriel_internal::test;
  const std::string faults =
      filterByTier(ORIEL_TEST_PLACES, kOneDevice, ORIEL_TEST_EVERY_TIER || allCases());
  std::cerr << faults;
  if (!faults.empty() || !filterNamesTests()) {
    return 1;
  }
  const int result = RUN_ALL_TESTS();
  if (validation && !validation->messages().empty()) {
    std::cerr << "the validation layer said:\n" << validation->messages();
    return 1;
  }
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  constexpr int kAllSkipped = 77;
  return result == 0 && all.successful_test_count() == 0 && all.skipped_test_count() > 0
             ? kAllSkipped
             : result;
}
