// The reference executor: every op in plain scalar C++, in the order and the formats of the plan. Kernels are compared
// with it, and it runs on processors without vector instructions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/half.h"
#include "exec/host_executor.h"
#include "exec/sampler.h"
#include "kv/quantise.h"
#include "kv/window.h"

namespace oriel_internal {
namespace {

class ReferenceExecutor final : public HostExecutor {
 public:
  ReferenceExecutor(const Plan& plan, const ExecutorOptions& options)
      : HostExecutor(plan, options), experts_(options.experts) {}

  Status run(StepRun what, const StopCheck& stop) override {
    if (mustCheck()) {
      for (uint32_t block = 0; block < prepared_->blockCount(); ++block) {
        prepared_->checkBlock(block);
      }
      ORIEL_TRY(prepared_->endCheck(log_));
    }
    std::memcpy(at(plan_.device_step), at(plan_.step), static_cast<size_t>(plan_.step.size_bytes));
    if (hasBody(what)) {
      ORIEL_TRY(runList(bodyOf(what), bodyOps(plan_, what), stop));
    }
    if (hasHead(what)) {
      const StepList head = headOf(what, header().n_outputs);
      ORIEL_TRY(runList(head, plan_.n_ops[static_cast<uint32_t>(head)], StopCheck()));
    }
    if (what == StepRun::kChunkNorms) {
      ORIEL_TRY(runList(StepList::kHead, plan_.norm_ops, StopCheck()));
    }
    return kOk;
  }

  const char* driverName() const override { return "Oriel reference executor"; }

 private:
  using Run = void (ReferenceExecutor::*)(const Op& op);
  static const Run kRun[kOpKinds];

  StepBlock block() const { return StepBlock(at(plan_.device_step)); }
  const StepHeader& header() const { return block().header(); }
  const TokenStep& token(uint32_t t) const { return block().token(t); }

  Status runList(StepList list, uint32_t n_ops, const StopCheck& stop) {
    apart_ = isBatch(list);
    for (uint32_t n = 0; n < n_ops; ++n) {
      if (stop()) {
        return ORIEL_ERROR_CANCELLED;
      }
      const Op& op = plan_.ops[static_cast<uint32_t>(list)][n];
      if (op.kind == OpKind::kFetchExperts) {
        ORIEL_TRY(fetchExperts(op));
      } else {
        (this->*kRun[static_cast<uint32_t>(op.kind)])(op);
      }
    }
    return kOk;
  }

  // One side of the cache for the session of token `t`.
  template <typename Push>
  KvSide sideOf(const Op& op, const Push& p, KvFormat format, uint32_t binding, uint32_t t) const {
    const View& view = block().view(t, p.view);
    return KvSide(format, sessionShape(p, p.n_kv_heads, p.head_dim, view), words(op, binding));
  }

  void embed(const Op& op) {
    const EmbedPush& p = op.push.embed;
    const WeightRows rows = {op.weights, words(op, 0), p.group_words, p.side_word};
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      const uint32_t row = embeddedRow(p, block(), t);
      if (row >= p.rows) {
        continue;
      }
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride;
      float values[kUnit];
      for (uint32_t c = 0; c < p.cols; ++c) {
        if (c % kUnit == 0) {
          rows.unpack(row, c / kUnit, values);
        }
        const float value = p.scale * values[c % kUnit];
        out[c] = p.accumulate != 0 ? out[c] + value : value;
      }
    }
  }

