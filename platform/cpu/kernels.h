// Kernels that are compiled once per instruction set: attention, matrix products, recurrent states; and the layouts of
// activations and codebooks that they read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/simd.h"
#include "exec/executor.h"
#include "plan/codebooks.h"
#include "plan/plan.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

// Layouts of activations for the kernels of quantised weights.

/// 32 activations as integers: x ~ scale * value. Each four values are stored as first, third, second,
/// fourth: the order in which bytes of weight words are widened.
struct IntUnit {
  int16_t values[32];
};
/// The same for instructions that multiply bytes: value i is 256 * high[i] + low[i].
struct PlaneUnit {
  int8_t high[32];
  int8_t low[32];
};
static_assert(sizeof(PlaneUnit) == sizeof(IntUnit), "a row of either takes the same room");
/// The largest value of each: both bytes are signed.
constexpr int32_t kMostOfPairs = 32767;
constexpr int32_t kMostOfPlanes = 256 * 127 + 127;
/// The limit of activations rounded to 8 bits, in any storage.
constexpr int32_t kMostOfBytes = 127;

/// Corrections of a unit: kernels read weights without their zero point or minimum. Index 0 is for
/// values 0..15, 1 for values 16..31, and kWhole for all.
constexpr uint32_t kWhole = 2;
struct IntUnitSums {
  float scale;
  float scaled[3];       ///< scale * sum of the values
  int32_t minus_sum[3];  ///< the effect of a zero point of 1 on the products
};

/// The same for kTileTokens tokens side by side. For chunks, whose weights are without zero point.
constexpr uint32_t kTileTokens = 8;
struct TileSums {
  float scale[kTileTokens];
  float scaled[3][kTileTokens];
};
struct IntTile {
  int16_t values[16][kTileTokens][2];
  TileSums sums;
};
struct PlaneTile {
  PlaneUnit tokens[kTileTokens];
  TileSums sums;
};
/// Activations rounded to 8 bits: values[j] holds values 4j .. 4j + 3, each plus 128.
struct ByteTile {
  uint8_t values[8][kTileTokens][4];
  TileSums sums;
  uint8_t unused[256];
};
static_assert(sizeof(PlaneTile) == sizeof(IntTile) && sizeof(ByteTile) == sizeof(IntTile),
              "tiles of each take the same room");

/// `units` IntUnits, then as many IntUnitSums.
constexpr uint64_t intRowBytes(uint32_t units) {
  return (sizeof(IntUnit) + sizeof(IntUnitSums)) * uint64_t{units};
}
/// An IntTile for each unit: kTileTokens rows.
constexpr uint64_t intTilesBytes(uint32_t units) { return sizeof(IntTile) * uint64_t{units}; }

// The codebooks of plan/codebooks.h in the layout for vector instructions: one word per entry, its codes in bytes.

template <uint32_t kEntries>
struct Codebook {
  uint32_t words[kEntries] = {};

  constexpr explicit Codebook(const uint32_t (&pairs)[kEntries / 2], bool eights) {
    for (uint32_t e = 0; e < kEntries; ++e) {
      const uint32_t codes = pairs[e / 2] >> (16 * (e % 2));
      for (uint32_t i = 0; i < 4; ++i) {
        words[e] |= eights ? (codes >> (2 * i) & 3) << (8 * i) | (codes >> (8 + 2 * i) & 3)
                                                                     << (8 * i + 2)
                           : (codes >> (3 * i) & 7) << (8 * i);
      }
    }
  }
};

/// Codebooks of eight values: byte i has the code of value i in bits 0 and 1, and of value 4 + i in bits 2 and 3.
constexpr Codebook<256> kIq2XxsBook(kIq2XxsGrid, true);
constexpr Codebook<512> kIq2XsBook(kIq2XsGrid, true);
constexpr Codebook<1024> kIq2SBook(kIq2SGrid, true);
/// Codebooks of four values: byte i has the code of value i.
constexpr Codebook<256> kIq3XxsBook(kIq3XxsGrid, false);
constexpr Codebook<512> kIq3SBook(kIq3SGrid, false);

// Attention of all query heads of one key head over their window. Bytes moved: the slots' keys and
// values, in decoding once for up to 4 queries, in chunks once for up to kMostQueries; 4 * head_dim
// operations per query and slot.

