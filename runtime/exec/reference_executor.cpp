// The reference executor: every op in plain scalar C++, in the order and the formats of the plan. It is
// the oracle that kernels are compared with, and what runs where there are no vector instructions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "base/half.h"
#include "exec/host_executor.h"
#include "exec/reference_weights.h"
#include "exec/top_tokens.h"
#include "kv/kv_side.h"
#include "kv/quantise.h"

namespace oriel {
namespace {

class ReferenceExecutor final : public HostExecutor {
 public:
  ReferenceExecutor(const Plan& plan, const ExecutorOptions& options)
      : HostExecutor(plan, options) {}

  Status run(StepRun what, const StopCheck& stop) override {
    std::memcpy(at(plan_.device_step), at(plan_.step), static_cast<size_t>(plan_.step.size_bytes));
    if (what != StepRun::kHead &&
        !runList(what == StepRun::kDecode ? StepList::kDecode : StepList::kChunk, stop)) {
      return ORIEL_ERROR_CANCELLED;
    }
    if (what != StepRun::kChunk) {
      (void)runList(StepList::kHead, StopCheck());
    }
    return kOk;
  }

  const char* driverName() const override { return "Oriel reference executor"; }

 private:
  const StepHeader& header() const {
    return *reinterpret_cast<const StepHeader*>(at(plan_.device_step));
  }
  const TokenStep& token(uint32_t t) const {
    return reinterpret_cast<const TokenStep*>(at(plan_.device_step) + sizeof(StepHeader))[t];
  }
  // The tables of (cos, sin) pairs of a token.
  const float* rotations(uint32_t t, const RopeAppendPush& p) const {
    return reinterpret_cast<const float*>(at(plan_.device_step)) +
           stepRotationWord(p.chunk, p.rotation_stride, t);
  }

  // False: stopped.
  bool runList(StepList list, const StopCheck& stop) {
    const uint32_t i = static_cast<uint32_t>(list);
    for (uint32_t n = 0; n < plan_.n_ops[i]; ++n) {
      if (stop()) {
        return false;
      }
      runOp(plan_.ops[i][n]);
    }
    return true;
  }

  void runOp(const Op& op) {
    switch (op.kind) {
      case OpKind::kEmbed:
        return embed(op);
      case OpKind::kRmsNorm:
        return rmsNorm(op);
      case OpKind::kMatmul:
        return matmul(op);
      case OpKind::kAddBias:
        return addBias(op);
      case OpKind::kRopeAppend:
        return ropeAppend(op);
      case OpKind::kAttention:
        return attention(op);
      case OpKind::kAttentionMerge:
        return attentionMerge(op);
      case OpKind::kGatedActivation:
        return gatedActivation(op);
      case OpKind::kTopBlocks:
        return topBlocks(floats(op, 0), op.push.top, words(op, 2));
      case OpKind::kTopTokens:
        return topTokens(floats(op, 0), op.push.top, words(op, 3),
                         reinterpret_cast<TopTokens*>(words(op, 2)));
    }
  }

  void embed(const Op& op) {
    const EmbedPush& p = op.push.embed;
    const WeightRows rows = {op.weights, words(op, 0), p.group_words, p.side_word};
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      const uint32_t row = token(t).token - p.first_row;  // wraps for rows before the slice
      if (row >= p.rows) {
        continue;
      }
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride;
      float values[kUnit];
      for (uint32_t c = 0; c < p.cols; ++c) {
        if (c % kUnit == 0) {
          rows.unpack(row, c / kUnit, values);
        }
        out[c] = p.scale * values[c % kUnit];
      }
    }
  }

  void rmsNorm(const Op& op) {
    const RmsNormPush& p = op.push.rms_norm;
    const float* weight = floats(op, 3);
    const uint32_t n = p.head_row_only != 0 ? 1 : header().n_tokens;
    for (uint32_t t = 0; t < n; ++t) {
      const uint32_t source = p.head_row_only != 0 ? header().head_row : t;
      const float* in = floats(op, 0) + static_cast<uint64_t>(source) * p.in_stride + p.first;
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + p.first;
      for (uint32_t row = 0; row < p.rows; ++row, in += p.cols, out += p.cols) {
        double sum = 0;
        for (uint32_t c = 0; c < p.cols; ++c) {
          sum += static_cast<double>(in[c]) * in[c];
        }
        const float scale = static_cast<float>(1.0 / std::sqrt(sum / p.cols + p.eps));
        for (uint32_t c = 0; c < p.cols; ++c) {
          const float normed = in[c] * scale * weight[c];
          out[c] = p.accumulate != 0 ? out[c] + normed : normed;
        }
      }
    }
  }

