// Default sampling from the model file.
#pragma once

#include <string>

#include "settings.h"

namespace cli {

struct CommonOptions;

/// Reply options in "general.sampling.*" of a GGUF file, if valid.
Settings fileSampling(const std::string& path);

/// The given options, completed by the file's.
Settings samplingOf(const CommonOptions& options);

}  // namespace cli