struct AttentionTask {
  explicit AttentionTask(const StepBlock& block) : step(block) {}

  AttentionPush push = {};
  KvFormat k_format = KvFormat::kF16;
  KvFormat v_format = KvFormat::kF16;
  const float* queries = nullptr;
  StepBlock step;
  const uint32_t* keys = nullptr;
  const uint32_t* values = nullptr;
  const float* more_scores = nullptr;  ///< attention sinks by head, with value 0; null: none
  float* out = nullptr;
  uint32_t n_tokens = 1;  ///< of the step
  bool apart = false;     ///< process each token as if it were alone
};

/// Queries of a chunk worked on at a time. Heads wider than kNarrowHead get half of them, so that the gathered values
/// take the same bytes.
constexpr uint32_t kMostQueries = 48;
constexpr uint32_t kNarrowHead = 256;
constexpr uint32_t mostQueries(uint32_t head_dim) {
  return head_dim <= kNarrowHead ? kMostQueries : kMostQueries / 2;
}
/// Tokens that share loaded keys and values, if `group` query heads share a key head.
constexpr uint32_t attentionTokens(uint32_t group, uint32_t head_dim) {
  return group < mostQueries(head_dim) ? mostQueries(head_dim) / group : 1;
}

/// Tokens first .. first + count - 1 with all query heads of `kv_head`, for `n_splits` splits. The result is
/// stored as the share of the first split.
using AttendFn = void (*)(const AttentionTask& task, uint32_t kv_head, uint32_t first,
                          uint32_t count, uint32_t first_split, uint32_t n_splits);
AttendFn attendKernel(SimdTarget target);

// Matrix times activations: out[t][r] (+)= W[r] . in[t]. Bytes moved: the weights once per call and
// group; two operations per weight and token.

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

// Kernels of recurrent states (shaders/shared/layout.h has the formulas). Different calls write disjoint memory,
// and values do not depend on the division into calls, so threads may share the work in any way.

struct StateInputsTask {
  StateInputsPush push = {};
  const float* in = nullptr;  ///< of the first token
  StepState state;
  const float* taps = nullptr;
  const float* gates = nullptr;
  float* out = nullptr;
  uint32_t n_tokens = 1;
};
/// Parts of a token: query heads, key heads, value heads, and last all decays and factors.
constexpr uint32_t stateInputParts(const StateInputsPush& p) {
  return 2 * p.key_heads + p.heads + 1;
}

struct StateScanTask {
  StateScanPush push = {};
  const float* in = nullptr;  ///< of the first token
  StepState state;
  const float* skip = nullptr;  ///< [heads]; Mamba-2 only
  float* out = nullptr;
  uint32_t n_tokens = 1;
};
/// Rows of a head per call: with several tokens, they are floats on the stack.
constexpr uint32_t kMostScanFloats = 1u << 14;
constexpr uint32_t mostScanRows(uint32_t key_dim) {
  return kMostScanFloats / static_cast<uint32_t>(alignUp(key_dim, kGroupRows)) / kGroupRows *
         kGroupRows;
}

struct StateKernels {
  /// Parts first .. last - 1 of tokens begin .. end - 1. With the step's last token, also stores the parts' columns.
  void (*inputs)(const StateInputsTask& task, uint32_t first, uint32_t last, uint32_t begin,
                 uint32_t end);
  /// Rows first .. first + count - 1 of a head, over all tokens; no more than mostScanRows() unless there is one token.
  void (*scan)(const StateScanTask& task, uint32_t head, uint32_t first, uint32_t count);
  /// One token; pointers are to its first values.
  void (*gatedNorm)(const GatedNormPush& push, const float* in, const float* gates,
                    const float* weight, float* out);
};
const StateKernels& stateKernels(SimdTarget target);
/// Part of inputs: all decays of a token.
void decaysByKey(const StateInputsPush& push, const float* in, const float* gates, float* decays);
/// Part of gatedNorm: gates shared by rows, and gates without a vector version.
void gateRow(const GatedNormPush& push, const float* in, const float* gates, uint32_t n,
             float* out);

}  // namespace oriel_internal
