// Tiers of tests: which tests run where, and marks without a test.
#include <gtest/gtest.h>

#include "support/tiers.h"

namespace oriel_internal::test::test_tiers {
namespace {

using Names = std::vector<std::string>;

const std::vector<TestPlace> kTests = {{"Turns.plain", "a.cpp", 10},
                                       {"Turns.on_the_cpu", "a.cpp", 20},
                                       {"Models/Logits.equal/f16", "a.cpp", 30},
                                       {"Models/Logits.equal/q8_0", "a.cpp", 30},
                                       {"Executor.layers", "b.cpp", 10},
                                       {"Executor.nightly", "b.cpp", 20}};
const std::vector<Mark> kMarks = {{"a.cpp", 19, kCpu, {}},
                                  {"a.cpp", 28, kCpu, {}},
                                  {"a.cpp", 29, kEachDevice | kValidated, {"q8_0"}},
                                  {"b.cpp", 9, kEachGpu, {}},
                                  {"b.cpp", 19, kNightly, {}}};

Names at(uint32_t here, bool every_test = false) {
  const Tiers tiers = tiersOf(kTests, kMarks, here, kOneDevice, every_test);
  EXPECT_EQ(Names(), tiers.faults);
  return tiers.tests;
}
Names faultsOf(const std::vector<Mark>& marks, uint32_t here = kOnFirstGpu) {
  return tiersOf(kTests, marks, here, kOneDevice, false).faults;
}

TEST(Tiers, give_each_device_its_tests) {
  EXPECT_EQ(Names({"Turns.plain", "Turns.on_the_cpu", "Models/Logits.equal/f16",
                   "Models/Logits.equal/q8_0"}),
            at(kOnCpu));
  EXPECT_EQ(Names({"Turns.plain", "Executor.layers"}), at(kOnFirstGpu));
  EXPECT_EQ(Names({"Models/Logits.equal/q8_0", "Executor.layers"}), at(kOnSecondGpu));
  EXPECT_EQ(Names({"Models/Logits.equal/q8_0"}), at(kOnValidatedGpu));
}

TEST(Tiers, run_validated_tests_without_the_layer_where_there_is_none) {
  EXPECT_EQ(Names({"Turns.plain", "Models/Logits.equal/q8_0", "Executor.layers"}),
            at(kOnFirstGpu | kOnValidatedGpu));
}

TEST(Tiers, are_all_run_on_request) {
  EXPECT_EQ(6u, at(kOnFirstGpu, true).size());
  EXPECT_EQ(6u, at(kOnSecondGpu, true).size());
  EXPECT_EQ(Names({"Turns.plain", "Turns.on_the_cpu", "Models/Logits.equal/f16",
                   "Models/Logits.equal/q8_0", "Executor.nightly"}),
            at(kOnCpu, true));
  EXPECT_EQ(Names({"Models/Logits.equal/f16", "Models/Logits.equal/q8_0"}),
            at(kOnValidatedGpu, true));
}

TEST(Tiers, that_match_nothing_are_faults) {
  EXPECT_EQ(Names({"a.cpp:31: no test follows RUNS_ON"}), faultsOf({{"a.cpp", 31, kCpu, {}}}));
  EXPECT_EQ(Names({"gone.cpp:1: no test follows RUNS_ON"}), faultsOf({{"gone.cpp", 1, kCpu, {}}}));
  EXPECT_EQ(Names({"a.cpp:29: no case is called q9"}),
            faultsOf({{"a.cpp", 29, kCpu, {"f16", "q9"}}}));
  EXPECT_EQ(Names({"no test has a tier that runs here"}), faultsOf({}, kOnSecondGpu));
}

}  // namespace
}  // namespace oriel_internal::test::test_tiers
