// One kernel dispatch of a plan, and opTraits(), the table with the properties of every kind of op. Hazards, work,
// groups of ops and pieces of steps come from that table.
#pragma once

#include <cstdint>

#include "kv/cache_layout.h"
#include "shaders/shared/layout.h"

namespace oriel_internal {

/// Device memory, in the order in which it is allocated.
enum class ArenaKind : uint8_t {
  kWeights,      ///< device-local; one or more segments of at most kMaxAllocationBytes
  kCache,        ///< the same
  kActivations,  ///< device-local
  kIo,           ///< host-visible: step parameters, best tokens, upload ring
};
constexpr uint32_t kArenaKinds = 4;

/// A piece of an arena. Its offset is a multiple of kBufferAlignment, its size at most kMaxBindingBytes. The struct is
/// small because every op has several. A size too large for any binding becomes UINT32_MAX, and plans with such a piece
/// are refused.
struct BufferRef {
  constexpr BufferRef() = default;
  constexpr BufferRef(ArenaKind in, uint8_t of_segment, uint64_t offset, uint64_t size)
      : offset_bytes(offset),
        size_bytes(size < UINT32_MAX ? static_cast<uint32_t>(size) : UINT32_MAX),
        arena(in),
        segment(of_segment) {}

  /// The same place with another size.
  constexpr BufferRef resized(uint64_t size) const { return {arena, segment, offset_bytes, size}; }
  /// `size` bytes of the piece, from `begin` on.
  constexpr BufferRef part(uint64_t begin, uint64_t size) const {
    return {arena, segment, offset_bytes + begin, size};
  }

  uint64_t offset_bytes = 0;
  uint32_t size_bytes = 0;
  ArenaKind arena = ArenaKind::kWeights;
  uint8_t segment = 0;
};
static_assert(sizeof(BufferRef) == 16, "host bytes of a plan");

/// The same place; sizes may differ.
inline bool samePlace(const BufferRef& a, const BufferRef& b) {
  return a.arena == b.arena && a.segment == b.segment && a.offset_bytes == b.offset_bytes;
}
inline bool overlap(const BufferRef& a, const BufferRef& b) {
  return a.arena == b.arena && a.segment == b.segment &&
         a.offset_bytes < b.offset_bytes + b.size_bytes &&
         b.offset_bytes < a.offset_bytes + a.size_bytes;
}

/// Storage of weights on the device; shaders/shared/layout.h describes the packing.
enum class WeightType : uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kIq4Nl,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIq4Xs,
  kIq2Xxs,
  kIq2Xs,
  kIq2S,
  kIq3Xxs,
  kIq3S,
  kMxfp4,
  kTq2_0,  ///< packed as kQ2_0
  kTq1_0,  ///< packed as kQ2_0
  kNvfp4,
  kQ1_0,
  kQ2_0,
};
constexpr uint32_t kWeightTypes = 26;
const char* weightTypeName(WeightType type);    ///< "f32", "q4_0", ...
const char* weightKernelName(WeightType type);  ///< the type's name in kernel names

/// Kinds of ops; opTraits() has a row for each.
enum class OpKind : uint8_t {
  kEmbed,
  kRmsNorm,
  kMatmul,
  kAddBias,
  kRopeAppend,
  kAttention,
  kAttentionMerge,
  kGatedActivation,
  kShortConv,
  kSoftCap,
  kTopBlocks,
  kTopTokens,
  kRoute,
  kSortRoutes,
  kExpertMatmul,
  kExpertCombine,
  kFetchExperts,
  kTail,
  kStateInputs,
  kStateScan,
  kGatedNorm,
  kHeadMatmul,
  kLatentAppend,
  kLatentAttention,
  kHadamard,
  kKeepLogits,
  kExpertBias,
  kPool,
};
constexpr uint32_t kOpKinds = 28;

