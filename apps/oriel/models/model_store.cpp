#include "models/catalogue.h"

#include <algorithm>
#include <system_error>

#include "measure/divergence.h"
#include "options.h"
#include "output.h"
#include "system.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".gguf";

bool isPath(const std::string& text) {
  return text.find('/') != std::string::npos || endsInGguf(text)
#ifdef _WIN32
         || text.find('\\') != std::string::npos
#endif
      ;
}

[[noreturn]] void failUnknown(const std::string& given) {
  if (isRepository(given)) {
    throw Failure{kExitFailed, "there is no file " + given +
                                   ", and no model of that name here: `oriel pull " + given +
                                   "` downloads it"};
  }
  if (const auto known = cataloguedFile(given)) {
    throw Failure{kExitFailed,
                  given + " is not here yet: `oriel pull " + given + "` gets it" +
                      (known->bytes != 0 ? " (" + formatSize(known->bytes) + ")" : "")};
  }
  std::vector<std::string> names;
  for (const PublishedModel* const model : catalogue()) {
    names.emplace_back(model->id);
  }
  for (const StoredModel& model : storedModels()) {
    names.push_back(model.name);
  }
  const std::string near = nearest(lowerCase(given), names);
  throw Failure{kExitFailed, "there is no file " + given + ", and no model of that name: " +
                                 (near.empty() ? "" : "did you mean " + near + "? ") +
                                 "`oriel models` lists them"};
}

/// ORG/NAME:QUANT, or ORG/NAME for a pull's preferred quantisation.
std::optional<std::string> storedOfRepository(const std::string& name) {
  std::vector<std::string> quantisations;
  std::vector<std::string> paths;
  const std::string wanted = lowerCase(name);
  for (const StoredModel& model : storedModels()) {
    const std::string stored = lowerCase(model.name);
    if (stored == wanted) {
      return model.path;
    }
    if (stored.compare(0, wanted.size() + 1, wanted + ":") == 0) {
      quantisations.push_back(stored.substr(wanted.size() + 1));
      paths.push_back(model.path);
    }
  }
  return paths.empty() ? std::nullopt : std::optional(paths[preferredQuantisation(quantisations)]);
}

}  // namespace

std::optional<std::string> storedModel(const std::string& name) {
  if (isRepository(name)) {
    return storedOfRepository(name);
  }
  const auto known = cataloguedFile(name);
  const std::string file = withoutPart(lowerCase(known              ? known->file
                                                 : endsInGguf(name) ? name
                                                                    : name + kEnding));
  for (const StoredModel& model : storedModels()) {
    if (withoutPart(lowerCase(fs::u8path(model.path).filename().u8string())) == file) {
      return model.path;
    }
  }
  return std::nullopt;
}

bool isModelName(const std::string& word) {
  return !word.empty() && (cataloguedFile(word) || storedModel(word));
}

std::string modelFile(const std::string& given) {
  std::error_code error;
  if (fs::exists(fs::u8path(given), error)) {
    return given;
  }
  if (given.find('/') == std::string::npos || isRepository(given)) {
    if (const auto stored = storedModel(given)) {
      return *stored;
    }
  }
  if (!isPath(given) || (isRepository(given) && !endsInGguf(given))) {
    failUnknown(given);
  }
  return given;
}

}  // namespace cli
