// Reads a GGUF header: the largest possible file size, for downloads of unknown length, and the maker's sampling
// settings.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cli {

/// Reads from the current position of `file`. 0: the header is incomplete. Values of unknown type count as 8 bytes.
/// Empty: not a header of GGUF version 3, or over 1 GiB.
std::optional<uint64_t> ggufBytes(std::FILE* file);

/// Values of the keys "general.sampling.*", by the last part of the key. From an incomplete or invalid header: those
/// before its end.
std::vector<std::pair<std::string, double>> ggufSampling(std::FILE* file);

}  // namespace cli
