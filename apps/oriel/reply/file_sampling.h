// How the maker of a model samples, as its file says: the defaults of replies.
#pragma once

#include <string>

#include "settings.h"

namespace cli {

struct CommonOptions;

/// The options of a reply that "general.sampling.*" of a GGUF file name, as far as they are allowed.
Settings fileSampling(const std::string& path);

/// What is asked for, and for the rest what the file says.
Settings samplingOf(const CommonOptions& options);

}  // namespace cli
