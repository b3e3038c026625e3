#include "models/model_store.h"

#include <algorithm>
#include <system_error>

#include "failure.h"
#include "measure/nearest.h"
#include "models/catalogue.h"
#include "sizes.h"
#include "system.h"
#include "validators.h"

namespace cli {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".gguf";

bool endsInGguf(const std::string& text) {
  const std::string ending = kEnding;
  return text.size() > ending.size() &&
         lowerCase(text.substr(text.size() - ending.size())) == kEnding;
}

bool isPath(const std::string& text) {
  return text.find('/') != std::string::npos || endsInGguf(text)
#ifdef _WIN32
         || text.find('\\') != std::string::npos
#endif
      ;
}

/// The catalogue's name of a file, else its own without the ending.
std::string nameOf(const std::string& file) {
  for (const PublishedModel* const model : catalogue()) {
    if (lowerCase(file) == lowerCase(model->file)) {
      return model->id;
    }
    const auto other = cataloguedFile(std::string(model->id) + ":" + quantisationOf(file));
    if (other && lowerCase(other->file) == lowerCase(file)) {
      return std::string(model->id) + ":" + quantisationOf(file);
    }
  }
  return file.substr(0, file.size() - (sizeof(kEnding) - 1));
}

[[noreturn]] void failUnknown(const std::string& given) {
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

}  // namespace

fs::path modelsFolder() {
  if (const std::string own = variable("ORIEL_MODELS"); !own.empty()) {
    return fs::u8path(own);
  }
  const fs::path data = userDataFolder();
  return data.empty() ? data : data / "models";
}

std::vector<StoredModel> storedModels() {
  std::vector<StoredModel> models;
  std::error_code error;
  const fs::path folder = modelsFolder();
  if (folder.empty()) {
    return models;
  }
  fs::directory_iterator end;
  for (fs::directory_iterator at(folder, error); !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().u8string();
    std::error_code unreadable;
    if (endsInGguf(file) && at->is_regular_file(unreadable)) {
      models.push_back({nameOf(file), at->path().u8string(), at->file_size(unreadable)});
    }
  }
  std::sort(models.begin(), models.end(),
            [](const StoredModel& a, const StoredModel& b) { return a.name < b.name; });
  return models;
}

std::optional<std::string> storedModel(const std::string& name) {
  const auto known = cataloguedFile(name);
  const std::string file = lowerCase(known              ? known->file
                                     : endsInGguf(name) ? name
                                                        : name + kEnding);
  for (const StoredModel& model : storedModels()) {
    if (lowerCase(fs::u8path(model.path).filename().u8string()) == file) {
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
  if (given.find('/') == std::string::npos) {
    if (const auto stored = storedModel(given)) {
      return *stored;
    }
  }
  if (!isPath(given)) {
    failUnknown(given);
  }
  return given;
}

}  // namespace cli
