// Of a GGUF file's header: how long the file must be at most, for downloads whose length nobody says, and how its maker
// samples.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cli {

/// Reads from where `file` stands. 0: the header does not end in the file. Of a type that is not known here a value is
/// counted with 8 bytes. Nothing: it is no header of GGUF version 3, or has more than 1 GiB.
std::optional<uint64_t> ggufBytes(std::FILE* file);

/// The numbers of the keys "general.sampling.*", by the key's last part; of a header that is cut or no header, those before
/// its end.
std::vector<std::pair<std::string, double>> ggufSampling(std::FILE* file);

}  // namespace cli
