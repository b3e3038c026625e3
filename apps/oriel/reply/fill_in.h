// Fill-in-the-middle, for models trained for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_handle.h"

namespace cli {

/// Another file that the text may refer to.
struct OtherFile {
  std::string name;
  std::string text;
};

struct Gap {
  std::string prefix;  ///< text before the gap
  std::string suffix;  ///< text after the gap
  std::vector<OtherFile> others;
};

/// Ids after which the model writes the gap's text. Text is never read as control tokens. Throws Failure for a model
/// without the required tokens.
std::vector<int32_t> fillInIds(const Model& model, const Gap& gap);

}  // namespace cli
