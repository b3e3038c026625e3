#include "budget/speed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "budget/expert_choice.h"
#include "plan/memory_layout.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

constexpr int kRateSteps = 16;  // until a rate of hits agrees with itself

const WeightSpeed* findWeights(const DeviceSpeed& speed, uint32_t tensor_type) {
  for (uint32_t i = 0; i < speed.weight_count; ++i) {
    if (speed.weights[i].tensor_type == tensor_type) {
      return &speed.weights[i];
    }
  }
  return nullptr;
}

const CacheSpeed* findCache(const DeviceSpeed& speed, KvFormat k, KvFormat v) {
  for (uint32_t i = 0; i < speed.cache_count; ++i) {
    if (speed.caches[i].k_format == k && speed.caches[i].v_format == v) {
      return &speed.caches[i];
    }
  }
  return nullptr;
}

/// Rates of a pair. For an unmeasured pair: half of the rates of each side's own pair.
bool cacheRate(const DeviceSpeed& speed, KvFormat k, KvFormat v, CacheSpeed* rate) {
  if (const CacheSpeed* found = findCache(speed, k, v)) {
    *rate = *found;
    return true;
  }
  const CacheSpeed* a = findCache(speed, k, k);
  const CacheSpeed* b = findCache(speed, v, v);
  if (a == nullptr || b == nullptr) {
    return false;
  }
  *rate = *a;
  rate->decode_ns = (a->decode_ns + b->decode_ns) / 2;
  rate->chunk_ns = (a->chunk_ns + b->chunk_ns) / 2;
  rate->append_ns = (a->append_ns + b->append_ns) / 2;
  rate->chunk_append_ns = (a->chunk_append_ns + b->chunk_append_ns) / 2;
  return true;
}

/// A tensor with rows that is read as a vector.
bool isSmall(TensorRole role) {
  return role == TensorRole::kConvTaps || role == TensorRole::kStateTaps ||
         role == TensorRole::kStateKeyTaps || role == TensorRole::kStateValueTaps ||
         role == TensorRole::kStateRates || role == TensorRole::kStateSkip ||
         role == TensorRole::kStateNorm;
}

/// Time for one layer's state. A step reads and writes the state, and each token passes through all of it. State rates
/// are not measured: one matrix value takes about the time of attention to one cached f16 key and value, and half as
/// long again with the delta rule.
double stateSeconds(const DeviceSpeed& speed, const StateShape& state, StateFormat format,
                    uint32_t tokens) {
  CacheSpeed rate = {};
  (void)cacheRate(speed, KvFormat::kF16, KvFormat::kF16, &rate);
  const double work = 1e-9 * (tokens == 1 ? rate.decode_ns : rate.chunk_ns) * tokens *
                      state.matrixValues() * (state.rule == StateRule::kMamba2 ? 1.0 : 1.5);
  const double words =
      static_cast<double>(stateMatrixWords(format, state.valueCols(), state.key_dim)) +
      state.columnWords();
  const double moved = speed.read_bytes_per_s > 0 ? 2 * 4 * words / speed.read_bytes_per_s : 0;
  return std::max(work, moved);
}

/// Calls visit(share of the experts, share of all tokens that choose a given expert in that group), hottest group first.
template <typename Visit>
void forEachHeat(const WorkShape& work, const Visit& visit) {
  constexpr size_t kParts = sizeof(kExpertChoice) / sizeof(kExpertChoice[0]) - 1;
  const double even = static_cast<double>(work.expert_used) / work.expert_count;
  const double steepest = kExpertChoice[1].choices / kExpertChoice[1].experts;
  const double skew = std::clamp((kMostChosen / even - 1) / (steepest - 1), 0.0, 1.0);
  for (size_t i = 0; i < kParts; ++i) {
    const double experts = kExpertChoice[i + 1].experts - kExpertChoice[i].experts;
    const double choices = kExpertChoice[i + 1].choices - kExpertChoice[i].choices;
    visit(experts, even * (1 + skew * (choices / experts - 1)));
  }
}

}  // namespace

void WorkShape::add(uint32_t tensor_type, uint64_t body, uint64_t head, uint64_t experts) {
  uint32_t i = 0;
  while (i < n_matrices && matrices[i].tensor_type != tensor_type) {
    ++i;
  }
  if (i == kMaxWorkTypes) {
    known = false;
    return;
  }
  if (i == n_matrices) {
    matrices[n_matrices++].tensor_type = tensor_type;
  }
  matrices[i].body_weights += body;
  matrices[i].head_weights += head;
  matrices[i].expert_weights += experts;
}

void WorkShape::addTail(uint32_t tensor_type, uint64_t weights) {
  for (uint32_t i = 0; i < n_matrices; ++i) {
    matrices[i].tail_weights += matrices[i].tensor_type == tensor_type ? weights : 0;
  }
}

