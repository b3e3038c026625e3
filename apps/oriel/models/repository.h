// Models by the name of their page: ORG/NAME, or ORG/NAME:QUANTISATION, as Hugging Face has them.
#pragma once

#include <string>

namespace cli {

/// Whether a word has that form; a path of three parts, or one that begins with a dot, has not.
bool isRepository(const std::string& word);

}  // namespace cli
