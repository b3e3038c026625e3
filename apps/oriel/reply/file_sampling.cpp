#include "reply/reply_options.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "models/download.h"
#include "options.h"
#include "setting_flags.h"
#include "system.h"

namespace cli {
namespace {

/// The file's key, and the option.
constexpr std::pair<const char*, const char*> kKeys[] = {
    {"temp", "temperature"},
    {"top_k", "top_k"},
    {"top_p", "top_p"},
    {"min_p", "min_p"},
    {"xtc_probability", "xtc_probability"},
    {"xtc_threshold", "xtc_threshold"},
    {"penalty_last_n", "repeat_window"},
    {"penalty_repeat", "repeat_penalty"},
};

}  // namespace

Settings fileSampling(const std::string& path) {
  Settings settings;
  std::FILE* const file = openRegularFile(path);
  if (file == nullptr) {
    return settings;
  }
  for (const auto& [key, value] : ggufSampling(file)) {
    const auto found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                    [name = key](const auto& row) { return name == row.first; });
    if (found == std::end(kKeys)) {
      continue;
    }
    std::string text = formatted("%.9g", value);
    if (checkValue(optionRow(found->second), &text).empty()) {
      settings.set(found->second, text);
    }
  }
  std::fclose(file);
  return settings;
}

Settings samplingOf(const CommonOptions& options) {
  Settings sampling = options.reply;
  sampling.addMissing(options.file_sampling);
  return sampling;
}

}  // namespace cli
