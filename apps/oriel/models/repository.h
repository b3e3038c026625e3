// Models by the name of their page: ORG/NAME, or ORG/NAME:QUANTISATION, as Hugging Face has them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

/// Whether a word has that form; a path of three parts, or one that begins with a dot, has not.
bool isRepository(const std::string& word);

/// Which of these quantisations is meant where none is named: q4_k_m, else q4_0, else q8_0, else the first. There is one
/// at least.
size_t preferredQuantisation(const std::vector<std::string>& quantisations);

}  // namespace cli
