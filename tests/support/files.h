// Locations of test data.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/read_files.h"

namespace oriel_internal::test {

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
