// How long a GGUF file must be at most, by its header: for downloads whose length nobody says.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>

namespace cli {

/// Reads from where `file` stands. 0: the header does not end in the file. Of a type that is not known here a value is
/// counted with 8 bytes. Nothing: it is no header of GGUF version 3, or has more than 1 GiB.
std::optional<uint64_t> ggufBytes(std::FILE* file);

}  // namespace cli
