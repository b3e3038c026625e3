#include "models/catalogue.h"

#include <algorithm>
#include <system_error>
#include <tuple>

#include "measure/divergence.h"
#include "options.h"
#include "output.h"
#include "plan/plan_report.h"
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

// ---- Published models with the memory that they take --------------------------------------------

namespace {

constexpr uint32_t kSinks = 4;
constexpr uint64_t kPlenty = uint64_t{1} << 42;
/// Files in the usual mixes (Q4_K_M and the like) are mostly Q4_K, whose blocks of 144 bytes take 148 in memory.
constexpr uint64_t kMixGrowth = 36;

bool isMix(const std::string& name) {
  return name.find("_K_") != std::string::npos || name.find("_k_") != std::string::npos;
}

/// The plan of the shape with the file's weights; 0: unknown.
uint64_t memoryFor(const PublishedModel& model, uint32_t tokens, uint64_t* on_file_bytes) {
  oriel::Options options;
  options.memory_bytes = kPlenty;
  options.window_tokens = tokens - kSinks;
  options.set("sinks", kSinks);
  options.set("kv", "k8v4");
  const Json plan =
      model.file_bytes == 0 ? Json() : PlanSource::ofShape(model.shape, "q4_0").tryPlan(options);
  if (plan.is_null() || plan["fits"] != true) {
    return 0;
  }
  *on_file_bytes = numberIn(plan, "on_file_bytes");
  const uint64_t held = model.file_bytes - *on_file_bytes;
  const uint64_t weights = isMix(model.file) ? held + held / kMixGrowth : held;
  return numberIn(plan, "total_bytes") - numberIn(plan, "weights_bytes") + weights;
}

}  // namespace

std::vector<ListedModel> publishedModels() {
  const auto isBefore = [](const ListedModel& a, const ListedModel& b) {
    const auto order = [](const ListedModel& model) {
      return std::make_tuple(model.memory_bytes_4096 == 0, model.memory_bytes_4096,
                             numberIn(model.shape, "parameters"));
    };
    return order(a) < order(b);
  };
  const Json shapes = knownShapes();
  std::vector<ListedModel> models;
  for (const PublishedModel* const listed : catalogue()) {
    const PublishedModel& published = *listed;
    const auto shape = std::find_if(shapes.begin(), shapes.end(), [&](const Json& each) {
      return each["name"] == published.shape;
    });
    if (shape == shapes.end()) {
      continue;  // tests check that there is such a row
    }
    ListedModel model;
    model.published = listed;
    model.shape = *shape;
    model.memory_bytes_4096 = memoryFor(published, 4096, &model.on_file_bytes);
    model.memory_bytes_32768 = memoryFor(published, 32768, &model.on_file_bytes);
    models.insert(std::upper_bound(models.begin(), models.end(), model, isBefore), model);
  }
  return models;
}

}  // namespace cli
