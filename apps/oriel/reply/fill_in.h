// A text with a gap, for models that were trained to fill one in.
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
  std::string prefix;  ///< what stands before it
  std::string suffix;  ///< and behind it
  std::vector<OtherFile> others;
};

/// Ids after which the model writes what belongs in the gap. Text is never read as control tokens. Throws Failure for a
/// model without the tokens for it.
std::vector<int32_t> fillInIds(const Model& model, const Gap& gap);

}  // namespace cli
