// Attention and products in plain code. Tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kv/quantise.h"
#include "shaders/shared/layout.h"
#include "support/kernel_rig.h"

namespace oriel_internal::test {

// Plain attention of a head. Tests only.

/// The vectors of a memory, unpacked once for all queries.
class Unpacked {
 public:
  Unpacked(const KvSide& side, const CacheShape& shape) : shape_(shape) {
    for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
      for (uint32_t slot = 0; slot < shape.sinks + shape.ring; ++slot) {
        values_.resize(values_.size() + shape.head_dim);
        float* const to = values_.data() + values_.size() - shape.head_dim;
        slot < shape.sinks ? side.loadSink(head, slot, to)
                           : side.loadRing(head, slot - shape.sinks, to);
      }
    }
  }
  const float* sink(uint32_t head, uint32_t slot) const {
    return values_.data() + (head * (shape_.sinks + shape_.ring) + slot) * size_t{shape_.head_dim};
  }
  const float* ring(uint32_t head, uint32_t slot) const { return sink(head, shape_.sinks + slot); }

 private:
  CacheShape shape_;
  std::vector<float> values_;
};

/// Attention in double over the memories' contents.
inline std::vector<double> attended(const AttentionPush& push, const Unpacked& keys,
                                    const Unpacked& values, const float* queries, uint32_t head,
                                    const View& view) {
  const uint32_t d = push.head_dim;
  const uint32_t kv_head = head / (push.n_heads / push.n_kv_heads);
  std::vector<double> scores;
  for (uint32_t i = 0; i < view.n_sinks + view.count; ++i) {
    const bool sink = i < view.n_sinks;
    const uint32_t slot = sink ? i : (view.begin + i - view.n_sinks) % view.ring;
    const float* const stored = sink ? keys.sink(kv_head, slot) : keys.ring(kv_head, slot);
    double score = 0;
    for (uint32_t c = 0; c < d; ++c) {
      score += static_cast<double>(stored[c]) *
               static_cast<double>(queries[(2 * head + (sink ? 1 : 0)) * d + c]);
    }
    score *= static_cast<double>(push.scale);
    scores.push_back(push.soft_cap != 0 ? static_cast<double>(push.soft_cap) *
                                              std::tanh(score / static_cast<double>(push.soft_cap))
                                        : score);
  }
  const double most = *std::max_element(scores.begin(), scores.end());
  std::vector<double> out(d, 0.0);
  double sum = 0;
  for (uint32_t i = 0; i < scores.size(); ++i) {
    const bool sink = i < view.n_sinks;
    const uint32_t slot = sink ? i : (view.begin + i - view.n_sinks) % view.ring;
    const float* const stored = sink ? values.sink(kv_head, slot) : values.ring(kv_head, slot);
    const double weight = std::exp(scores[i] - most);
    sum += weight;
    for (uint32_t c = 0; c < d; ++c) {
      out[c] += weight * static_cast<double>(stored[c]);
    }
  }
  for (double& value : out) {
    value /= sum;
  }
  return out;
}

// A product of a matrix and a chunk's vectors in a KernelRig, with its error bound.

constexpr uint32_t kMostCandidates = 8;

/// The values that a candidate rounds before it multiplies.
enum class Rounds {
  kNothing,
  kInputsTo16Bits,
  kInputsTo8Bits,
  kBothToHalves,
  kInputsAndRunsToHalves
};

inline Rounds roundsOf(const std::string& candidate) {
  return candidate.compare(0, 3, "dot") == 0      ? Rounds::kInputsTo16Bits
         : candidate.compare(0, 6, "matrix") == 0 ? Rounds::kBothToHalves
         : candidate.compare(0, 4, "half") == 0   ? Rounds::kInputsAndRunsToHalves
                                                  : Rounds::kNothing;
}

inline bool hasMinimum(WeightType type) {
  return type == WeightType::kQ4_1 || type == WeightType::kQ5_1 || type == WeightType::kQ2_K ||
         type == WeightType::kQ4_K || type == WeightType::kQ5_K;
}

/// A matrix, inputs and outputs. Added as a decoding op and as a head's, and as a chunk's if there are several tokens.
struct Product {
  Product(KernelRig* rig, WeightType type, uint32_t rows, uint32_t cols, Random* random,
          bool accumulate = false, uint32_t out_first = 0, uint32_t tokens = 1)
      : Product(rig, randomMatrix(type, rows, cols, random), tokens, accumulate, out_first,
                [&](uint32_t t, uint32_t c) {
                  const float size = std::exp2(static_cast<float>(t % 5) * 7.0f - 14.0f);
                  return random->normal() *
                         (c % 37 == 5 ? 30.0f : 1.0f) *  // an outlier in most units
                         (tokens == 1 ? 1.0f : size);    // for tokens: all different
                }) {}

