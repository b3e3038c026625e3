#include "models/catalogue.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "options.h"
#include "system.h"

namespace cli {
namespace {

constexpr size_t kDigits = 5;
constexpr char kOf[] = "-of-";
constexpr size_t kOfBytes = sizeof(kOf) - 1;
constexpr uint32_t kMostParts = 1000;

/// "00001-of-00003" in a name.
struct PartPlace {
  size_t at = std::string::npos;
  uint32_t number = 0;
  uint32_t count = 0;
};

PartPlace placeIn(const std::string& file) {
  const size_t of = file.rfind(kOf);
  const auto digitsAt = [&](size_t at) {
    const size_t other = file.find_first_not_of("0123456789", at);
    return (other == std::string::npos ? file.size() : other) - at == kDigits;
  };
  PartPlace place;
  if (of == std::string::npos || of <= kDigits || file[of - kDigits - 1] != '-' ||
      !digitsAt(of - kDigits) || !digitsAt(of + kOfBytes)) {
    return place;
  }
  place.number = static_cast<uint32_t>(std::atoi(file.c_str() + of - kDigits));
  place.count = static_cast<uint32_t>(std::atoi(file.c_str() + of + kOfBytes));
  if (place.number >= 1 && place.number <= place.count && place.count <= kMostParts) {
    place.at = of - kDigits;
  }
  return place;
}

}  // namespace

uint32_t partNumber(const std::string& file) {
  const PartPlace place = placeIn(file);
  return place.at == std::string::npos ? 0 : place.number;
}

std::vector<std::string> allParts(const std::string& file) {
  const PartPlace place = placeIn(file);
  if (place.at == std::string::npos) {
    return {file};
  }
  std::vector<std::string> parts;
  for (uint32_t n = 1; n <= place.count; ++n) {
    char digits[16];
    std::snprintf(digits, sizeof(digits), "%05u", n);
    parts.push_back(std::string(file).replace(place.at, kDigits, digits));
  }
  return parts;
}

std::string withoutPart(const std::string& file) {
  const PartPlace place = placeIn(file);
  return place.at == std::string::npos
             ? file
             : std::string(file).erase(place.at - 1, 1 + kDigits + kOfBytes + kDigits);
}

namespace {

namespace fs = std::filesystem;

/// The catalogue's name of a file, else its own without the ending.
std::string nameOf(const std::string& part) {
  const std::string file = withoutPart(part);
  for (const PublishedModel* const model : catalogue()) {
    if (lowerCase(file) == lowerCase(model->file)) {
      return model->id;
    }
    const auto other = cataloguedFile(std::string(model->id) + ":" + quantisationOf(file));
    if (other && lowerCase(other->file) == lowerCase(file)) {
      return std::string(model->id) + ":" + quantisationOf(file);
    }
  }
  return file.substr(0, file.size() - sizeof(".gguf") + 1);
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

/// Sorted by name. `repository`: the owner of the folder; empty: the common folder.
void addModels(const fs::path& folder, const std::string& repository,
               std::vector<StoredModel>* models) {
  std::error_code error;
  fs::directory_iterator end;
  for (fs::directory_iterator at(folder, error); !error && at != end; at.increment(error)) {
    const std::string file = at->path().filename().u8string();
    std::error_code unreadable;
    if (endsInGguf(file) && partNumber(file) <= 1 && at->is_regular_file(unreadable)) {
      const StoredModel model = {
          repository.empty() ? nameOf(file) : repository + ":" + quantisationOf(file),
          at->path().u8string(), bytesOfModel(at->path().u8string())};
      models->insert(std::upper_bound(models->begin(), models->end(), model,
                                      [](const StoredModel& a, const StoredModel& b) {
                                        return a.name < b.name;
                                      }),
                     model);
    }
  }
}

}  // namespace

bool endsInGguf(const std::string& text) {
  const std::string ending = ".gguf";
  return text.size() > ending.size() &&
         lowerCase(text.substr(text.size() - ending.size())) == ending;
}

uint64_t bytesOfModel(const std::string& file) {
  uint64_t bytes = 0;
  for (const std::string& part : allParts(file)) {
    std::error_code error;
    const uint64_t size = fs::file_size(fs::u8path(part), error);
    bytes += error ? 0 : size;
  }
  return bytes;
}

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
  return models;
}

}  // namespace cli
