// Normalisation Form C of strings. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/normalise.h"

namespace oriel_internal::test {

inline std::string toNfc(const std::string& text) {
  std::vector<uint64_t> chars(decomposedChars(text.data(), text.size()) + 1);
  std::string out(text.size() * kMostNfcGrowth + 1, '#');
  const size_t bytes = oriel_internal::toNfc(text.data(), text.size(), chars.data(), &out[0]);
  EXPECT_LE(bytes, text.size() * kMostNfcGrowth);
  EXPECT_EQ('#', out[text.size() * kMostNfcGrowth]) << "nothing is written behind the room";
  out.resize(bytes);
  return out;
}

}  // namespace oriel_internal::test
