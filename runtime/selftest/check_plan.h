// Every kernel as an op of a small plan on synthetic data, to compare two executors. Independent of the device.
#pragma once

#include <algorithm>
#include <cstring>

#include "exec/executor.h"

namespace oriel_internal {

/// For a check: the candidate chosen by the executor.
constexpr uint8_t kChosenCandidate = UINT8_MAX;

/// The output of one check's op.
struct Check {
  char name[60];  ///< CheckReport::name appends the candidate's name
  StepList list;
  bool words;  ///< words of a cache: equal, except for a few that were close to a rounding boundary
  uint8_t candidate;   ///< kMatmul: Op::candidate, or kChosenCandidate; otherwise 0
  WeightType weights;  ///< of that op
  uint8_t first_op;    ///< first op in the list that belongs to the check, and ...
  uint8_t n_ops;       ///< ... their number
  BufferRef out;
  double
      limit;  ///< of the difference, relative to the root mean square of the reference; for words,
              ///< the share that may differ
};

/// Kernels are divided among several plans to keep submissions short, even on a driver that compiles at the first
/// dispatch.
enum class CheckPart : uint8_t {
  kSmallOps,
  kWeights0,
  kWeights1,
  kWeights2,
  kWeights3,
  kWeights4,
  kCache,
  kNorms
};
constexpr CheckPart kAllKernels[] = {
    CheckPart::kSmallOps, CheckPart::kWeights0, CheckPart::kWeights1, CheckPart::kWeights2,
    CheckPart::kWeights3, CheckPart::kWeights4, CheckPart::kCache};
constexpr uint32_t kWeightParts = 5;

/// The kernels that a model's plan uses.
struct KernelsOf {
  uint32_t kinds = 0;                                      ///< OpKinds, one bit each
  uint32_t weights[static_cast<uint32_t>(kOpKinds)] = {};  ///< by kind: WeightTypes, one bit each
  uint32_t caches = 0;   ///< for kAttention, pairs of formats: 1 << (3 * keys + values)
  uint32_t latents = 0;  ///< for kLatentAttention, formats

  explicit KernelsOf(const Plan& plan);
  bool has(OpKind kind) const { return (kinds >> static_cast<uint32_t>(kind) & 1u) != 0; }
  bool has(OpKind kind, WeightType type) const {
    return (weights[static_cast<uint32_t>(kind)] >> static_cast<uint32_t>(type) & 1u) != 0;
  }
};

/// Large: allocate it with the app's allocator, not on the stack.
class CheckPlan {
 public:
  /// Chunks that fill the cache in sequence, before one decoded token.
  static constexpr uint32_t kChunks = 4;

  /// kNorms: only kernels with and without subgroups, which kSmallOps also has.
  explicit CheckPlan(CheckPart part);
  /// The kernels that a model's plan uses, with the executor's chosen products.
  explicit CheckPlan(const KernelsOf& wanted);
  CheckPlan(const CheckPlan&) = delete;
  CheckPlan& operator=(const CheckPlan&) = delete;

  /// Uploads the synthetic inputs and finishes loading.
  Status load(Executor* executor) const;
  /// Runs the chunks and the token, then a head of several outputs.
  Status run(Executor* executor) const;

  const Plan& plan() const { return plan_; }
  uint32_t checks() const { return n_checks_; }
  const Check& check(uint32_t i) const { return checks_[i]; }

 private:
  static constexpr uint32_t kMaxOps = 96;  // of a list
  static constexpr uint32_t kMaxInputs = 80;
  static constexpr uint32_t kMaxChecks = 160;

  enum class Fill : uint8_t { kNumbers, kBelowZero, kMatrix };
  struct Input {
    BufferRef piece;
    WeightType type;
    Fill what;  // values are about 1
  };

  void begin();
  void end();
  BufferRef take(ArenaKind kind, uint64_t words);
  BufferRef vector(uint64_t words, Fill what = Fill::kNumbers);
  BufferRef matrix(WeightType type);
  template <typename Push, uint32_t kBindings>
  Op* add(StepList list, OpKind kind, const Push& push, const BufferRef (&bindings)[kBindings]);
  Check* expect(StepList list, const char* name, const BufferRef& out, double limit);

