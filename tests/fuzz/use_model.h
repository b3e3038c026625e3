// A typical app's use of a model file: plans, loads, reads and generates.
#pragma once

#include "fuzz/checks.h"

namespace oriel_internal::fuzz {

/// Uses the file at `path` of `file_bytes` bytes, or is refused: every call follows checks.h, and memory stays within
/// the cap and twice the file. `choices` selects the options. Returns the status of the load.
oriel_status useModel(const char* path, uint64_t file_bytes, uint32_t choices);
/// Whether these choices load the header and the tokenizer only.
bool withoutWeights(uint32_t choices);
/// Plans alone. *fits: a load has the memory that it needs.
oriel_status planModel(const char* path, uint64_t file_bytes, uint32_t choices, bool* fits);

}  // namespace oriel_internal::fuzz