  void rmsNorm(const Op& op) {
    const RmsNormPush& p = op.push.rms_norm;
    const float* const weights = floats(op, 3);
    const uint32_t n = p.of_outputs != 0 ? header().n_outputs : header().n_tokens;
    for (uint32_t t = 0; t < n; ++t) {
      const uint32_t source = p.of_outputs != 0 ? token(t).output : t;
      const float* in = floats(op, 0) + static_cast<uint64_t>(source) * p.in_stride + p.first;
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + p.out_first;
      for (uint32_t row = 0; row < p.rows; ++row, in += p.cols, out += p.cols) {
        const float* const weight = weights + (p.weight_rows != 0 ? uint64_t{row} * p.cols : 0);
        double mean = 0;
        for (uint32_t c = 0; c < p.cols && p.centred != 0; ++c) {
          mean += double{in[c]} / p.cols;
        }
        double sum = 0;
        for (uint32_t c = 0; c < p.cols; ++c) {
          sum += (in[c] - mean) * (in[c] - mean);
        }
        const float scale = static_cast<float>(1.0 / std::sqrt(sum / p.cols + p.eps)) * p.scale;
        for (uint32_t c = 0; c < p.cols; ++c) {
          const float normed = static_cast<float>(in[c] - mean) * scale * weight[c];
          const float sum_or_value = p.accumulate != 0 ? out[c] + normed : normed;
          out[c] = p.has_factor != 0 ? sum_or_value * *floats(op, 4) : sum_or_value;
        }
      }
    }
  }

