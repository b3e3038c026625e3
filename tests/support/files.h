// Locations of test data.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/encoding.h"
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
