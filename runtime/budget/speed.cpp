#include "budget/speed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace oriel {
namespace {

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

/// Rates of a pair; one that was not measured is half of each side's own pair.
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

}  // namespace

void WorkShape::add(uint32_t tensor_type, uint64_t body, uint64_t head) {
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
    if (tensor.dims[1] <= 1 || role == TensorRole::kConvTaps) {
      return;  // a vector
    }
    const uint64_t weights = tensor.dims[0] * tensor.dims[1];
    const bool head = role == TensorRole::kOutput;
    const bool looked_up = role == TensorRole::kTokenEmbedding;
    work.add(tensor.type, head || looked_up ? 0 : weights, head ? weights : 0);
  };
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
  const uint32_t ops = work.n_ops[static_cast<uint32_t>(list)];
  cost->tokens = chunk == 0 ? 1 : chunk;
  cost->overhead_s = kNano * (speed.submit_ns + ops * speed.dispatch_ns);
  cost->head_s = kNano * head_ops * speed.dispatch_ns;
  for (uint32_t i = 0; i < work.n_matrices; ++i) {
    const WorkShape::Matrices& matrices = work.matrices[i];
    if (matrices.body_weights + matrices.head_weights == 0) {
      continue;  // only looked up
    }
    const WeightSpeed* rate = findWeights(speed, matrices.tensor_type);
    if (rate == nullptr) {
      return false;
    }
    const double each =
        chunk == 0 ? rate->decode_ns : rate->chunk_ns + tokens * rate->chunk_token_ns;
    cost->weights_s += kNano * each * static_cast<double>(matrices.body_weights);
    cost->weights_once_s +=
        chunk == 0 ? 0 : kNano * rate->chunk_ns * static_cast<double>(matrices.body_weights);
    cost->head_s += kNano * rate->head_ns * static_cast<double>(matrices.head_weights);
  }
  const ModelDesc& model = *work.model;
  for (uint32_t layer = 0; layer < model.n_layers; ++layer) {
    const LayerKind& kind = model.kind(layer);
    if (kind.mixer != Mixer::kAttention) {
      continue;  // what a convolution does is little beside its matrices
    }
    CacheSpeed rate;
    if (!cacheRate(speed, formats.keys(layer), formats.values(layer), &rate)) {
      return false;
    }
    const double values =
        kNano * tokens * kind.n_heads * (kind.latent_dim != 0 ? kind.latent_dim : kind.head_dim);
    const double seen = values * (chunk == 0 ? rate.decode_ns : rate.chunk_ns);
    // In a chunk that is for each token, as most of the matrices' time is.
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
              valid(speed.submit_ns) && valid(speed.dispatch_ns) && valid(speed.read_bytes_per_s);
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

}  // namespace oriel
