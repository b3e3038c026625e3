#include "models/catalogue.h"

#include <algorithm>
#include <tuple>

#include "plan/plan_report.h"

namespace cli {
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
