#include "speed/file_speed.h"

#include <algorithm>

#include "base/workspace.h"
#include "exec/expert_cache.h"
#include "exec/host_executor.h"
#include "os/os.h"
#include "plan/memory_layout.h"
#include "plan/weight_layout.h"

namespace oriel_internal {
namespace {

constexpr TensorRole kParts[] = {TensorRole::kExpertGateUp, TensorRole::kExpertGate,
                                 TensorRole::kExpertUp, TensorRole::kExpertDown};
constexpr double kEnoughMs = 200;
constexpr double kMostMs = 1000;
constexpr uint32_t kFewestExperts = 16;
constexpr uint64_t kManyWeights = 1ull << 30;  // gives the largest possible upload ring

/// Accepts uploads and computes nothing.
class Receiver final : public HostExecutor {
 public:
  using Executor::run;
  using HostExecutor::HostExecutor;
  Status run(StepRun, const StopCheck&) override { return kOk; }
  const char* driverName() const override { return ""; }
};

ExpertsOnFile expertsOf(const TensorIndex& tensors, uint32_t layer) {
  ExpertsOnFile experts;
  ExpertsOnFile::Part* next = experts.parts;
  for (const TensorRole role : kParts) {
    if (!tensors.has(role, layer)) {
      continue;
    }
    const GgufTensor& tensor = tensors.find(role, layer);
    ExpertsOnFile::Part& part = *next++;
    part.tensor_offset = tensor.offset;
    part.tensor_type = tensor.type;
    (void)weightTypeOf(tensor.type, &part.type);
    part.rows = static_cast<uint32_t>(tensor.dims[1]);
    part.cols = static_cast<uint32_t>(tensor.dims[0]);
    experts.count = static_cast<uint32_t>(tensor.dims[2]);
  }
  return experts;
}

/// Layers with experts, up to kMaxLayers.
struct ExpertLayers {
  uint16_t layers[kMaxLayers];
  uint32_t count = 0;
  uint64_t largest_bytes = 0;  ///< of an expert in its slot
  uint64_t largest_group_bytes = 0;
};

ExpertLayers layersOf(const TensorIndex& tensors, const ModelDesc& model) {
  ExpertLayers found;
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    if (!tensors.has(TensorRole::kExpertDown, layer)) {
      continue;
    }
    found.layers[found.count++] = static_cast<uint16_t>(layer);
    uint64_t bytes = 0;
    for (const ExpertsOnFile::Part& part : expertsOf(tensors, layer).parts) {
      bytes += part.slotBytes();
      found.largest_group_bytes =
          std::max(found.largest_group_bytes, weightGeometry(part.type, part.cols).groupBytes());
    }
    found.largest_bytes = std::max(found.largest_bytes, bytes);
  }
  return found;
}

Status timeReading(const ExpertLayers& layers, const TensorIndex& tensors,
                   const WeightSource& source, const Plan& plan, void* room, const Log& log,
                   Executor* receiver, double* bytes_per_s) {
  const double begin = nowMs();
  double bytes = 0;
  double ms = 0;
  uint32_t state = 1;
  for (uint32_t n = 0; ms < kMostMs && (n < kFewestExperts || ms < kEnoughMs); ++n) {
    state = state * 1664525u + 1013904223u;
    const ExpertsOnFile experts = expertsOf(tensors, layers.layers[(state >> 8) % layers.count]);
    const uint32_t expert = (state >> 16) % experts.count;
    BufferRef place = {ArenaKind::kWeights, 0, 0, 0};
    for (const ExpertsOnFile::Part& part : experts.parts) {
      source.readAhead(part.tensor_offset + expert * part.fileBytes(), part.fileBytes());
    }
    for (const ExpertsOnFile::Part& part : experts.parts) {
      place.size_bytes = static_cast<uint32_t>(part.slotBytes());
      ORIEL_TRY(sendExpert(part, expert, place, 0, source, plan, room, log, receiver));
      place.offset_bytes += place.size_bytes;
      bytes += static_cast<double>(part.fileBytes());
    }
    ms = nowMs() - begin;
  }
  *bytes_per_s = bytes * 1e3 / ms;
  return source.expectUnchanged(log);
}

}  // namespace

Status measureFileSpeed(const ModelFile& file, const TensorIndex& tensors, const ModelDesc& model,
                        const oriel_allocator& allocator, const Log& log, double* bytes_per_s) {
  *bytes_per_s = 0;
  const ExpertLayers layers = layersOf(tensors, model);
  if (layers.count == 0) {
    return kOk;
  }
  uint64_t segment_bytes = alignUp(layers.largest_bytes, kArenaGranularity);
  Plan plan;
  plan.weight_segments = 1;
  plan.weight_segment_bytes = &segment_bytes;
  plan.cache_bytes = plan.activation_bytes = kArenaGranularity;
  plan.io_bytes = 2 * uploadHalfBytes(kManyWeights, layers.largest_group_bytes);
  plan.upload = {ArenaKind::kIo, 0, 0, plan.io_bytes};
  ExecutorOptions options;
  options.allocator = &allocator;
  options.log = log;
  Receiver receiver(plan, options);
  ORIEL_TRY(receiver.allocate());
  Workspace workspace(nullptr, 0, &allocator);
  const BorrowedBytes room(&workspace, expertRoomBytes(plan));
  if (room.data() == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused memory to read experts with: close other programs");
  }
  WeightSource source;
  source.file = &file.input();
  return timeReading(layers, tensors, source, plan, room.data(), log, &receiver, bytes_per_s);
}

}  // namespace oriel_internal
