// Where test data is.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/encoding.h"

namespace oriel::test {

/// `relative` below tests/data if it is there, else below shared/golden; empty if in neither.
inline std::string dataFile(const std::string& relative) {
  for (const std::string root : {ORIEL_TEST_DATA, ORIEL_SHARED_GOLDEN}) {
    if (fileExists(root + "/" + relative)) {
      return root + "/" + relative;
    }
  }
  return "";
}

}  // namespace oriel::test

/// Skips the test, saying why, when data that may not be copied into the repository is not at hand.
#define ORIEL_NEED_DATA(variable, relative)                                        \
  const std::string variable = ::oriel::test::dataFile(relative);                  \
  if (variable.empty()) {                                                          \
    GTEST_SKIP() << relative << " is neither in tests/data nor in ../shared/golden"; \
  }