  void matmul(const Op& op) {
    const MatmulPush& p = op.push.matmul;
    const WeightRows rows = {op.weights, words(op, 0), p.group_words, p.side_word};
    const uint32_t n = productRows(op, header().n_tokens);
    for (uint32_t r = 0; r < p.rows; ++r) {
      for (uint32_t first = 0; first < n; first += kTokenBlock) {
        const uint32_t block = std::min(kTokenBlock, n - first);
        float products[kTokenBlock];
        rows.dots(r, p.units, floats(op, 3) + static_cast<uint64_t>(first) * p.in_stride,
                  p.in_stride, block, products);
        for (uint32_t t = 0; t < block; ++t) {
          float* out =
              floats(op, 2) + static_cast<uint64_t>(first + t) * p.out_stride + p.out_first + r;
          *out = p.accumulate != 0 ? *out + products[t] : products[t];
        }
      }
    }
  }

  void addBias(const Op& op) {
    const AddBiasPush& p = op.push.add_bias;
    const float* bias = floats(op, 0);
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + p.out_first;
      for (uint32_t c = 0; c < p.cols; ++c) {
        out[c] += bias[c];
      }
    }
  }

  static float rotated(const float* head, uint32_t i, const RopeAppendPush& p, const float* pairs) {
    if (i >= p.rope_dims) {
      return head[i];
    }
    const bool interleaved = p.pair_stride == 1;
    const uint32_t pair = interleaved ? i / 2 : i % p.pair_stride;
    const bool first = interleaved ? i % 2 == 0 : i < p.pair_stride;
    const float c = pairs[2 * pair];
    const float s = pairs[2 * pair + 1];
    return first ? head[i] * c - head[i + p.pair_stride] * s
                 : head[i - p.pair_stride] * s + head[i] * c;
  }

