// Tiers: where a test runs. A mark above a test names its tier; a mark with cases holds for these cases of a TEST_P.
// FILE_RUNS_ON, with or without cases, holds for all tests of its file. The last mark that holds for a case counts, those
// of the file before those of the test. Without a mark, tests are unit tests in tests/unit, kOneDevice elsewhere.
//
//   RUNS_ON(kCpu);                                         RUNS_ON(kEachDevice, "llama_q4_k_m");
//   TEST(Turns, take_no_more_than_planned) {               TEST_P(ModelLogits, equal_the_float64_reference) {
//
// scripts/test.sh --all runs every test on every device that it can use.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace oriel_internal::test {

enum Place : uint32_t { kOnCpu = 1, kOnFirstGpu = 2, kOnSecondGpu = 4, kOnValidatedGpu = 8 };

// The tiers of an ordinary run. The CPU never runs those that are called after GPUs.
constexpr uint32_t kNightly = 0;
constexpr uint32_t kNightlyGpu = 16;  // no place
constexpr uint32_t kCpu = kOnCpu;
constexpr uint32_t kOneGpu = kOnFirstGpu;
constexpr uint32_t kEachGpu = kOnFirstGpu | kOnSecondGpu;
constexpr uint32_t kOneDevice = kCpu | kOneGpu;
constexpr uint32_t kEachDevice = kCpu | kEachGpu;
/// In addition, the first GPU runs the test under the validation layer, if that is installed.
constexpr uint32_t kValidated = kOnValidatedGpu;

struct TierMark {
  std::string file;
  int line;  // above the test's; 0: of the whole file
  uint32_t places;
  std::vector<std::string> cases;  // empty: all
};
inline std::vector<TierMark>& marks() {
  static std::vector<TierMark> all;
  return all;
}
inline bool addMark(const char* file, int line, uint32_t places, std::vector<std::string> cases) {
  marks().push_back({file, line, places, std::move(cases)});
  return true;
}

#define ORIEL_JOINED(a, b) a##b
#define ORIEL_MARK_NAME(number) ORIEL_JOINED(runs_on_, number)
#define RUNS_ON(tier, ...)                                          \
  [[maybe_unused]] static const bool ORIEL_MARK_NAME(__COUNTER__) = \
      ::oriel_internal::test::addMark(__FILE__, __LINE__, tier, {__VA_ARGS__})

#define FILE_RUNS_ON(tier, ...)                                     \
  [[maybe_unused]] static const bool ORIEL_MARK_NAME(__COUNTER__) = \
      ::oriel_internal::test::addMark(__FILE__, 0, tier, {__VA_ARGS__})

struct TestPlace {
  std::string name;  // SUITE.TEST or PREFIX/SUITE.TEST/CASE
  std::string file;
  int line;
};

inline std::vector<TestPlace> registeredTests() {
  std::vector<TestPlace> tests;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      tests.push_back({std::string(suite.name()) + "." + test.name(), test.file(), test.line()});
    }
  }
  return tests;
}

/// The tests of a program that run at `here`, a set of places, and the marks that have no test.
struct Tiers {
  std::vector<std::string> tests;
  std::vector<std::string> faults;
};
inline Tiers tiersOf(const std::vector<TestPlace>& tests, const std::vector<TierMark>& marks,
                     uint32_t here, uint32_t unmarked, bool every_test) {
  // A mark belongs to the first test below it in its file.
  std::map<std::string, std::map<int, std::vector<const TierMark*>>> marked;
  for (const TestPlace& test : tests) {
    marked[test.file][test.line];
  }
  std::map<std::string, std::vector<const TierMark*>> of_files;
  std::map<const TierMark*, std::vector<std::string>> unused;
  Tiers tiers;
  for (const TierMark& mark : marks) {
    if (mark.line == 0 && !marked[mark.file].empty()) {
      of_files[mark.file].push_back(&mark);
      unused[&mark] = mark.cases;
      continue;
    }
    std::map<int, std::vector<const TierMark*>>& lines = marked[mark.file];
    const auto below = lines.upper_bound(mark.line);
    if (below == lines.end()) {
      tiers.faults.push_back(mark.file + ":" + std::to_string(mark.line) +
                             ": no test follows RUNS_ON");
      continue;
    }
    below->second.push_back(&mark);
    unused[&mark] = mark.cases;
  }
  for (const TestPlace& test : tests) {
    const std::string name = test.name.substr(test.name.rfind('/') + 1);
    std::vector<const TierMark*> all = of_files[test.file];
    const std::vector<const TierMark*>& own = marked[test.file][test.line];
    all.insert(all.end(), own.begin(), own.end());
    uint32_t places = unmarked;
    uint32_t of_any_case = places;
    for (const TierMark* mark : all) {
      std::vector<std::string>& left = unused[mark];
      left.erase(std::remove(left.begin(), left.end(), name), left.end());
      const bool holds =
          mark->cases.empty() || std::count(mark->cases.begin(), mark->cases.end(), name);
      places = holds ? mark->places : places;
      of_any_case |= mark->places;
    }
    if (every_test) {
      const bool needs_gpu = places != kNightly && (places & kOnCpu) == 0;
      places = kOnFirstGpu | kOnSecondGpu | (needs_gpu ? 0u : kOnCpu) | (of_any_case & kValidated);
    } else if ((places & kValidated) != 0) {
      places &= ~kOnFirstGpu;
    }
    if ((places & here) != 0) {
      tiers.tests.push_back(test.name);
    }
  }
  for (const auto& [mark, cases] : unused) {
    for (const std::string& name : cases) {
      if ((here & ~kOnCpu) != 0) {  // The CPU has no cases for the paths of a GPU.
        tiers.faults.push_back(mark->file + ":" + std::to_string(mark->line) +
                               ": no case is called " + name);
      }
    }
  }
  if (tiers.tests.empty()) {
    tiers.faults.push_back("no test has a tier that runs here");
  }
  return tiers;
}

/// Without a filter, a program runs the tests of its places. Returns a line for each wrong mark; with a filter none: each
/// test is a process, and the one that lists the tests has checked the marks.
inline std::string filterByTier(uint32_t here, uint32_t unmarked, bool every_test) {
  if (testing::GTEST_FLAG(filter) != "*") {
    return "";
  }
  const Tiers tiers = tiersOf(registeredTests(), marks(), here, unmarked, every_test);
  std::string filter, faults;
  for (const std::string& name : tiers.tests) {
    filter += (filter.empty() ? "" : ":") + name;
  }
  testing::GTEST_FLAG(filter) = filter;
  for (const std::string& fault : tiers.faults) {
    faults += fault + "\n";
  }
  return faults;
}

}  // namespace oriel_internal::test