  void matmul(const Op& op) {
    const MatmulPush& p = op.push.matmul;
    const WeightRows rows = {op.weights, words(op, 0), p.group_words, p.side_word};
    const uint32_t n = p.of_outputs != 0 ? header().n_outputs : header().n_tokens;
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
    const float* const values = floats(op, 0);
    const uint32_t n = p.of_outputs != 0 ? header().n_outputs : header().n_tokens;
    for (uint32_t t = 0; t < n; ++t) {
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + p.out_first;
      for (uint32_t c = 0; c < p.cols; ++c) {
        const float* const row = values + uint64_t{t} * p.out_stride + p.out_first;
        out[c] = p.change == kChangeAdd         ? out[c] + values[c]
                 : p.change == kChangeGated     ? out[c] + block().gate(t, p) * values[c]
                 : p.change == kChangeTimes     ? out[c] * values[0]
                 : p.change == kChangeAddRows   ? out[c] + row[c]
                 : p.change == kChangeBetween   ? std::clamp(out[c], values[0], values[1])
                 : p.change == kChangeTimesEach ? out[c] * values[c]
                                                : std::clamp(out[c], -p.limit, p.limit);
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
    // Low-bit keys are stored after a Hadamard rotation, so their queries are rotated the same way. Sinks are f16
    // without that rotation.
    const bool rotate = op.k_format != KvFormat::kF16;
    const float* const norms = op.n_bindings > kRopeNorms ? floats(op, kRopeNorms) : nullptr;
    // Rotates by table `table` of the token. In the norms, keys follow queries.
    const auto turned = [&](const float* from, uint32_t t, uint32_t table, bool key, float* to) {
      const float* const pairs =
          block().floats(table + static_cast<uint64_t>(t) * p.rotation_stride);
      for (uint32_t i = 0; i < d; ++i) {
        const float value = rotated(from, i, p, pairs);
        to[i] = norms != nullptr ? value * norms[(key ? d : 0) + i] : value;
      }
    };
    float head[kMaxHeadDim];
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      KvSide keys = sideOf(op, p, op.k_format, 3, t);
      KvSide values = sideOf(op, p, op.v_format, 4, t);
      const float* qkv = floats(op, 0) + static_cast<uint64_t>(t) * p.qkv_stride;
      float* queries = floats(op, 2) + static_cast<uint64_t>(t) * p.query_stride;
      for (uint32_t h = 0; h < p.n_heads; ++h) {
        float* window_query = queries + (2 * h) * d;
        turned(qkv + h * d, t, p.query_rotation, false, window_query);
        turned(qkv + h * d, t, p.sink_rotation, false, window_query + d);
        if (rotate) {
          hadamard(window_query, d, hadamardBlock(d));
        }
      }
      const uint32_t slot = block().view(t, p.view).slot;
      for (uint32_t h = 0; h < p.n_kv_heads; ++h) {
        const float* v = qkv + (p.n_heads + p.n_kv_heads + h) * d;
        turned(qkv + (p.n_heads + h) * d, t, p.key_rotation, true, head);
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

  // One head of one token over its part of the slots, with online softmax: one pass over keys and values, no array of
  // scores.
  void attendSplit(const Op& op, uint32_t t, uint32_t h, uint32_t split) {
    const AttentionPush& p = op.push.attention;
    const View& view = block().view(t, p.view);
    const uint32_t d = p.head_dim;
    const uint32_t kv_head = h / (p.n_heads / p.n_kv_heads);
    const KvSide keys = sideOf(op, p, op.k_format, 3, t);
    const KvSide values = sideOf(op, p, op.v_format, 4, t);
    const float* queries = floats(op, 0) + static_cast<uint64_t>(t) * p.query_stride +
                           static_cast<uint64_t>(h) * 2 * d;

    float stored[kMaxHeadDim];
    float sum_v[kMaxHeadDim] = {};
    const bool more = op.n_bindings > kMoreScores && split == 0;
    float sum = more ? 1 : 0;
    float most = more ? floats(op, kMoreScores)[h] : -3.0e38f;
    const uint32_t visible = view.n_sinks + view.count;
    const uint64_t begin = static_cast<uint64_t>(split) * p.split_slots;
    const uint64_t end = std::min<uint64_t>(begin + p.split_slots, visible);
    for (uint64_t i = begin; i < end; ++i) {
      const bool is_sink = i < view.n_sinks;
      const uint32_t slot =
          is_sink ? static_cast<uint32_t>(i)
                  : static_cast<uint32_t>((view.begin + (i - view.n_sinks)) % view.ring);
      is_sink ? keys.loadSink(kv_head, slot, stored) : keys.loadRing(kv_head, slot, stored);
      const float* q = queries + (is_sink ? d : 0);
      float score = 0;
      for (uint32_t c = 0; c < d; ++c) {
        score += q[c] * stored[c];
      }
      score *= p.scale;
      if (p.soft_cap != 0) {
        score = p.soft_cap * std::tanh(score / p.soft_cap);
      }
      if (p.alibi_heads != 0) {
        const float far = static_cast<float>(slot) - static_cast<float>(view.slot);
        score -= alibiSlope(p.alibi_heads, h) * std::abs(far);
      }
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
    for (uint32_t t = 0; t < header().n_tokens * p.rows_per_token; ++t) {
      const float* row = floats(op, 0) + static_cast<uint64_t>(t) * p.in_stride;
      const float* gate = row + p.gate_offset;
      const float* up = row + p.up_offset;
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride;
      for (uint32_t c = 0; c < p.cols; ++c) {
        const float by = p.plain != 0                   ? 1.0f
                         : p.activation == kClampedSilu ? std::clamp(up[c], -p.a, p.a) + 1
                                                        : up[c];
        out[c] = activated(p, gate[c]) * by * p.scale;
      }
    }
  }

  static float activated(const GatedActivationPush& p, float x) {
    const float positive = std::max(x, 0.0f);
    switch (p.activation) {
      case kGelu:
        return x / (1 + std::exp(-2 * kGeluScale * (x + kGeluCubic * x * x * x)));
      case kGeluErf:
        return 0.5f * x * (1 + std::erf(x * 0.70710678f));
      case kRelu:
        return positive;
      case kReluSquared:
        return positive * positive;
      case kClampedSilu:
        return std::min(x, p.a) / (1 + std::exp(-p.b * std::min(x, p.a)));
      case kTanh:
        return std::tanh(x);
      case kXielu:
        return p.c * x + (x > 0 ? p.a * x * x : (std::expm1(std::min(x, p.d)) - x) * p.b);
      default:
        return x / (1 + std::exp(-x));
    }
  }

  void stateInputs(const Op& op) {
    const StateInputsPush& p = op.push.state_inputs;
    forEachSequence([&](uint32_t first, uint32_t n) {
      referenceStateInputs(p, n, floats(op, 0) + uint64_t{first} * p.in_stride,
                           stepState(op, p, first), floats(op, 4), floats(op, 5),
                           floats(op, 2) + uint64_t{first} * p.out_stride);
    });
  }

  void stateScan(const Op& op) {
    const StateScanPush& p = op.push.state_scan;
    forEachSequence([&](uint32_t first, uint32_t n) {
      referenceStateScan(p, n, floats(op, 0) + uint64_t{first} * p.in_stride,
                         stepState(op, p, first), floats(op, 4),
                         floats(op, 2) + uint64_t{first} * p.out_stride);
    });
  }
  // Calls visit(first, n) for consecutive tokens of one session.
  template <typename Visit>
  void forEachSequence(const Visit& visit) const {
    const uint32_t n_tokens = header().n_tokens;
    const uint32_t n = apart_ ? 1 : n_tokens;
    for (uint32_t first = 0; first < n_tokens; first += n) {
      visit(first, n);
    }
  }

  void gatedNorm(const Op& op) {
    const GatedNormPush& p = op.push.gated_norm;
    const uint32_t n = p.of_outputs != 0 ? header().n_outputs : header().n_tokens;
    for (uint32_t t = 0; t < n; ++t) {
      const uint64_t source = p.of_outputs != 0 ? block().token(t).output : t;
      referenceGatedNorm(
          p, 1, floats(op, 0) + uint64_t{t} * p.in_stride, floats(op, 3) + source * p.gate_stride,
          p.has_norm != 0 ? floats(op, 4) : nullptr, floats(op, 2) + uint64_t{t} * p.out_stride);
    }
  }

  void pool(const Op& op) {
    for (uint32_t i = 0; i < header().n_outputs; ++i) {
      poolText(op, block(), i);
    }
  }

  void shortConv(const Op& op) {
    const ShortConvPush& p = op.push.short_conv;
    const uint32_t n = header().n_tokens;
    const float* taps = floats(op, 4);
    if (p.centred != 0) {
      return centredConv(op, taps);
    }
    // Reads the stored values, both for tokens of this step and for earlier tokens.
    for (uint32_t t = 0; t < n; ++t) {
      const float* b = floats(op, 0) + static_cast<uint64_t>(t) * p.in_stride;
      const float* x = b + 2ull * p.channels;
      float* column = columnOf(op, t, block().view(t, p.view).slot);
      for (uint32_t c = 0; c < p.channels; ++c) {
        column[c] = b[c] * x[c];
      }
    }
    for (uint32_t t = 0; t < n; ++t) {
      const View& view = block().view(t, p.view);
      const float* gate = floats(op, 0) + static_cast<uint64_t>(t) * p.in_stride + p.channels;
      float* out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride;
      std::fill(out, out + p.channels, 0.0f);
      for (uint32_t back = p.taps; back-- > 0;) {
        if (back != 0 && back >= view.count) {
          continue;
        }
        const uint32_t slot =
            back == 0
                ? view.slot
                : static_cast<uint32_t>((uint64_t{view.begin} + view.count - 1 - back) % view.ring);
        const float* column = columnOf(op, t, slot);
        for (uint32_t c = 0; c < p.channels; ++c) {
          out[c] += taps[static_cast<uint64_t>(c) * p.taps + p.taps - 1 - back] * column[c];
        }
      }
      for (uint32_t c = 0; c < p.channels; ++c) {
        out[c] *= gate[c];
      }
    }
  }

  void centredConv(const Op& op, const float* taps) {
    const ShortConvPush& p = op.push.short_conv;
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      const View& view = block().view(t, p.view);
      const float* const in = floats(op, 0) + uint64_t{t} * p.in_stride;
      float* const out = floats(op, 2) + uint64_t{t} * p.out_stride;
      for (uint32_t c = 0; c < p.channels; ++c) {
        float sum = 0;
        for (uint32_t j = 0; j < p.taps; ++j) {
          const int64_t by = int64_t{j} - (p.taps - 1) / 2;
          const int64_t place = view.slot + by;
          if (place >= 0 && place < view.count) {
            const float* const other = in + by * p.in_stride + c;
            sum += taps[uint64_t{c} * p.taps + j] * (other[0] * other[2ull * p.channels]);
          }
        }
        out[c] = in[p.channels + c] * sum;
      }
    }
  }

  float* columnOf(const Op& op, uint32_t t, uint32_t slot) const {
    const ShortConvPush& p = op.push.short_conv;
    return floats(op, 3) + (uint64_t{block().view(t, p.view).first} + slot) * p.channels;
  }

  // --- Experts --------------------------------------------------------------------------------------

  void route(const Op& op) {
    const RoutePush& p = op.push.route;
    const float* const bias = p.has_bias != 0 ? floats(op, 3) : nullptr;
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      const float* const in = floats(op, 0) + static_cast<uint64_t>(t) * p.in_stride;
      double scores[kMaxExperts];
      const double most = *std::max_element(in, in + p.n_experts);
      double sum = 0;
      for (uint32_t e = 0; e < p.n_experts; ++e) {
        scores[e] =
            p.sigmoid != 0 ? 1.0 / (1.0 + std::exp(-double{in[e]})) : std::exp(in[e] - most);
        sum += scores[e];
      }
      bool taken[kMaxExperts] = {};
      for (uint32_t e = 0; e < p.n_experts && p.sigmoid == 0; ++e) {
        scores[e] /= sum;
      }
      leaveGroups(p, scores, bias, taken);
      uint32_t* const experts = words(op, 2) + t * p.n_used;
      float* const weights = floats(op, 2) + p.routes + t * p.n_used;
      double chosen_sum = 0;
      for (uint32_t k = 0; k < p.n_used; ++k) {
        uint32_t best = p.n_experts;
        double best_value = 0;
        for (uint32_t e = 0; e < p.n_experts; ++e) {
          const double value = scores[e] + (bias != nullptr ? double{bias[e]} : 0.0);
          if (!taken[e] && (best == p.n_experts || value > best_value)) {
            best = e;
            best_value = value;
          }
        }
        taken[best] = true;
        experts[k] = best;
        weights[k] = static_cast<float>(scores[best]);
        chosen_sum += scores[best];
      }
      for (uint32_t k = 0; k < p.n_used; ++k) {
        if (p.normalised != 0) {
          weights[k] /= static_cast<float>(std::max(chosen_sum, double{kLeastRouteSum}));
        }
        weights[k] *= p.scale;
      }
    }
  }

  // Experts outside the best groups count as taken.
  static void leaveGroups(const RoutePush& p, const double* scores, const float* bias,
                          bool* taken) {
    if (p.groups <= 1) {
      return;
    }
    const uint32_t size = p.n_experts / p.groups;
    double groups[kMaxExpertGroups];
    for (uint32_t g = 0; g < p.groups; ++g) {
      double best = -HUGE_VAL;
      double second = -HUGE_VAL;
      for (uint32_t e = g * size; e < (g + 1) * size; ++e) {
        const double value = scores[e] + (bias != nullptr ? double{bias[e]} : 0.0);
        second = std::max(second, std::min(best, value));
        best = std::max(best, value);
      }
      groups[g] = best + (size > 1 ? second : 0);
    }
    for (uint32_t e = 0; e < p.n_experts; ++e) {
      uint32_t better = 0;
      for (uint32_t g = 0; g < p.groups; ++g) {
        better += groups[g] > groups[e / size] || (groups[g] == groups[e / size] && g < e / size);
      }
      taken[e] = better >= p.used_groups;
    }
  }

  void sortRoutes(const Op& op) {
    const SortRoutesPush& p = op.push.sort_routes;
    const uint32_t n = header().n_tokens * p.n_used;
    uint32_t* const experts = words(op, 0);
    uint32_t* const place = words(op, 2) + 2 * p.routes;
    uint32_t* const route_at = place + p.routes;
    uint32_t* const begin = route_at + p.routes;
    uint32_t next = 0;
    for (uint32_t e = 0; e < p.n_experts; ++e) {
      begin[e] = next;
      for (uint32_t r = 0; r < n; ++r) {
        if (experts[r] == e) {
          place[r] = next;
          route_at[next++] = r;
        }
      }
    }
    begin[p.n_experts] = next;
  }

  void expertMatmul(const Op& op) {
    const ExpertMatmulPush& p = op.push.expert_matmul;
    const uint32_t* const routes = words(op, 4);
    const uint32_t* const route_at = routes + 3 * p.routes;
    const uint32_t* const begin = routes + 4 * p.routes;
    const uint64_t stack_words = ceilDiv(p.rows, kGroupRows) * p.group_words;
    for (uint32_t e = 0; e < p.n_experts; ++e) {
      const uint32_t slot = (p.has_slots != 0 ? words(op, kExpertSlots)[e] : e) - p.first;
      if (slot >= p.count) {  // unsigned: also true below p.first and without a slot
        continue;
      }
      const WeightRows rows = {op.weights, words(op, 0) + slot * stack_words, p.group_words,
                               p.side_word};
      for (uint32_t at = begin[e]; at < begin[e + 1]; ++at) {
        const uint32_t x = p.of_tokens != 0 ? route_at[at] / p.n_used : at;
        const float* const in = floats(op, 3) + static_cast<uint64_t>(x) * p.in_stride;
        float* const out = floats(op, 2) + static_cast<uint64_t>(at) * p.out_stride + p.out_first;
        for (uint32_t r = 0; r < p.rows; ++r) {
          float sum = 0;
          rows.dots(r, p.units, in, p.in_stride, 1, &sum);
          out[r] = p.accumulate != 0 ? out[r] + sum : sum;
        }
      }
    }
  }

  void expertCombine(const Op& op) {
    const ExpertCombinePush& p = op.push.expert_combine;
    const float* const weights = floats(op, 3) + p.routes;
    const uint32_t* const place = words(op, 3) + 2 * p.routes;
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      float* const out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + p.out_first;
      for (uint32_t c = 0; c < p.cols; ++c) {
        float sum = p.accumulate != 0 ? out[c] : 0;
        for (uint32_t r = t * p.n_used; r < (t + 1) * p.n_used; ++r) {
          sum += weights[r] * floats(op, 0)[static_cast<uint64_t>(place[r]) * p.in_stride + c];
        }
        out[c] = sum;
      }
    }
  }

  void expertBias(const Op& op) {
    const ExpertBiasPush& p = op.push.expert_bias;
    const uint32_t* const experts = words(op, 3);
    const uint32_t* const route_at = experts + 3 * p.routes;
    for (uint32_t at = 0; at < header().n_tokens * p.n_used; ++at) {
      const uint32_t e = experts[route_at[at]];
      float* const out = floats(op, 2) + static_cast<uint64_t>(at) * p.out_stride + p.out_first;
      for (uint32_t c = 0; c < p.cols; ++c) {
        out[c] = p.change == kChangeAdd     ? out[c] + floats(op, 0)[uint64_t{e} * p.cols + c]
                 : p.change == kChangeGated ? out[c] * block().gate(route_at[at] / p.n_used, p)
                                            : out[c] * floats(op, 0)[e];
      }
    }
  }

  Status fetchExperts(const Op& op) {
    return experts_->fetch(op.push.fetch_experts, header().n_tokens, words(op, 0), words(op, 2),
                           this);
  }

  void tail(const Op& op) {
    const TailPush& p = op.push.tail;
    const float* const in = floats(op, 0) + static_cast<uint64_t>(header().tail) * p.stride;
    std::memmove(floats(op, 2), in, p.cols * sizeof(float));
  }

  // --- Latent attention -----------------------------------------------------------------------------

  void headMatmul(const Op& op) {
    const HeadMatmulPush& p = op.push.head_matmul;
    const uint64_t stack_words = ceilDiv(p.rows, kGroupRows) * p.group_words;
    for (uint32_t i = 0; i < p.count; ++i) {
      const WeightRows rows = {op.weights, words(op, 0) + i * stack_words, p.group_words,
                               p.side_word};
      const uint32_t head = p.first + i;
      for (uint32_t t = 0; t < header().n_tokens; ++t) {
        const float* const in =
            floats(op, 3) + static_cast<uint64_t>(t) * p.in_stride + head * p.in_head;
        float* const out = floats(op, 2) + static_cast<uint64_t>(t) * p.out_stride + p.out_first +
                           static_cast<uint64_t>(head) * p.out_head;
        for (uint32_t r = 0; r < p.rows; ++r) {
          rows.dots(r, p.units, in, p.in_stride, 1, out + r);
        }
      }
    }
  }

  void latentAppend(const Op& op) {
    const ReferenceLatentAppend task = {op.push.latent_append, op.k_format,   block(),
                                        floats(op, 0),         floats(op, 2), words(op, 3),
                                        floats(op, 4)};
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      referenceLatentAppend(task, t);
    }
  }

  void latentAttention(const Op& op) {
    const LatentAttentionPush& p = op.push.latent_attention;
    const ReferenceLatentAttention task = {
        p, op.k_format, block(), floats(op, 0), floats(op, 2), words(op, 3)};
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      for (uint32_t i = 0; i < p.n_heads * p.splits; ++i) {
        referenceLatentAttention(task, t, i / p.splits, i % p.splits);
      }
    }
  }

