// Chooses formats, window and chunk inside a number of bytes. Pure: no allocation, no device, no file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "budget/loss.h"
#include "budget/speed.h"
#include "plan/plan.h"

namespace oriel_internal {

/// Formats of keys and values worth choosing, cheapest first. Keys are about eight times as sensitive
/// as values, so they never get fewer bits.
struct FormatPair {
  KvFormat k;
  KvFormat v;
};
constexpr FormatPair kFormatPairs[] = {{KvFormat::kInt4, KvFormat::kInt4},
                                       {KvFormat::kInt8, KvFormat::kInt4},
                                       {KvFormat::kInt8, KvFormat::kInt8},
                                       {KvFormat::kF16, KvFormat::kF16}};
constexpr uint32_t kFormatPairCount = sizeof(kFormatPairs) / sizeof(kFormatPairs[0]);

/// Why a pair of formats is not chosen even where it fits.
enum class Refusal : uint8_t {
  kNot,
  kQuality,  ///< rounding beyond LossModel::kl_limit
  kSpeed     ///< slower than min_tokens_per_s with the shortest window
};

/// Largest single block of the host: a C library with 32-bit addresses gives less than half of them, and some of that is
/// the allocator's. 64 bits set no limit.
constexpr uint64_t kMaxHostBlockBytes =
    sizeof(size_t) >= 8 ? UINT64_MAX : uint64_t{SIZE_MAX / 2} - (1u << 20);

/// What may not be changed and what was asked for. Zero means "choose".
struct BudgetRequest {
  uint64_t memory_bytes = 0;
  /// Every arena but that of the weights is one block.
  uint64_t max_block_bytes = kMaxHostBlockBytes;
  uint32_t window = 0;
  uint32_t most_window = kMaxWindow;  ///< a chosen window is at most this long, but for min_window
  uint32_t min_window =
      0;  ///< a chosen window is at least this long, past the trained context, too
  uint32_t sinks = kDefaultSinks;
  uint32_t pinned = 0;  ///< tokens of a pinned prefix; sinks grow to cover them
  uint32_t recall = 0;  ///< slots behind the sinks for turns that come back
  /// Null: one. Outlives the budget and the plan.
  const SessionWindows* sessions = nullptr;
  uint32_t chunk = 0;
  uint32_t drafts = 0;             ///< as in CacheShape
  uint32_t checkpoints = 0;        ///< of states, where
  bool fixed_checkpoints = false;  ///< so many were asked for; else they are chosen
  bool fixed_k = false;            ///< `formats.k` was asked for
  bool fixed_v = false;
  bool fixed_state = false;
  /// Formats when fixed; what layers need always counts.
  CacheFormats formats;
  LossModel loss;
  /// Host bytes of everything but the token ids, which alone depend on the window.
  uint64_t host_bytes = 0;
  /// Rates and work for predictions; both or neither.
  const DeviceSpeed* speed = nullptr;
  const WorkShape* work = nullptr;
  double min_tokens_per_s = 0;  ///< of a token that sees a full window; 0: any
};

/// Exact bytes of one choice.
struct BudgetBytes {
  uint64_t weights = 0;
  uint64_t cache = 0;
  uint64_t activations = 0;
  uint64_t io = 0;
  uint64_t host = 0;
  uint64_t total() const { return weights + cache + activations + io + host; }
  uint64_t largestBlock() const { return std::max({cache, activations, io, host}); }
};

/// The best window for one pair of formats.
struct BudgetChoice {
  bool fits = false;
  CacheFormats formats;
  CacheShape cache;  ///< the smallest that was allowed when it does not fit
  uint32_t chunk = 0;
  BudgetBytes bytes;
  uint64_t minimum_bytes = 0;  ///< least memory_bytes for this pair
  double loss = 0;             ///< expected, nats per token; with windows by layer maybe below 0
  Refusal refused = Refusal::kNot;
  double decode_tokens_per_s = 0;  ///< with the window full; 0: not known
  /// How much of the window each layer sees: one of LossModel::profiles. Null: all of it.
  const WindowProfile* profile = nullptr;
};

struct Budget {
  bool fits = false;
  CacheShape cache;  ///< the choice, or the smallest when nothing fits
  CacheFormats formats;
  uint32_t chunk = 0;
  BudgetBytes bytes;
  double loss = 0;
  const WindowProfile* profile = nullptr;  ///< of the choice
  StepCost decode;                         ///< tokens 0: not known
  StepCost prefill;
  uint64_t minimum_bytes = 0;  ///< least memory_bytes that this request can be met in
  /// Everything that was weighed, in the order of kFormatPairs (those the request allows).
  BudgetChoice choices[kFormatPairCount];
  uint32_t n_choices = 0;
  uint32_t chosen = 0;  ///< index into choices
  bool longest_fits =
      false;  ///< in every layer, in all formats that may be chosen: windows by layer are not weighed
};

/// Sinks and a window that is chosen are at most so many tokens together: the trained context, or some where that is not
/// known.
uint32_t chosenContext(const ModelDesc& model);
/// Of a session's arena: the ids of the tokens that the cache holds.
uint64_t tokenIdBytes(const CacheShape& cache);  ///< of all sessions
uint64_t ownTokenIdBytes(const CacheShape& cache);
/// Bytes of a choice, of a model whose layers see as much of the window as was chosen. The plan takes exactly these. The token ids come on top of `host_bytes`.
BudgetBytes budgetBytes(const ModelDesc& model, const PlanTotals& totals, uint64_t host_bytes,
                        const CacheShape& cache, const CacheFormats& formats, uint32_t chunk);

/// Formats of states that are chosen, cheapest first. Int8 is not among them: docs/recurrent-memory.md.
constexpr StateFormat kChosenStates[] = {StateFormat::kF16, StateFormat::kF32};

/// Weighs every allowed pair of formats with the largest window that fits with it (up to the trained
/// context, with the better of two formats of states, fast enough where a speed is asked for, and with the largest chunk
/// and the most checkpoints of states that do not cost the window much) and takes the pair of least expected loss; of equals the dearer. A chosen window
/// is shared out among layers by a measured profile, longer in some than in others, where that is expected to lose less and
/// a window for all layers that is as long as may be does not fit in every pair. Pairs whose
/// rounding is beyond the limit are weighed but not taken, unless they were asked for.
/// ORIEL_ERROR_SPEED when nothing is fast enough, ORIEL_ERROR_ARGUMENT for values out of range,
/// ORIEL_ERROR_CONTEXT when the pinned text leaves no room in the window; a budget that is too small is not
/// an error here (Budget::fits).
Status chooseBudget(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                    const Log& log, Budget* budget);

}  // namespace oriel_internal