  void addNorms();
  void addBias();
  void addActivations();
  void addTop();
  void addOutputs();
  void addProduct(WeightType type, const BufferRef& weights, uint8_t candidates);
  void addMadeProducts(WeightType type, const BufferRef& weights, const MatmulPush& push);
  void addEmbed(WeightType type, const BufferRef& weights);
  void addConv();
  void addStates();
  void addState(StateRule rule, StateFormat format, const BufferRef& taps, const BufferRef& gates);
  void addGatedNorms();
  BufferRef addRoutes(StepList list);
  void addExperts();
  void addTail();
  void addMatrix(WeightType type);
  void addExpertProduct(WeightType type, const BufferRef& weights);
  void addHeadProduct(WeightType type, const BufferRef& weights);
  /// `bent`: with norms after RoPE and a cap on scores.
  void addCache(KvFormat k, KvFormat v, bool bent);
  void addLatents();
  /// `weight`: for norms, as long as a token's queries.
  void addLatents(KvFormat format, const BufferRef& weight);
  void writeStep(uint32_t chunk, void* step) const;
  void fill(const Input& input, uint64_t first_word, uint32_t* words, uint64_t count) const;

  Plan plan_;
  uint64_t weight_bytes_ = 0;
  uint64_t bytes_[kArenaKinds] = {};
  BufferRef in_;      // [kChunk][kCols]
  BufferRef staged_;  // kMatmulStaged for all products
  BufferRef norm_;    // weight, for addMadeProducts()
  BufferRef qkv_;
  BufferRef norms_;      // for queries, then for keys
  BufferRef routes_[2];  // for plans with expert products, by list
  Op ops_[kStepLists][kMaxOps] = {};
  Check checks_[kMaxChecks] = {};
  Input inputs_[kMaxInputs] = {};
  uint32_t first_op_[kStepLists] = {};  // of the latest check, per list
  uint32_t seen_ops_[kStepLists] = {};  // number of ops when that check was made
  uint32_t n_inputs_ = 0;
  uint32_t n_checks_ = 0;
};

// Shared parts of CheckPlan, for check_plan*.cpp only.

constexpr uint32_t kChunk = 8;
constexpr uint32_t kRows = 40;  // of matrices: not a multiple of the group size
constexpr uint32_t kCols = 512;
constexpr uint32_t kOutputs = 3;
// For attention, and its part of the step block.
constexpr uint32_t kHeads = 4;
constexpr uint32_t kKvHeads = 2;
constexpr uint32_t kHeadDim = 64;
constexpr uint32_t kQkvStride = (kHeads + 2 * kKvHeads) * kHeadDim;
constexpr uint32_t kSinks = 2;
constexpr uint32_t kRing = 40;
// Tables of a token: at its position, and for sink keys.
constexpr uint32_t kRotationWords = 2 * kHeadDim;
// For the short convolution.
constexpr uint32_t kTaps = 3;
constexpr uint32_t kConvRing = kTaps + kChunk - 1;
constexpr uint32_t kCheckedSlots = 2;  // of states
// Views of a token: of the cache, of the convolution's columns, of states.
constexpr uint32_t kConvView = 1;
constexpr uint32_t kStateView = 2;
constexpr uint32_t kViews = 3;

// Another order of summation, or 16-bit inputs, differ by a few 1e-5; one wrong product of kCols by 4e-2.
constexpr double kFloatLimit = 3e-4;

constexpr StepList kLists[] = {StepList::kDecode, StepList::kChunk};

// `bindings`: bindings 0, 2, 3, ... of the op; 1 is the step block.
template <typename Push, uint32_t kBindings>
Op* CheckPlan::add(StepList list, OpKind kind, const Push& push,
                   const BufferRef (&bindings)[kBindings]) {
  static_assert(kBindings < kMaxOpBindings, "bindings of an op");
  const uint32_t l = static_cast<uint32_t>(list);
  Op* const op = &ops_[l][plan_.n_ops[l]++];
  op->kind = kind;
  op->bindings[0] = bindings[0];
  op->bindings[1] = plan_.device_step;
  std::copy(bindings + 1, bindings + kBindings, op->bindings + 2);
  op->n_bindings = kBindings + 1;
  std::memcpy(static_cast<void*>(&op->push), &push, sizeof(push));
  op->push_bytes = sizeof(push);
  return op;
}

}  // namespace oriel_internal