  /// `input(token, column)` gives the values.
  template <typename Input>
  Product(KernelRig* rig, PackedMatrix given, uint32_t tokens, bool accumulate, uint32_t out_first,
          const Input& input)
      : matrix(std::move(given)),
        in_stride(matrix.geometry.units * kUnit),
        in(size_t{in_stride} * tokens, 0.0f),
        first(out_first),
        out_stride(first + matrix.rows + 8),
        adds(accumulate) {
    for (uint32_t t = 0; t < tokens; ++t) {
      for (uint32_t c = 0; c < matrix.cols; ++c) {
        in[in_stride * t + c] = input(t, c);
      }
    }
    out = rig->output(out_stride * tokens);
    head_out = rig->output(out_stride);
    MatmulPush push = {};
    push.rows = matrix.rows;
    push.units = matrix.geometry.units;
    push.group_words = matrix.geometry.groupWords();
    push.side_word = matrix.geometry.sideWord();
    push.in_stride = in_stride;
    push.out_stride = out_stride;
    push.out_first = first;
    push.accumulate = accumulate ? 1 : 0;
    const BufferRef weights = rig->input(matrix.words);
    const BufferRef values = rig->input(in);
    rig->add(StepList::kDecode, OpKind::kMatmul, push, {weights, out, values}).weights =
        matrix.type;
    if (tokens > 1) {
      rig->add(StepList::kChunk, OpKind::kMatmul, push, {weights, out, values}).weights =
          matrix.type;
    }
    push.of_outputs = 1;
    rig->add(StepList::kHead, OpKind::kMatmul, push, {weights, head_out, values}).weights =
        matrix.type;
  }

  /// Bounds by rounding:
  /// - kInputsTo16Bits: 1/32639 of the unit's largest value; kInputsTo8Bits: 1/127
  /// - kBothToHalves: 1/2048 of each value; weights below the smallest half: 2^-25
  /// - kInputsAndRunsToHalves: 1/2048 of an input, of its factor (the weight, or its distance from the middle of its
  /// unit),
  ///   of the product and of the up to 8 sums it enters; nothing below 2^-17 of the token's largest input is certain
  void check(const float* got, Rounds rounds, uint32_t n_tokens = 1) const {
    for (uint32_t t = 0; t < in.size() / in_stride; ++t) {
      const double token_most = largestOfToken(t);
      for (uint32_t i = 0; i < out_stride; ++i) {
        const bool written = t < n_tokens && i >= first && i < first + matrix.rows;
        double want = !written || adds ? static_cast<double>(KernelRig::kUntouched) : 0;
        double tolerance = 1e-6 * std::fabs(want);
        for (uint32_t c = 0; written && c < matrix.cols; ++c) {
          const double weight = matrix.at(i - first, c);
          const double value = static_cast<double>(in[in_stride * t + c]);
          want += weight * value;
          tolerance += 1e-6 * std::fabs(weight * value);
          if (rounds == Rounds::kInputsTo16Bits) {
            tolerance += std::fabs(weight) * 0.5001 * largestOfUnit(t, c) / 32639;
          } else if (rounds == Rounds::kInputsTo8Bits) {
            tolerance += std::fabs(weight) * 0.5001 * largestOfUnit(t, c) / 127;
          } else if (rounds == Rounds::kBothToHalves) {
            tolerance += std::fabs(value) * (std::fabs(weight) / 1023 + 3e-8);
          } else if (rounds == Rounds::kInputsAndRunsToHalves) {
            const double factor =
                hasMinimum(matrix.type) ? spreadOfUnit(i - first, c) : std::fabs(weight);
            tolerance += factor * (std::fabs(value) * 10 / 2048 +
                                   std::min(std::fabs(value), token_most / (1 << 17)));
          }
        }
        ASSERT_NEAR(got[out_stride * t + i], want, tolerance)
            << weightTypeName(matrix.type) << " rows " << matrix.rows << " cols " << matrix.cols
            << " at " << i << " token " << t << " of " << n_tokens;
      }
      if (n_tokens == 1) {
        break;  // memory may be too small for more
      }
    }
  }

  double largestOfToken(uint32_t token) const {
    double most = 0;
    for (uint32_t c = 0; c < matrix.cols; ++c) {
      most = std::max(most, std::fabs(static_cast<double>(in[in_stride * token + c])));
    }
    return most;
  }

  double spreadOfUnit(uint32_t row, uint32_t col) const {
    double least = matrix.at(row, col);
    double most = least;
    for (uint32_t c = col / kUnit * kUnit; c < std::min(matrix.cols, col / kUnit * kUnit + kUnit);
         ++c) {
      least = std::min(least, matrix.at(row, c));
      most = std::max(most, matrix.at(row, c));
    }
    return most - least;
  }

  double largestOfUnit(uint32_t token, uint32_t col) const {
    double most = 0;
    for (uint32_t c = col / kUnit * kUnit; c < col / kUnit * kUnit + kUnit; ++c) {
      most = std::max(most, std::fabs(static_cast<double>(in[in_stride * token + c])));
    }
    return most;
  }

  PackedMatrix matrix;
  uint32_t in_stride;
  std::vector<float> in;
  uint32_t first;
  uint32_t out_stride;
  bool adds;
  BufferRef out, head_out;
};

/// Tests of products on Vulkan; the parameter: divided as on a GPU.
class Products : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!onVulkan()) {
      GTEST_SKIP() << "the target is not Vulkan";
    }
  }
};

}  // namespace oriel_internal::test