bool WorkShape::isLowBit() const {
  constexpr uint32_t kCols = 256;  // whole blocks of every type
  uint64_t low = 0;
  uint64_t all = 0;
  for (uint32_t i = 0; i < n_matrices; ++i) {
    const uint64_t row_bytes = fileRowBytes(matrices[i].tensor_type, kCols);
    const uint64_t weights = matrices[i].body_weights + matrices[i].expert_weights;
    const uint64_t bytes = weights / kCols * row_bytes;
    all += bytes;
    low += 8 * row_bytes < 6 * kCols ? bytes : 0;
  }
  return low > all / 2;
}

double WorkShape::expertShare(uint32_t tokens) const {
  if (expert_count == 0) {
    return 0;
  }
  double share = 0;
  forEachHeat(*this, [&](double experts, double chance) {
    share += experts * (1 - std::pow(1 - chance, tokens));
  });
  return share;
}

// Assumes that the slots hold the hottest experts and the latest token's misses. Its misses are drawn from the other
// experts in proportion to their chance.
double WorkShape::expertHitRate() const {
  if (expert_count == 0 || expert_slots == 0 || expert_slots >= expert_count) {
    return expert_count == 0 ? 0 : 1;
  }
  const double used = static_cast<double>(expert_used) / expert_count;
  const double slots = static_cast<double>(expert_slots) / expert_count;
  double rate = 1;
  for (int i = 0; i < kRateSteps; ++i) {
    const double missed = used * (1 - rate);
    double left = std::max(slots - missed, 0.0);
    double hits = 0;
    double cold = 0;
    double cold_again = 0;
    forEachHeat(*this, [&](double experts, double chance) {
      const double kept = std::min(left, experts);
      left -= kept;
      hits += kept * chance;
      cold += (experts - kept) * chance;
      cold_again += (experts - kept) * chance * chance;
    });
    rate = (hits + (cold > 0 ? missed * cold_again / cold : 0)) / used;
  }
  return rate;
}

double WorkShape::fileBytes(uint32_t tokens) const {
  const double experts = expert_count * expertShare(tokens) * (1 - expertHitRate()) *
                         static_cast<double>(expert_file_bytes);
  return experts + tokens * static_cast<double>(row_file_bytes);
}

WorkShape workOf(const TensorIndex& tensors, const ModelDesc& model, const PlanTotals& totals) {
  WorkShape work;
  work.known = true;
  work.model = &model;
  for (uint32_t i = 0; i < kStepLists; ++i) {
    work.n_ops[i] = totals.n_ops[i];
  }
  const auto add = [&](TensorRole role, uint32_t layer) {
    const GgufTensor& tensor = tensors.find(role, layer);
    if (tensor.dims[1] <= 1 || isSmall(role)) {
      return;  // a vector
    }
    const uint64_t weights = tensor.dims[0] * tensor.dims[1] * tensor.dims[2];
    switch (role) {
      case TensorRole::kOutput:
        return work.add(tensor.type, 0, weights);
      case TensorRole::kTokenEmbedding:
        return work.add(tensor.type, 0, 0);
      case TensorRole::kLayerInputEmbedding:
        work.row_file_bytes = totals.on_file.rows ? tensor.bytes / tensor.dims[1] : 0;
        return work.add(tensor.type, 0, 0);
      case TensorRole::kExpertGateUp:
      case TensorRole::kExpertGate:
      case TensorRole::kExpertUp:
      case TensorRole::kExpertDown:
        work.expert_file_bytes +=
            totals.on_file.expert_slots != 0 ? tensor.bytes / tensor.dims[2] : 0;
        return work.add(tensor.type, 0, 0, weights);
      default:
        work.add(tensor.type, weights, 0);
        if (layer >= model.n_layers - work.tail_layers) {
          work.addTail(tensor.type, weights);
        }
        return;
    }
  };
  work.tail_layers = model.layersWithoutMemory();
  const ExpertLimits experts = expertLimits(model);
  work.expert_count = experts.count;
  work.expert_used = experts.used;
  work.expert_slots = totals.on_file.expert_slots;
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    for (uint32_t role = 0; role < kTensorRoles; ++role) {
      if (tensors.has(static_cast<TensorRole>(role), layer)) {
        add(static_cast<TensorRole>(role), layer);
      }
    }
  }
  return work;
}

