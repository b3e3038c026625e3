#include "budget/speed.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace oriel {
namespace {

const oriel_weight_speed* findWeights(const oriel_speed& speed, uint32_t tensor_type) {
  for (uint32_t i = 0; i < speed.weight_count; ++i) {
    if (speed.weights[i].tensor_type == tensor_type) {
      return &speed.weights[i];
    }
  }
  return nullptr;
}

bool sameName(const GgufString& name, const char* text) {
  return name.bytes == std::strlen(text) && std::memcmp(name.data, text, name.bytes) == 0;
}

const oriel_cache_speed* findCache(const oriel_speed& speed, oriel_kv_format k, oriel_kv_format v) {
  for (uint32_t i = 0; i < speed.cache_count; ++i) {
    if (speed.caches[i].k_format == k && speed.caches[i].v_format == v) {
      return &speed.caches[i];
    }
  }
  return nullptr;
}

/// Rates of a pair; one that was not measured is half of each side's own pair.
bool cacheRate(const oriel_speed& speed, KvFormat keys, KvFormat values, oriel_cache_speed* rate) {
  const oriel_kv_format k = publicFormat(keys);
  const oriel_kv_format v = publicFormat(values);
  if (const oriel_cache_speed* found = findCache(speed, k, v)) {
    *rate = *found;
    return true;
  }
  const oriel_cache_speed* a = findCache(speed, k, k);
  const oriel_cache_speed* b = findCache(speed, v, v);
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

oriel_kv_format publicFormat(KvFormat format) {
  switch (format) {
    case KvFormat::kF16:
      return ORIEL_KV_F16;
    case KvFormat::kInt8:
      return ORIEL_KV_INT8;
    case KvFormat::kInt4:
      return ORIEL_KV_INT4;
  }
  return ORIEL_KV_AUTO;
}

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

WorkShape workOf(const GgufFile& file, const ModelDesc& model, const KvShape& kv,
                 const PlanTotals& totals) {
  WorkShape work;
  work.known = true;
  work.n_heads = model.n_heads;
  work.kv = kv;
  for (uint32_t i = 0; i < kStepLists; ++i) {
    work.n_ops[i] = totals.n_ops[i];
  }
  uint64_t cursor = 0;
  GgufTensor tensor;
  while (file.nextTensor(&cursor, &tensor)) {
    if (tensor.dims[1] <= 1) {
      continue;  // a vector
    }
    const uint64_t weights = tensor.dims[0] * tensor.dims[1];
    if (sameName(tensor.name, "token_embd.weight")) {
      work.add(tensor.type, 0, model.tied_output ? weights : 0);
    } else if (sameName(tensor.name, "output.weight")) {
      work.add(tensor.type, 0, weights);
    } else {
      work.add(tensor.type, weights, 0);
    }
  }
  return work;
}

bool stepCost(const oriel_speed& speed, const WorkShape& work, const CacheFormats& formats,
              uint32_t chunk, oriel_step_cost* cost) {
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
    const oriel_weight_speed* rate = findWeights(speed, matrices.tensor_type);
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
  for (uint32_t layer = 0; layer < work.kv.layers(); ++layer) {
    const KvGroup& group = work.kv.groupOf(layer);
    oriel_cache_speed rate;
    if (!cacheRate(speed, formats.keys(layer), formats.values(layer), &rate)) {
      return false;
    }
    const double values = kNano * tokens * work.n_heads * group.head_dim;
    const double seen = values * (chunk == 0 ? rate.decode_ns : rate.chunk_ns);
    // In a chunk that is for each token, as most of the matrices' time is.
    (chunk == 0 ? cost->overhead_s : cost->weights_s) +=
        values * (chunk == 0 ? rate.append_ns : rate.chunk_append_ns);
    if (group.local_window == 0) {
      cost->cache_s_per_token += seen;
    } else {
      cost->local_s_per_token += seen;
      cost->local_window_tokens = group.local_window;
    }
  }
  return true;
}

double stepSeconds(const oriel_step_cost& cost, double depth) {
  const double local = std::min<double>(depth, cost.local_window_tokens);
  return cost.overhead_s + cost.weights_s + cost.cache_s_per_token * depth +
         cost.local_s_per_token * local;
}

bool validSpeed(const oriel_speed& speed) {
  const auto valid = [](double value) { return std::isfinite(value) && value >= 0; };
  bool good = speed.weight_count <= ORIEL_SPEED_WEIGHTS &&
              speed.cache_count <= ORIEL_SPEED_CACHES && valid(speed.submit_ns) &&
              valid(speed.dispatch_ns) && valid(speed.read_bytes_per_s);
  for (uint32_t i = 0; good && i < speed.weight_count; ++i) {
    const oriel_weight_speed& rate = speed.weights[i];
    good = valid(rate.decode_ns) && valid(rate.chunk_ns) && valid(rate.chunk_token_ns) &&
           valid(rate.head_ns);
  }
  for (uint32_t i = 0; good && i < speed.cache_count; ++i) {
    const oriel_cache_speed& rate = speed.caches[i];
    good = valid(rate.decode_ns) && valid(rate.chunk_ns) && valid(rate.append_ns) &&
           valid(rate.chunk_append_ns);
  }
  return good;
}

}  // namespace oriel
