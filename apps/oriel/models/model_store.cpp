#include "models/model_store.h"

#include <algorithm>
#include <system_error>

#include "failure.h"
#include "measure/nearest.h"
#include "models/catalogue.h"
#include "models/repository.h"
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

std::vector<std::string> foldersIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator end;
  for (fs::directory_iterator at(folder, error); !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    if (at->is_directory(unreadable)) {
      names.push_back(at->path().filename().u8string());
    }
  }
  return names;
}

/// `repository`: whose folder it is; empty: the one for all others.
void addModels(const fs::path& folder, const std::string& repository,
               std::vector<StoredModel>* models) {
  std::error_code error;
  fs::directory_iterator end;
  for (fs::directory_iterator at(folder, error); !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().u8string();
    std::error_code unreadable;
    if (endsInGguf(file) && at->is_regular_file(unreadable)) {
      models->push_back(
          {repository.empty() ? nameOf(file) : repository + ":" + quantisationOf(file),
           at->path().u8string(), at->file_size(unreadable)});
    }
  }
}

/// ORG/NAME:QUANT, or ORG/NAME for the quantisation that a pull prefers.
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

fs::path modelsFolder() {
  if (const std::string own = variable("ORIEL_MODELS"); !own.empty()) {
    return fs::u8path(own);
  }
  const fs::path data = userDataFolder();
  return data.empty() ? data : data / "models";
}

std::vector<StoredModel> storedModels() {
  std::vector<StoredModel> models;
  const fs::path folder = modelsFolder();
  if (folder.empty()) {
    return models;
  }
  addModels(folder, "", &models);
  for (const std::string& org : foldersIn(folder)) {
    for (const std::string& name : foldersIn(folder / fs::u8path(org))) {
      addModels(folder / fs::u8path(org) / fs::u8path(name), org + "/" + name, &models);
    }
  }
  std::sort(models.begin(), models.end(),
            [](const StoredModel& a, const StoredModel& b) { return a.name < b.name; });
  return models;
}

std::optional<std::string> storedModel(const std::string& name) {
  if (isRepository(name)) {
    return storedOfRepository(name);
  }
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