  void hadamardRows(const Op& op) {
    const HadamardPush& p = op.push.hadamard;
    for (uint32_t t = 0; t < header().n_tokens; ++t) {
      hadamard(floats(op, 2) + static_cast<uint64_t>(t) * p.stride, p.rows * p.cols, p.block);
    }
  }

  // --------------------------------------------------------------------------------------------------

  void softCap(const Op& op) {
    const SoftCapPush& p = op.push.soft_cap;
    for (uint32_t i = 0; i < header().n_outputs; ++i) {
      float* row = floats(op, 2) + static_cast<uint64_t>(i) * p.stride;
      for (uint32_t c = 0; c < p.cols; ++c) {
        row[c] = p.cap * std::tanh(row[c] / p.cap);
      }
    }
  }

  void topBlocks(const Op& op) {
    for (uint32_t i = 0; i < topOutputs(op); ++i) {
      findTopBlocks(op, block(), i);
    }
  }
  void topTokens(const Op& op) {
    for (uint32_t i = 0; i < topOutputs(op); ++i) {
      findTopTokens(op, block(), i);
    }
  }
  uint32_t topOutputs(const Op& op) const {
    return op.push.top.all_outputs != 0 ? header().n_outputs : 1;
  }
  void keepLogits(const Op& op) {
    for (uint32_t i = 0; i < header().n_outputs; ++i) {
      keepOutput(op, block(), i);
    }
  }

