// Chooses formats, window and chunk for a number of bytes. Pure: no allocation, no device, no file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "budget/loss.h"
#include "budget/speed.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Pairs of key and value formats that the budgeter weighs, cheapest first. Keys are about eight times as sensitive as
/// values, so they never get fewer bits.
struct FormatPair {
  KvFormat k;
  KvFormat v;
};
constexpr FormatPair kFormatPairs[] = {{KvFormat::kInt4, KvFormat::kInt4},
                                       {KvFormat::kInt8, KvFormat::kInt4},
                                       {KvFormat::kInt8, KvFormat::kInt8},
                                       {KvFormat::kF16, KvFormat::kF16}};
constexpr uint32_t kFormatPairCount = sizeof(kFormatPairs) / sizeof(kFormatPairs[0]);

/// Why a pair of formats is refused although it fits.
enum class Refusal : uint8_t {
  kNot,
  kQuality,  ///< rounding beyond LossModel::kl_limit
  kSpeed     ///< slower than min_tokens_per_s with the shortest window
};

/// Largest single host block. A 32-bit address space allows less than half of it, and the allocator needs a part. 64-bit
/// systems have no limit.
constexpr uint64_t kMaxHostBlockBytes =
    sizeof(size_t) >= 8 ? UINT64_MAX : uint64_t{SIZE_MAX / 2} - (1u << 20);

/// The request: fixed values, and zeros for values to choose.
struct BudgetRequest {
  uint64_t memory_bytes = 0;
  /// Largest block. Every arena except the weights is one block.
  uint64_t max_block_bytes = kMaxHostBlockBytes;
  uint32_t window = 0;
  uint32_t most_window = kMaxWindow;  ///< longest chosen window, unless min_window is larger
  uint32_t min_window = 0;            ///< shortest chosen window, even past the trained context
  uint32_t sinks = kDefaultSinks;
  uint32_t pinned = 0;  ///< tokens in a pinned prefix; sinks grow to cover them
  uint32_t recall = 0;  ///< slots after the sinks for recalled turns
  /// Null: one session. Must outlive the budget and the plan.
  const SessionWindows* sessions = nullptr;
  uint32_t chunk = 0;
  uint32_t most_chunk = 0;  ///< largest chosen chunk, if larger than the default
  /// As in CacheShape. Models with states get the number that fits in memory left over by the window and batch.
  uint32_t drafts = 0;
  uint32_t checkpoints = 0;        ///< of states, if any
  bool fixed_checkpoints = false;  ///< `checkpoints` was requested; else chosen
  bool fixed_k = false;            ///< `formats.k` was requested
  bool fixed_v = false;
  bool fixed_state = false;
  /// The formats if fixed. Formats that layers require always apply.
  CacheFormats formats;
  LossModel loss;
  /// Host bytes without the token ids. Only token ids depend on the window.
  uint64_t host_bytes = 0;
  uint64_t draft_host_bytes = 0;  ///< the part that is needed only with drafts
  /// Rates and work for predictions; both or neither is null.
  const DeviceSpeed* speed = nullptr;
  const WorkShape* work = nullptr;
  double min_tokens_per_s = 0;  ///< for a token that sees a full window; 0: any
};

/// Exact bytes of one choice.
struct BudgetBytes {
  uint64_t weights = 0;
  uint64_t cache = 0;
  uint64_t activations = 0;
  uint64_t io = 0;
  uint64_t host = 0;
  uint64_t mapped = 0;  ///< part of the weights that the system may take back
  uint64_t total() const { return weights + cache + activations + io + host; }
  /// What the cap bounds.
  uint64_t held() const { return total() - mapped; }
  uint64_t largestBlock() const { return std::max({cache, activations, io, host}); }
};

/// The best window for one pair of formats.
struct BudgetChoice {
  bool fits = false;
  CacheFormats formats;
  CacheShape cache;  ///< if it does not fit: the smallest that was allowed
  uint32_t chunk = 0;
  BudgetBytes bytes;
  uint64_t minimum_bytes = 0;  ///< smallest memory_bytes for this pair
  double loss = 0;             ///< expected, nats per token; may be below 0 with windows per layer
  Refusal refused = Refusal::kNot;
  double decode_tokens_per_s = 0;  ///< with a full window; 0: unknown
  /// Each layer's share of the window, from LossModel::profiles. Null: each layer has the whole window.
  const WindowProfile* profile = nullptr;
};

struct Budget {
  bool fits = false;
  CacheShape cache;  ///< the choice, or the smallest if nothing fits
  CacheFormats formats;
  uint32_t chunk = 0;
  BudgetBytes bytes;
  double loss = 0;
  const WindowProfile* profile = nullptr;  ///< of the choice
  StepCost decode;                         ///< tokens 0: unknown
  StepCost prefill;
  uint64_t minimum_bytes = 0;  ///< smallest memory_bytes that meets this request
  /// All weighed choices in the order of kFormatPairs (only allowed pairs).
  BudgetChoice choices[kFormatPairCount];
  uint32_t n_choices = 0;
  uint32_t chosen = 0;  ///< index into choices
  bool longest_fits =
      false;  ///< it fits in every layer, in all allowed formats: windows per layer are not weighed
};

/// The most tokens of sinks and a chosen window: the trained context, or a default if that is unknown.
uint32_t chosenContext(const ModelDesc& model);
/// Bytes of a session's arena for the ids of cached tokens.
uint64_t tokenIdBytes(const CacheShape& cache);  ///< of all sessions
uint64_t ownTokenIdBytes(const CacheShape& cache);
/// Bytes of a choice for a model whose layers see the chosen window. The plan takes exactly these bytes; the token ids
/// are added to `host_bytes`.
BudgetBytes budgetBytes(const ModelDesc& model, const PlanTotals& totals, uint64_t host_bytes,
                        const CacheShape& cache, const CacheFormats& formats, uint32_t chunk);

/// State formats that are chosen, cheapest first. Int8 is excluded: notes/recurrent-memory.md.
constexpr StateFormat kChosenStates[] = {StateFormat::kF16, StateFormat::kF32};

/// Weighs every allowed pair of formats. Each pair gets the largest window that fits:
/// - up to the trained context,
/// - with the better of two state formats,
/// - fast enough, if a speed is requested,
/// - with the largest chunk and the most checkpoints that do not shorten the window much. Then it takes the pair with
/// the least expected loss, and on a tie the more precise one. A chosen window is divided among layers by a measured
/// profile if the expected loss is lower and the longest window for all layers does not fit in every pair. Pairs with
/// rounding beyond the limit are weighed, but taken only on request. Returns ORIEL_ERROR_SPEED if nothing is fast
/// enough, ORIEL_ERROR_ARGUMENT for a value out of range and ORIEL_ERROR_CONTEXT if the pinned text leaves no room in
/// the window. A budget that is too small is not an error here (Budget::fits).
Status chooseBudget(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                    const Log& log, Budget* budget);

}  // namespace oriel_internal
