// Matrix times activations: out[t][r] (+)= W[r] . in[t]. Bytes moved: the weights once per call and
// group; two operations per weight and token.
#pragma once

#include <algorithm>

#include "cpu/rows.h"
#include "cpu/simd.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Prefetch distance of one-token kernels in bytes: to the first-level cache, and from there to the second-level cache,
/// which accepts many more requests; 0: no prefetch. Measured on x86 (notes/performance.md, "Two levels again").
#if defined(__x86_64__) || defined(_M_X64)
constexpr uint32_t kFirstLevelAhead = 4096;
constexpr uint32_t kSecondLevelAhead = 12288;
#else
constexpr uint32_t kFirstLevelAhead = 16384;
constexpr uint32_t kSecondLevelAhead = 0;
#endif

struct MatmulTask {
  const uint32_t* weights = nullptr;  ///< the slice
  uint32_t group_words = 0;
  uint32_t side_word = 0;
  uint32_t units = 0;
  // Derived numbers that all groups share: words of a unit's quads and sides, and the first-level prefetch position of
  // one-token kernels (WeightsAhead): unit in its group, and distance of the group in words.
  uint32_t quad_words = 0;
  uint32_t side_words = 0;
  uint32_t ahead_unit = 0;
  uint64_t ahead_words = 0;
  uint32_t rows = 0;
  uint32_t n_tokens = 0;
  /// Float weights: floats, `in_stride` from one token to the next. Other types: IntUnits for one token, else
  /// IntTiles, in groups of kTileTokens tokens.
  const void* in = nullptr;
  uint32_t in_stride = 0;
  float* out = nullptr;  ///< where row 0 of token 0 goes
  uint32_t out_stride = 0;
  bool accumulate = false;
  bool half_unit = false;  ///< MatmulPush
  // Float weights only; other types always add up all tokens' sums in one way.
  bool one_of_many = false;  ///< the token belongs to a chunk: use the chunk's order of additions
  bool apart = false;        ///< each token is independent: use the one-token order of additions

  /// Sets the layout of the slice's groups of rows.
  void setGroups(uint32_t words, uint32_t first_side, uint32_t n_units) {
    group_words = words;
    side_word = first_side;
    units = n_units;
    if (units == 0) {
      return;
    }
    constexpr uint32_t kAheadWords = kFirstLevelAhead / 4;
    quad_words = side_word / units;
    side_words = (group_words - side_word) / units;
    const uint32_t ahead = kAheadWords / std::max(quad_words + side_words, 1u);
    ahead_unit = ahead % units;
    ahead_words = uint64_t{ahead / units} * group_words;
  }
};

struct MatmulKernels {
  /// Rows of groups first .. first + count - 1.
  using Run = void (*)(const MatmulTask& task, uint32_t first_group, uint32_t count);
  Run run[kWeightTypes];
  /// Quantises `units` * 32 floats to a row of IntUnits and their sums.
  void (*quantiseRow)(const float* in, uint32_t units, void* row);
  /// Quantises `count` <= kTileTokens rows of floats to a tile per unit.
  void (*quantiseTiles)(const float* const* rows, uint32_t count, uint32_t units, void* tiles);
};
/// `activation_bits`: rounding of inputs, 16 or 8. Weights of single values always read floats.
const MatmulKernels& matmulKernels(SimdTarget target, uint32_t activation_bits = 16);
#ifdef ORIEL_CPU_DOT_PRODUCTS
const MatmulKernels& dotProductKernels(bool bytes);  ///< kernels of SimdTarget::kNeonDot
#endif
bool readsFloats(WeightType type);

}  // namespace oriel_internal