  ExpertFetch* const experts_;
  bool apart_ = false;  // for the running list: each token belongs to a different session
};
static_assert(sizeof(ReferenceExecutor) <= kExecutorObjectBytes, "raise kExecutorObjectBytes");

// In the order of OpKind.
const ReferenceExecutor::Run ReferenceExecutor::kRun[kOpKinds] = {
    &ReferenceExecutor::embed,
    &ReferenceExecutor::rmsNorm,
    &ReferenceExecutor::matmul,
    &ReferenceExecutor::addBias,
    &ReferenceExecutor::ropeAppend,
    &ReferenceExecutor::attention,
    &ReferenceExecutor::attentionMerge,
    &ReferenceExecutor::gatedActivation,
    &ReferenceExecutor::shortConv,
    &ReferenceExecutor::softCap,
    &ReferenceExecutor::topBlocks,
    &ReferenceExecutor::topTokens,
    &ReferenceExecutor::route,
    &ReferenceExecutor::sortRoutes,
    &ReferenceExecutor::expertMatmul,
    &ReferenceExecutor::expertCombine,
    nullptr,
    &ReferenceExecutor::tail,
    &ReferenceExecutor::stateInputs,
    &ReferenceExecutor::stateScan,
    &ReferenceExecutor::gatedNorm,
    &ReferenceExecutor::headMatmul,
    &ReferenceExecutor::latentAppend,
    &ReferenceExecutor::latentAttention,
    &ReferenceExecutor::hadamardRows,
    &ReferenceExecutor::keepLogits,
    &ReferenceExecutor::expertBias,
    &ReferenceExecutor::pool,
};

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

}  // namespace oriel_internal