  void ropeAppend(const Op& op) {
    const RopeAppendPush& p = op.push.rope_append;
    const uint32_t d = p.head_dim;
    // Low-bit keys are stored rotated, so their queries are, too. Sinks are f16 and are not.
    const bool rotate = op.k_format != KvFormat::kF16;
    KvSide keys(op.k_format, p.n_kv_heads, d, p.sinks, p.ring, words(op, 3));
    KvSide values(op.v_format, p.n_kv_heads, d, p.sinks, p.ring, words(op, 4));
    float head[kMaxHeadDim];
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      const float* qkv = floats(op, 0) + static_cast<uint64_t>(t) * p.qkv_stride;
      const float* at_position = rotations(t, p) + p.rotation;
      const float* for_sinks = rotations(t, p) + p.sink_rotation;
      float* queries = floats(op, 2) + static_cast<uint64_t>(t) * p.query_stride;
      for (uint32_t h = 0; h < p.n_heads; ++h) {
        float* window_query = queries + (2 * h) * d;
        for (uint32_t i = 0; i < d; ++i) {
          window_query[i] = rotated(qkv + h * d, i, p, at_position);
          window_query[d + i] = rotated(qkv + h * d, i, p, for_sinks);
        }
        if (rotate) {
          hadamard(window_query, d, hadamardBlock(d));
        }
      }
      const uint32_t slot = p.local != 0 ? token(t).local_slot : token(t).slot;
      for (uint32_t h = 0; h < p.n_kv_heads; ++h) {
        const float* k = qkv + (p.n_heads + h) * d;
        const float* v = qkv + (p.n_heads + p.n_kv_heads + h) * d;
        for (uint32_t i = 0; i < d; ++i) {
          head[i] = rotated(k, i, p, at_position);
        }
        if (slot < p.sinks) {
          keys.storeSink(h, slot, head);
          values.storeSink(h, slot, v);
          continue;
        }
        if (rotate) {
          hadamard(head, d, hadamardBlock(d));
        }
        keys.storeRing(h, slot - p.sinks, head);
        values.storeRing(h, slot - p.sinks, v);
      }
    }
  }

  void attention(const Op& op) {
    const AttentionPush& p = op.push.attention;
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      for (uint32_t h = 0; h < p.n_heads; ++h) {
        for (uint32_t s = 0; s < p.splits; ++s) {
          attendSplit(op, t, h, s);
        }
      }
    }
  }

  // One head of one token over its share of the slots, with the softmax kept online: one pass over
  // keys and values, no array of scores.
  void attendSplit(const Op& op, uint32_t t, uint32_t h, uint32_t split) {
    const AttentionPush& p = op.push.attention;
    const TokenStep& step = token(t);
    const uint32_t n_sinks = p.local != 0 ? 0 : step.n_sinks;
    const uint32_t ring_begin = p.local != 0 ? step.local_begin : step.ring_begin;
    const uint32_t d = p.head_dim;
    const uint32_t kv_head = h / (p.n_heads / p.n_kv_heads);
    const KvSide keys(op.k_format, p.n_kv_heads, d, p.sinks, p.ring, words(op, 3));
    const KvSide values(op.v_format, p.n_kv_heads, d, p.sinks, p.ring, words(op, 4));
    const float* queries = floats(op, 0) + static_cast<uint64_t>(t) * p.query_stride +
                           static_cast<uint64_t>(h) * 2 * d;

    float stored[kMaxHeadDim];
    float sum_v[kMaxHeadDim] = {};
    float sum = 0;
    float most = -3.0e38f;
    const uint32_t visible = n_sinks + (p.local != 0 ? step.local_n_ring : step.n_ring);
    const uint64_t begin = static_cast<uint64_t>(split) * p.split_slots;
    const uint64_t end = std::min<uint64_t>(begin + p.split_slots, visible);
    for (uint64_t i = begin; i < end; ++i) {
      const bool is_sink = i < n_sinks;
      const uint32_t slot = is_sink ? static_cast<uint32_t>(i)
                                    : static_cast<uint32_t>((ring_begin + (i - n_sinks)) % p.ring);
      is_sink ? keys.loadSink(kv_head, slot, stored) : keys.loadRing(kv_head, slot, stored);
      const float* q = queries + (is_sink ? d : 0);
      float score = 0;
      for (uint32_t c = 0; c < d; ++c) {
        score += q[c] * stored[c];
      }
      score *= p.scale;
      if (score > most) {
        const float shrink = std::exp(most - score);
        sum *= shrink;
        for (uint32_t c = 0; c < d; ++c) {
          sum_v[c] *= shrink;
        }
        most = score;
      }
      const float weight = std::exp(score - most);
      sum += weight;
      is_sink ? values.loadSink(kv_head, slot, stored) : values.loadRing(kv_head, slot, stored);
      for (uint32_t c = 0; c < d; ++c) {
        sum_v[c] += weight * stored[c];
      }
    }

    if (p.splits == 1) {
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + h * d;
      for (uint32_t c = 0; c < d; ++c) {
        out[c] = sum_v[c] / sum;
      }
      return;
    }
    const uint64_t index = (static_cast<uint64_t>(t) * p.n_heads + h) * p.splits + split;
    float* out = floats(op, 2) + index * (d + kPartialExtra);
    std::memcpy(out, sum_v, d * sizeof(float));
    out[d] = most;
    out[d + 1] = sum;
  }

  void attentionMerge(const Op& op) {
    const AttentionMergePush& p = op.push.attention_merge;
    const uint32_t d = p.head_dim;
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      for (uint32_t h = 0; h < p.n_heads; ++h) {
        const float* parts = floats(op, 0) + (static_cast<uint64_t>(t) * p.n_heads + h) * p.splits *
                                                 (d + kPartialExtra);
        float most = parts[d];
        for (uint32_t s = 1; s < p.splits; ++s) {
          most = std::max(most, parts[s * (d + kPartialExtra) + d]);
        }
        float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + h * d;
        std::fill(out, out + d, 0.0f);
        float sum = 0;
        for (uint32_t s = 0; s < p.splits; ++s) {
          const float* part = parts + s * (d + kPartialExtra);
          const float weight = std::exp(part[d] - most);
          sum += weight * part[d + 1];
          for (uint32_t c = 0; c < d; ++c) {
            out[c] += weight * part[c];
          }
        }
        for (uint32_t c = 0; c < d; ++c) {
          out[c] /= sum;
        }
      }
    }
  }

  void gatedActivation(const Op& op) {
    const GatedActivationPush& p = op.push.gated_activation;
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      const float* gate = floats(op, 0) + static_cast<uint64_t>(t) * p.in_stride;
      const float* up = gate + p.up_offset;
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride;
      for (uint32_t c = 0; c < p.cols; ++c) {
        const float x = gate[c];
        const float y = p.gelu != 0 ? 2.0f * kGeluScale * (x + kGeluCubic * x * x * x) : x;
        out[c] = x / (1.0f + std::exp(-y)) * up[c];
      }
    }
  }
};
static_assert(sizeof(ReferenceExecutor) <= kExecutorObjectBytes, "raise kExecutorObjectBytes");

}  // namespace

ExecutorMemory takeExecutorMemory(const Plan& plan, Arena* host) {
  ExecutorMemory memory;
  memory.object = host->take<uint8_t>(kExecutorObjectBytes);
  memory.per_op = host->take<uint8_t>(plan.op_capacity * kExecutorBytesPerOp);
  return memory;
}

Status createReferenceExecutor(const Plan& plan, const ExecutorOptions& options,
                               const ExecutorMemory& memory, Executor** executor) {
  ReferenceExecutor* made = new (memory.object) ReferenceExecutor(plan, options);
  const Status status = made->allocate();
  if (!status.ok()) {
    destroyExecutor(made);
    return status;
  }
  *executor = made;
  return kOk;
}

}  // namespace oriel