constexpr uint32_t kMaxOpBindings = 6;
/// The binding that every op writes.
constexpr uint32_t kOpOut = 2;
/// Bindings of kMatmul. The second is memory that no other op uses meanwhile, for executors that first convert a
/// product's input: [tokens][units][kStagedUnitWords]. Models whose vectors have padding have none, because the values
/// left there must be finite floats.
constexpr uint32_t kMatmulInput = 3;
constexpr uint32_t kMatmulStaged = 4;
/// Bindings of kExpertMatmul; the second is optional.
constexpr uint32_t kExpertRoutes = 4;
constexpr uint32_t kExpertSlots = 5;
/// Optional binding of kRopeAppend: norm weights applied after RoPE.
constexpr uint32_t kRopeNorms = 5;
/// Optional binding of kAttention: one more score per head.
constexpr uint32_t kMoreScores = 5;

constexpr uint32_t kMostPushWords = 16;

/// One kernel dispatch. `push` is the kernel's push-constant block. `bindings` are in the kernel's order in
/// shaders/shared/layout.h.
struct Op {
  OpKind kind = OpKind::kEmbed;
  WeightType weights = WeightType::kF32;  ///< kEmbed, kMatmul, kExpertMatmul, kHeadMatmul
  KvFormat k_format =
      KvFormat::kF16;  ///< for ops that append or attend; latents use the same format for both
  KvFormat v_format = KvFormat::kF16;
  /// For measuring and tests of kMatmul: 1 + the candidate to use (Executor::matmulCandidate); 0: the executor chooses.
  uint8_t candidate = 0;
  uint8_t n_bindings = 0;
  uint16_t push_bytes = 0;
  BufferRef bindings[kMaxOpBindings];
  union Push {
    uint32_t
        /// first, because only the first member of a union is zero-initialised
        words[kMostPushWords];
    EmbedPush embed;
    RmsNormPush rms_norm;
    MatmulPush matmul;
    AddBiasPush add_bias;
    RopeAppendPush rope_append;
    AttentionPush attention;
    AttentionMergePush attention_merge;
    GatedActivationPush gated_activation;
    ShortConvPush short_conv;
    SoftCapPush soft_cap;
    TopPush top;
    RoutePush route;
    SortRoutesPush sort_routes;
    ExpertMatmulPush expert_matmul;
    ExpertCombinePush expert_combine;
    FetchExpertsPush fetch_experts;
    TailPush tail;
    StateInputsPush state_inputs;
    StateScanPush state_scan;
    GatedNormPush gated_norm;
    HeadMatmulPush head_matmul;
    LatentAppendPush latent_append;
    LatentAttentionPush latent_attention;
    HadamardPush hadamard;
    KeepLogitsPush keep_logits;
    ExpertBiasPush expert_bias;
    PoolPush pool;
  } push = {};
};
static_assert(sizeof(Op::Push) == sizeof(Op::Push::words),
              "kMostPushWords is that of the largest member");

/// The words that an op writes in each row of kOpOut.
struct OpColumns {
  uint32_t first = 0;
  uint32_t end = UINT32_MAX;
  uint32_t stride = 0;  ///< words from row to row
};

/// The cost of an op, in multiply-adds of a product. For other ops: the multiply-adds of a product with about the same
/// time.
struct OpWork {
  double fixed = 0;
  double per_seen = 0;   ///< for each visible token
  double most_seen = 0;  ///< largest number of visible tokens
  uint32_t view = 0;     ///< the view of these tokens

  double at(double seen) const { return fixed + per_seen * seen; }
  double most() const { return at(most_seen); }
};

/// The properties of all ops of a kind. Functions take an op of that kind.
struct OpTraits {
  const char* name;     ///< name of the kernel, or its prefix
  uint32_t push_bytes;  ///< size of the push-constant block
  uint32_t writes;      ///< bit i: it writes binding i
  bool once;            ///< does its work once, for any number of rows
  /// With one row, the work is too small to divide.
  bool small;
  /// True if, with one row, the op writes only one row, at the beginning of kOpOut. Then every thread of a product that
  /// reads the row can compute it. False for an op that works in place or adds.
  bool (*makes_row)(const Op& op);
  OpColumns (*columns)(const Op& op);
  /// Adds the work for `rows` rows to the base cost of every op.
  void (*work)(const Op& op, double rows, OpWork* work);
};
const OpTraits& opTraits(OpKind kind);

/// `rows`: tokens, or outputs, that the op works on.
OpWork opWork(const Op& op, uint32_t rows);

inline bool writes(const Op& op, uint32_t binding) {
  return (opTraits(op.kind).writes >> binding & 1) != 0;
}

}  // namespace oriel_internal
