#include "speed/measure_speed.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/arena.h"
#include "base/hash.h"
#include "base/version.h"
#include "exec/expert_cache.h"
#include "exec/host_executor.h"
#include "os/os.h"
#include "plan/memory_layout.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'S', 'P', '\n'};
/// Increase it when the meaning of rates or the measured kernels change.
constexpr uint32_t kVersion = 10;
constexpr size_t kMaxPath = 1024;

struct SpeedFile {
  char magic[8];
  uint32_t version;
  uint32_t file_bytes;
  uint64_t key;  ///< keyOf
  uint64_t rates_hash;
  DeviceSpeed rates;
};

uint64_t keyOf(const DeviceSpeed& speed) {
  uint64_t hash = hashBytes(kVersionText, sizeof(kVersionText) - 1);
  hash = hashBytes(speed.device, std::strlen(speed.device), hash);
  hash = hashBytes(speed.driver, std::strlen(speed.driver), hash);
  return hashBytes(&speed.shape, sizeof(speed.shape), hash);
}

// Hashing padding is safe: the rates are zeroed before they are filled.
SpeedFile fileOf(const DeviceSpeed& speed) {
  SpeedFile file;
  std::memset(static_cast<void*>(&file), 0, sizeof(file));
  std::memcpy(file.magic, kMagic, sizeof(kMagic));
  file.version = kVersion;
  file.file_bytes = sizeof(file);
  file.key = keyOf(speed);
  std::memcpy(static_cast<void*>(&file.rates), &speed, sizeof(speed));
  file.rates_hash = hashBytes(&file.rates, sizeof(file.rates));
  return file;
}

// False: the path is too long.
bool makePath(const char* dir, const DeviceSpeed& speed, char (&path)[kMaxPath]) {
  const int length = std::snprintf(path, sizeof(path), "%s/oriel-%016llx.speed", dir,
                                   static_cast<unsigned long long>(keyOf(speed)));
  return length > 0 && static_cast<size_t>(length) < sizeof(path);
}

}  // namespace

bool readSpeedFile(const char* dir, DeviceSpeed* speed) {
  char path[kMaxPath];
  SpeedFile file;
  if (dir == nullptr || !makePath(dir, *speed, path) || !readIfThere(path, &file, sizeof(file))) {
    return false;
  }
  // Names first: a match proves that they are NUL-terminated.
  if (std::memcmp(file.rates.device, speed->device, sizeof(speed->device)) != 0 ||
      std::memcmp(file.rates.driver, speed->driver, sizeof(speed->driver)) != 0) {
    return false;
  }
  const SpeedFile expected = fileOf(file.rates);
  if (std::memcmp(&file, &expected, offsetof(SpeedFile, rates)) != 0 ||
      file.rates.shape != speed->shape || !validSpeed(file.rates)) {
    return false;
  }
  std::memcpy(static_cast<void*>(speed), &file.rates, sizeof(*speed));
  return true;
}

void writeSpeedFile(const char* dir, const DeviceSpeed& speed, const Log& log) {
  char path[kMaxPath];
  if (dir == nullptr || !makePath(dir, speed, path)) {
    return;
  }
  const SpeedFile file = fileOf(speed);
  if (!writeFileAtomically(path, &file, sizeof(file), FileUse::kCache, Log()).ok()) {
    log.write(ORIEL_LOG_DEBUG, "cannot write %s; rates are not kept", path);
  }
}

uint64_t SpeedTarget::hash() const {
  const uint32_t dims[] = {shape.n_layers, shape.n_embd, shape.n_heads, shape.n_kv_heads,
                           shape.head_dim, shape.n_ff,   shape.n_vocab, activation_bits};
  uint64_t hash = hashBytes(dims, sizeof(dims), hashBytes(&features, sizeof(features)));
  for (uint32_t i = 0; i < n_matrices; ++i) {
    const uint64_t work[] = {matrices[i].tensor_type, matrices[i].body_weights,
                             matrices[i].head_weights, kernels[i]};
    hash = hashBytes(work, sizeof(work), hash);
  }
  return hash;
}

SpeedTarget speedTargetOf(const ModelDesc& model, const WorkShape& work) {
  SpeedTarget target;
  target.shape = {model.n_layers, model.n_embd, model.n_heads, model.n_kv_heads,
                  model.head_dim, model.n_ff,   model.n_vocab};
  if (!model.attends()) {
    // The representative layers have attention and a feed-forward.
    target.shape.head_dim = 64;
    target.shape.n_heads = target.shape.n_kv_heads = std::max(model.n_embd / 64, 1u);
    target.shape.n_ff = std::max(model.n_ff, 2 * model.n_embd);
  }
  for (uint32_t i = 0; i < work.n_matrices; ++i) {
    WorkShape::Matrices matrices = work.matrices[i];
    matrices.body_weights +=
        static_cast<uint64_t>(static_cast<double>(matrices.expert_weights) * work.expertShare(1));
    if (matrices.body_weights + matrices.head_weights != 0) {
      target.matrices[target.n_matrices++] = matrices;
    }
  }
  return target;
}

SpeedTarget anySpeedTarget() {
  SpeedTarget target;
  target.shape = {16, 2048, 32, 8, 64, 5632, 32000};
  for (const TensorType type : {TensorType::kF16, TensorType::kQ8_0, TensorType::kQ4_0}) {
    target.matrices[target.n_matrices++] = {static_cast<uint32_t>(type), 1, 1};
  }
  return target;
}

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