bool stepCost(const DeviceSpeed& speed, const WorkShape& work, const CacheFormats& formats,
              uint32_t chunk, StepCost* cost) {
  *cost = {};
  if (!work.known) {
    return false;
  }
  constexpr double kNano = 1e-9;
  const double tokens = chunk == 0 ? 1 : chunk;
  const StepList list = chunk == 0 ? StepList::kDecode : StepList::kChunk;
  const uint32_t head_ops = work.n_ops[static_cast<uint32_t>(StepList::kHead)];
  const uint32_t all_ops = work.n_ops[static_cast<uint32_t>(list)];
  const uint32_t n_layers = std::max(work.model->n_layers, 1u);
  const uint32_t tail_ops = static_cast<uint32_t>(uint64_t{all_ops} * work.tail_layers / n_layers);
  const uint32_t ops = chunk == 0 ? all_ops : all_ops - tail_ops;
  cost->tokens = chunk == 0 ? 1 : chunk;
  cost->overhead_s = kNano * (speed.submit_ns + ops * speed.dispatch_ns);
  cost->head_s = kNano * head_ops * speed.dispatch_ns;
  for (uint32_t i = 0; i < work.n_matrices; ++i) {
    const WorkShape::Matrices& matrices = work.matrices[i];
    if (matrices.body_weights + matrices.head_weights + matrices.expert_weights == 0) {
      continue;  // rows are only looked up
    }
    const WeightSpeed* rate = findWeights(speed, matrices.tensor_type);
    if (rate == nullptr) {
      return false;
    }
    // For one token, and for all tokens of the chunk.
    const double tail = chunk == 0 ? 0 : static_cast<double>(matrices.tail_weights);
    const double body = static_cast<double>(matrices.body_weights) - tail;
    const double experts = static_cast<double>(matrices.expert_weights);
    const double of_one = body + experts * work.expertShare(1);
    const double of_all = body + experts * work.expertShare(cost->tokens);
    const double once = chunk == 0 ? 0 : kNano * rate->chunk_ns * of_all;
    cost->weights_s +=
        once + kNano * of_one * (chunk == 0 ? rate->decode_ns : tokens * rate->chunk_token_ns);
    cost->weights_once_s += once;
    cost->head_s += kNano * rate->decode_ns * tail;
    cost->head_s += kNano * rate->head_ns * static_cast<double>(matrices.head_weights);
  }
  if (work.expert_file_bytes != 0 && speed.file_bytes_per_s <= 0) {
    return false;
  }
  if (speed.file_bytes_per_s > 0) {
    cost->file_s = work.fileBytes(cost->tokens) / speed.file_bytes_per_s;
    cost->weights_s += cost->file_s;
    cost->weights_once_s += chunk == 0 ? 0 : cost->file_s;
  }
  const ModelDesc& model = *work.model;
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    const LayerKind& kind = model.kind(layer);
    const bool passed = chunk == 0 || layer < model.n_layers - work.tail_layers;
    if (!passed) {
      continue;
    }
    if (kind.keepsState()) {
      cost->weights_s += stateSeconds(speed, kind.state, formats.state, cost->tokens);
    }
    if (!kind.attends()) {
      continue;  // a convolution costs little compared with its matrices
    }
    CacheSpeed rate;
    if (!cacheRate(speed, formats.keys(layer), formats.values(layer), &rate)) {
      return false;
    }
    // A key and a value of this size are the same amount of work.
    const double dim = kind.isLatent() ? kind.latent_dim + 0.5 * kind.rope_dim : kind.head_dim;
    const double values = kNano * tokens * kind.n_heads * dim;
    const double seen = values * (chunk == 0 ? rate.decode_ns : rate.chunk_ns);
    // In a chunk this is per token, like most of the matrices' time.
    (chunk == 0 ? cost->overhead_s : cost->weights_s) +=
        values * (chunk == 0 ? rate.append_ns : rate.chunk_append_ns);
    cost->seen[kind.view].s_per_token += seen;
  }
  cost->n_views = model.n_views;
  for (uint32_t view = 0; view < model.n_views; ++view) {
    cost->seen[view].window_tokens = model.views[view].window;
  }
  return true;
}

void limitSeen(const ModelDesc& model, uint32_t sinks, uint32_t window, StepCost* cost) {
  for (uint32_t view = 0; view < cost->n_views; ++view) {
    const LayerView& seen = model.views[view];
    if (seen.kind == ViewKind::kSession && seen.parts != 0) {
      cost->seen[view].window_tokens = sinks + static_cast<uint32_t>(seen.windowOf(window));
    }
  }
}

double stepSeconds(const StepCost& cost, double depth) {
  double seconds = cost.overhead_s + cost.weights_s;
  for (uint32_t view = 0; view < cost.n_views; ++view) {
    const StepCost::Seen& seen = cost.seen[view];
    seconds += seen.s_per_token *
               (seen.window_tokens != 0 ? std::min<double>(depth, seen.window_tokens) : depth);
  }
  return seconds;
}

bool validSpeed(const DeviceSpeed& speed) {
  const auto valid = [](double value) { return std::isfinite(value) && value >= 0; };
  bool good = speed.weight_count <= kMaxSpeedWeights && speed.cache_count <= kMaxSpeedCaches &&
              valid(speed.submit_ns) && valid(speed.dispatch_ns) && valid(speed.read_bytes_per_s) &&
              valid(speed.file_bytes_per_s);
  for (uint32_t i = 0; good && i < speed.weight_count; ++i) {
    const WeightSpeed& rate = speed.weights[i];
    good = valid(rate.decode_ns) && valid(rate.chunk_ns) && valid(rate.chunk_token_ns) &&
           valid(rate.head_ns);
  }
  for (uint32_t i = 0; good && i < speed.cache_count; ++i) {
    const CacheSpeed& rate = speed.caches[i];
    good = valid(rate.decode_ns) && valid(rate.chunk_ns) && valid(rate.append_ns) &&
           valid(rate.chunk_append_ns);
  }
  return good;
}

}  // namespace oriel_internal
