// Runs the unit tests. An ordinary run leaves out the tier kNightly (support/tiers.h).
#include <cstdlib>
#include <iostream>

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/tiers.h"

int main(int argc, char** argv) {
  oriel_internal::test::keepFreedMemory();
  testing::InitGoogleTest(&argc, argv);
  using namespace oriel_internal::test;
  const bool every_tier = ORIEL_TEST_EVERY_TIER || std::getenv("ORIEL_TEST_ALL") != nullptr;
  const std::string faults = filterByTier(kOnCpu, kCpu, every_tier);
  std::cerr << faults;
  return faults.empty() ? RUN_ALL_TESTS() : 1;
}
