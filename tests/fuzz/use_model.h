// What an app does with a model file: plans, loads, reads and generates.
#pragma once

#include "fuzz/checks.h"

namespace oriel_internal::fuzz {

/// The file at `path`, of so many bytes, is used or refused: every call keeps to checks.h, and memory stays within
/// the cap
/// and twice the file. `choices` picks the options. Returns the status of the load.
oriel_status useModel(const char* path, uint64_t file_bytes, uint32_t choices);
/// Whether these choices load the header and the tokenizer only.
bool withoutWeights(uint32_t choices);
/// Plans alone. *fits: a load has the memory that it needs.
oriel_status planModel(const char* path, uint64_t file_bytes, uint32_t choices, bool* fits);

}  // namespace oriel_internal::fuzz
