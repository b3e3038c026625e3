#include "budget/budget.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/arena.h"
#include "base/choices.h"
#include "kv/token_ids.h"
#include "model/model_desc.h"
#include "plan/memory_layout.h"

namespace oriel_internal {
namespace {

// Range of chosen chunks, in multiples of the smallest. Above 64 tokens a submission on a slow device takes too long to
// cancel; below 8 the weights are unpacked too often. Discrete GPUs get more (BudgetRequest::most_chunk): 64 tokens do
// not fill them.
constexpr uint32_t kMinChunk = 8;
/// The default window of an encoder, in tokens.
constexpr uint32_t kEncoderWindow = 2048;
/// An encoder without learned positions accepts at least this window.
constexpr uint32_t kShortEncoderWindow = 512;
constexpr uint32_t kMaxAutoChunk = 64;
// Experts share the tokens of a chunk. With 256 tokens and 4 of 32 experts per token, each expert gets 32 tokens. With
// 64 tokens it would get 8, and unpacking its weights would be nearly half of the work.
constexpr uint32_t kMaxAutoChunkOfExperts = 256;
// A chunk is affordable if the window is at least kWindowPerChunk times as long, and the bytes that the chunk adds
// (activations, ring slack) are at most 1/kCacheShareForChunk of the window's cache.
constexpr uint32_t kWindowPerChunk = 8;
constexpr uint64_t kCacheShareForChunk = 8;
// The most useful checkpoints of states: the start of the latest message, the start of its reply, and two further back.
// A checkpoint saves reading part of a window again, so longer windows justify more. All of them together take at most
// 1/kCacheShareForCheckpoints of the window's cache, or the memory left over.
constexpr uint32_t kMostAutoCheckpoints = 4;
constexpr uint64_t kCacheShareForCheckpoints = 4;
// If the file does not state its trained context.
constexpr uint32_t kAssumedContext = 4096;
// Tokens of the trained context that a pinned prefix must leave free.
constexpr uint32_t kRoomBesidePinned = 16;

struct WindowRange {
  uint32_t least = 0;
  uint32_t most = 0;
};

WorkShape workOf(const ModelDesc& model, const WorkShape& work) {
  WorkShape of = work;
  of.model = &model;
  return of;
}

// Rows of a picture that one chunk must hold.
uint32_t rowsTogether(const ModelDesc& model) {
  return model.pictures != nullptr ? model.pictures->rows_together : 0;
}

/// Weighs one pair of formats, with everything else as requested.
class Weigher {
 public:
  Weigher(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
          uint32_t sinks, WindowRange windows, const CacheFormats& formats,
          const WindowProfile* profile = nullptr)
      : model_(model),
        totals_(totals),
        request_(request),
        sinks_(sinks),
        windows_(windows),
        formats_(formats),
        profile_(profile),
        state_bytes_(stateBytes(model, formats)),
        checkpoints_(state_bytes_ != 0 ? request.checkpoints : 0) {}

  BudgetChoice weigh() {
    uint32_t window = windows_.least;
    uint32_t chunk = model_.encoder ? stepOf(window) : leastChunk();
    BudgetChoice choice;
    choice.formats = formats_;
    choice.refused = refusal();
    choice.minimum_bytes = bytesOf(window, chunk).held();
    choice.fits = fits(window, chunk);
    if (choice.fits) {
      choose(&window, &chunk);
    }
    choice.chunk = chunk;
    choice.cache = shapeOf(window, chunk);
    choice.bytes = bytesOf(window, chunk);
    choice.loss =
        request_.loss.expected(formats_, model_, sinks_ - request_.recall, window, profile_);
    choice.profile = profile_;
    choice.decode_tokens_per_s = tokensPerSecond(window);
    return choice;
  }

  // Drops windows that are too slow from the range. Keeps the shortest.
  void limitToFastWindows() {
    const auto fast = [this](uint32_t window) {
      return tokensPerSecond(window) >= request_.min_tokens_per_s;
    };
    uint32_t low = windows_.least;
    while (low < windows_.most) {
      const uint32_t middle = low + (windows_.most - low + 1) / 2;
      if (fast(middle)) {
        low = middle;
      } else {
        windows_.most = middle - 1;
      }
    }
    windows_.most = low;
  }

  // True if the smallest choice can be bound by a kernel and allocated.
  bool possible() const {
    return isPossible(windows_.least, model_.encoder ? stepOf(windows_.least) : leastChunk());
  }

 private:
  // Prediction for a token that sees the whole window; 0: unknown.
  double tokensPerSecond(uint32_t window) const {
    StepCost cost;
    if (request_.speed == nullptr ||
        !stepCost(*request_.speed, workOf(model_, *request_.work), formats_, 0, &cost)) {
      return 0;
    }
    limitSeen(model_, sinks_, window, &cost);
    const double seconds = stepSeconds(cost, static_cast<double>(sinks_) + window) + cost.head_s;
    return seconds > 0 ? 1 / seconds : 0;
  }

  Refusal refusal() const {
    const LossModel& loss = request_.loss;
    const double rounding = (request_.fixed_k ? 0 : loss.roundingOfKeys(formats_, model_)) +
                            (request_.fixed_v ? 0 : loss.roundingOfValues(formats_, model_)) +
                            (request_.fixed_state ? 0 : loss.roundingOfStates(formats_, model_));
    if (rounding > loss.kl_limit) {
      return Refusal::kQuality;
    }
    return request_.min_tokens_per_s > 0 &&
                   tokensPerSecond(windows_.least) < request_.min_tokens_per_s
               ? Refusal::kSpeed
               : Refusal::kNot;
  }

  CacheShape shapeOf(uint32_t window, uint32_t chunk) const {
    CacheShape cache = {model_.n_kv_heads,
                        model_.head_dim,
                        sinks_,
                        window,
                        model_.encoder ? chunk : window + chunk - 1,
                        checkpoints_};
    cache.drafts = request_.drafts;
    cache.sessions = request_.sessions;
    return longestSession(cache);
  }

  bool isPossible(uint32_t window, uint32_t chunk) const {
    uint64_t bytes = 0;
    return cacheBytes(model_, shapeOf(window, chunk), formats_, &bytes) &&
           bytesOf(window, chunk).largestBlock() <= request_.max_block_bytes;
  }

  BudgetBytes bytesOf(uint32_t window, uint32_t chunk) const {
    const CacheShape cache = shapeOf(window, chunk);
    return budgetBytes(model_, totals_, request_.host_bytes, cache, formats_, chunk);
  }

  bool fits(uint32_t window, uint32_t chunk) const {
    uint64_t bytes = 0;
    if (!cacheBytes(model_, shapeOf(window, chunk), formats_, &bytes) ||
        bytes > request_.memory_bytes ||
        (!totals_.mapped &&
         totals_.weights_bytes > request_.memory_bytes - bytes)) {  // cheap checks first
      return false;
    }
    const BudgetBytes all = bytesOf(window, chunk);
    return all.largestBlock() <= request_.max_block_bytes && all.held() <= request_.memory_bytes;
  }

  // An encoder reads a text in one step. A step may have several texts.
  uint32_t stepOf(uint32_t window) const { return std::max(window, request_.chunk); }

  // Bytes grow with the window: the largest that fits is found by bisection.
  uint32_t largestWindow(uint32_t chunk) const {
    uint32_t low = windows_.least;
    uint32_t high = windows_.most;
    while (low < high) {
      const uint32_t middle = low + (high - low + 1) / 2;
      if (fits(middle, model_.encoder ? stepOf(middle) : chunk)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }

  void choose(uint32_t* window, uint32_t* chunk) {
    if (model_.encoder) {
      *window = largestWindow(0);
      *chunk = stepOf(*window);
      return;
    }
    chooseAll(window, chunk);
    // A longer window or a larger chunk cannot use this memory.
    const uint32_t largest = std::min(mostChunk(), *window);
    if (state_bytes_ != 0 && !request_.fixed_checkpoints && *window == windows_.most &&
        (request_.chunk != 0 || *chunk + kMinChunk > largest)) {
      const uint32_t least = checkpoints_;
      for (checkpoints_ = kMostAutoCheckpoints; checkpoints_ > least; --checkpoints_) {
        if (fits(*window, *chunk)) {
          return;
        }
      }
    }
  }

  // More memory never reduces the window or the checkpoints, for the same reason as with chunks below: the window that
  // makes checkpoints affordable does not depend on the memory, and fewer checkpoints never allow a longer window.
  void chooseAll(uint32_t* window, uint32_t* chunk) {
    uint32_t longest = windows_.most;
    if (state_bytes_ != 0 && !request_.fixed_checkpoints) {
      if (request_.window != 0) {
        chooseWindow(longest, window, chunk);
        for (uint32_t count = 1; count <= kMostAutoCheckpoints; ++count) {
          checkpoints_ = count;
          if (windowForCheckpoints(count) > *window || !fits(*window, *chunk)) {
            checkpoints_ = count - 1;
            return;
          }
        }
        return;
      }
      const uint32_t most = request_.chunk != 0 ? request_.chunk : mostChunk();
      for (checkpoints_ = kMostAutoCheckpoints; checkpoints_ != 0; --checkpoints_) {
        const uint64_t enough =
            std::max<uint64_t>(request_.chunk != 0 ? windows_.least : windowForChunk(most),
                               windowForCheckpoints(checkpoints_));
        if (enough <= windows_.most && fits(static_cast<uint32_t>(enough), most)) {
          *window = std::min(largestWindow(most), longest);
          *chunk = most;
          return;
        }
        longest = static_cast<uint32_t>(std::min<uint64_t>(longest, enough));
      }
    }
    chooseWindow(longest, window, chunk);
  }

  // The shortest window that justifies this many checkpoints. Any window if tokens take no bytes.
  uint64_t windowForCheckpoints(uint32_t count) const {
    const uint64_t per_token = memoryGrowth(model_, formats_).per_token;
    return per_token != 0 ? ceilDiv(kCacheShareForCheckpoints * count * state_bytes_, per_token)
                          : 0;
  }

  void chooseWindow(uint32_t longest, uint32_t* window, uint32_t* chunk) const {
    if (request_.chunk != 0) {
      *window = std::min(largestWindow(request_.chunk), longest);
      return;
    }
    if (request_.window != 0) {
      *chunk = std::max(leastChunk(), std::min(mostChunk(), *window / kMinChunk * kMinChunk));
      while (*chunk > leastChunk() && !fits(*window, *chunk)) {
        *chunk -= kMinChunk;
      }
      return;
    }
    // More memory never reduces the window or the chunk: the window that makes a chunk affordable does not depend on the
    // memory, and a smaller chunk never allows a longer window.
    const uint32_t least = leastChunk();
    for (uint32_t candidate = mostChunk(); candidate >= least; candidate -= kMinChunk) {
      const uint32_t enough = candidate == least ? windows_.least : windowForChunk(candidate);
      if (fits(enough, candidate)) {
        *window = std::min(largestWindow(candidate), longest);
        *chunk = candidate;
        return;
      }
      longest = enough;
    }
  }

  uint32_t mostChunk() const {
    const uint32_t automatic =
        std::max(request_.most_chunk,
                 expertLimits(model_).count != 0 ? kMaxAutoChunkOfExperts : kMaxAutoChunk);
    return std::max(leastChunk(), automatic);
  }

  // The requested chunk, or the smallest one that can be chosen.
  uint32_t leastChunk() const {
    const uint32_t rows = rowsTogether(model_);
    return request_.chunk != 0
               ? request_.chunk
               : std::max(kMinChunk, (rows + kMinChunk - 1) / kMinChunk * kMinChunk);
  }

  // The shortest window that justifies a chunk.
  uint32_t windowForChunk(uint32_t chunk) const {
    const uint64_t extra =
        bytesOf(windows_.least, chunk).total() - bytesOf(windows_.least, leastChunk()).total();
    const uint64_t per_token = std::max<uint64_t>(1, memoryGrowth(model_, formats_).per_token);
    const uint64_t enough = std::max<uint64_t>(uint64_t{kWindowPerChunk} * chunk,
                                               kCacheShareForChunk * extra / per_token);
    return static_cast<uint32_t>(std::clamp<uint64_t>(enough, windows_.least, windows_.most));
  }

  const ModelDesc& model_;
  const PlanTotals& totals_;
  const BudgetRequest& request_;
  uint32_t sinks_;
  WindowRange windows_;
  CacheFormats formats_;
  const WindowProfile* profile_;  ///< of the model's layers
  uint64_t state_bytes_;          ///< one version of all states
  uint32_t checkpoints_;
};

Status checkRanges(const ModelDesc& model, const BudgetRequest& request, uint32_t sinks,
                   const Log& log) {
  if (request.window > kMaxWindow) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a window of %u tokens is out of range: ask for at most %u", request.window,
                    kMaxWindow);
  }
  if (request.window != 0 && request.min_window > request.window) {
    return log.fail(
        ORIEL_ERROR_ARGUMENT,
        "\"min_window\" is %u and \"window\" %u: give at most the window, or leave one out",
        request.min_window, request.window);
  }
  if (request.min_window > kMaxWindow) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a window of at least %u tokens is out of range: ask for at most %u",
                    request.min_window, kMaxWindow);
  }
  if (request.chunk > kMaxChunk) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a chunk of %u tokens is out of range: ask for at most %u", request.chunk,
                    kMaxChunk);
  }
  const uint32_t rows = rowsTogether(model);
  if (request.chunk != 0 && request.chunk < rows) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "\"prefill_batch\" is %u, and this model reads all %u rows of a picture in one "
                    "batch: give at least that, or fewer \"image_tokens\"",
                    request.chunk, rows);
  }
  if (request.checkpoints > kMaxCheckpoints) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "%u checkpoints are out of range: ask for at most %u",
                    request.checkpoints, kMaxCheckpoints);
  }
  if (sinks > kMaxWindow) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "%u sinks are out of range: ask for at most %u", sinks,
                    kMaxWindow);
  }
  return kOk;
}

Status windowRange(const ModelDesc& model, const BudgetRequest& request, uint32_t sinks,
                   const Log& log, WindowRange* windows) {
  *windows = {request.window, request.window};
  uint32_t context = chosenContext(model);
  if (model.encoder && !model.learned_positions) {  // its attention has no limit
    context = std::max(context, kShortEncoderWindow);
  }
  if (model.learned_positions && model.encoder && request.window > context) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a window of %u tokens is longer than the %u positions of the model: ask for "
                    "at most that",
                    request.window, context);
  }
  const uint32_t most_window =
      model.encoder && request.most_window == kDefaultWindow ? kEncoderWindow : request.most_window;
  if (request.window == 0) {
    const uint32_t most = std::min(context > sinks ? context - sinks : 0, most_window);
    windows->least = std::max(1u, std::min(kMinAutoWindow, most));
    windows->least = std::max(windows->least, request.min_window);
    windows->most = std::max(most, windows->least);
  }
  const uint32_t room = request.window != 0           ? request.window
                        : context > kRoomBesidePinned ? context - kRoomBesidePinned
                                                      : 0;
  if (request.pinned > room) {
    return log.fail(
        ORIEL_ERROR_CONTEXT,
        "the pinned text has %u tokens but there is room for %u: shorten the text or ask "
        "for a larger window",
        request.pinned, room);
  }
  return kOk;
}

// A requested pair need not be in the list. A latent has one format, taken from the keys; if only a format for values
// was requested, that one is used.
uint32_t allowedPairs(const ModelDesc& model, const BudgetRequest& request,
                      FormatPair (&pairs)[kFormatPairCount]) {
  const bool latent = model.n_kinds != 0 && model.kinds[0].isLatent();
  if (latent && (request.fixed_k || request.fixed_v)) {
    const KvFormat format = request.fixed_k ? request.formats.k : request.formats.v;
    pairs[0] = {format, format};
    return 1;
  }
  if (model.encoder) {  // keys and values are used in their own step only
    pairs[0] = {KvFormat::kF16, KvFormat::kF16};
    return 1;
  }
  if (request.fixed_k && request.fixed_v) {
    pairs[0] = {request.formats.k, request.formats.v};
    return 1;
  }
  uint32_t n_pairs = 0;
  for (const FormatPair& pair : kFormatPairs) {
    if (latent && pair.k != pair.v) {
      continue;
    }
    const FormatPair wanted = {request.fixed_k ? request.formats.k : pair.k,
                               request.fixed_v ? request.formats.v : pair.v};
    const bool seen =
        n_pairs != 0 && pairs[n_pairs - 1].k == wanted.k && pairs[n_pairs - 1].v == wanted.v;
    if (!seen) {
      pairs[n_pairs++] = wanted;
    }
  }
  return n_pairs;
}

// On a tie keep `a`: candidates come cheapest first, so `a` is the more precise format.
bool better(const BudgetChoice& a, const BudgetChoice& b) {
  return (a.refused == Refusal::kNot) != (b.refused == Refusal::kNot) ? a.refused == Refusal::kNot
         : a.fits != b.fits                                           ? a.fits
         : a.fits                                                     ? a.loss <= b.loss
                  : a.minimum_bytes < b.minimum_bytes;
}

// A profile is only valid near its measurement. Its mean window may be at most kMostMean times the uniform window of
// equal bytes, and its windows may grow by a limited factor. The second bound does not depend on the memory, so more
// memory does not drop a profile within that bound.
constexpr double kMostMean = 1.5;
constexpr uint32_t kMostGrowth = 2;

// Weighs windows per layer for the same formats, and keeps them if they are better than one window for all layers.
void weighProfiles(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                   uint32_t sinks, WindowRange windows, BudgetChoice* best) {
  const WindowProfiles& profiles = request.loss.profiles;
  const uint32_t uniform = best->cache.window;
  for (uint32_t i = 0; best->fits && i < profiles.count; ++i) {
    const WindowProfile& profile = profiles.list[i];
    const double mean = profiles.meanShare(profile) * profile.window / uniform;
    const uint64_t longest = uint64_t{kMostGrowth} * profile.window;
    ModelDesc shared = model;
    if (profile.isUniform(profiles.n_layers) || mean > kMostMean || longest < windows.least ||
        !shareWindow(profile.parts, &shared)) {
      continue;
    }
    const WindowRange range = {windows.least,
                               static_cast<uint32_t>(std::min<uint64_t>(windows.most, longest))};
    Weigher weigher(shared, totals, request, sinks, range, best->formats, &profile);
    if (request.min_tokens_per_s > 0) {
      weigher.limitToFastWindows();
    }
    BudgetChoice choice = weigher.possible() ? weigher.weigh() : BudgetChoice();
    if (choice.fits && choice.refused == best->refused && choice.loss < best->loss) {
      choice.minimum_bytes = best->minimum_bytes;
      *best = choice;
    }
  }
}

// Weighs one pair of formats, with the better state format if that is open, and with windows per layer if `by_layer`.
// False if no choice is possible.
bool weighStates(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                 uint32_t sinks, WindowRange windows, CacheFormats formats, bool by_layer,
                 BudgetChoice* best) {
  const bool open = model.keepsStates() && !request.fixed_state;
  bool possible = false;
  for (const StateFormat state : kChosenStates) {
    if (!open && state != StateFormat::kF32) {
      continue;  // models without states: only once
    }
    formats.state = open ? state : formats.state;
    Weigher weigher(model, totals, request, sinks, windows, formats);
    if (request.min_tokens_per_s > 0) {
      weigher.limitToFastWindows();
    }
    if (!weigher.possible()) {
      continue;
    }
    BudgetChoice choice = weigher.weigh();
    if (by_layer) {
      weighProfiles(model, totals, request, sinks, windows, &choice);
    }
    if (!possible) {
      *best = choice;
      possible = true;
      continue;
    }
    const bool alike = (choice.refused == Refusal::kNot) == (best->refused == Refusal::kNot);
    const uint64_t least = std::min(choice.minimum_bytes, best->minimum_bytes);
    if (better(choice, *best)) {
      *best = choice;
    }
    best->minimum_bytes = alike ? least : best->minimum_bytes;
  }
  return possible;
}

// Weighs every allowed pair.
void weighPairs(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                uint32_t sinks, WindowRange windows, bool by_layer, Budget* budget) {
  FormatPair pairs[kFormatPairCount];
  const uint32_t n_pairs = allowedPairs(model, request, pairs);
  budget->n_choices = 0;
  for (uint32_t i = 0; i < n_pairs; ++i) {
    CacheFormats formats = request.formats;
    formats.k = pairs[i].k;
    formats.v = pairs[i].v;
    if (weighStates(model, totals, request, sinks, windows, formats, by_layer,
                    &budget->choices[budget->n_choices])) {
      ++budget->n_choices;
    }
  }
}

// True if the longest window fits in every layer, in all allowed formats. The answer is common to all formats: with an
// answer per pair, more memory could take windows per layer away from the pair that needs them.
bool longestFits(const Budget& budget, WindowRange windows) {
  bool all = true;
  for (uint32_t i = 0; i < budget.n_choices; ++i) {
    const BudgetChoice& choice = budget.choices[i];
    all = all &&
          (choice.refused != Refusal::kNot || (choice.fits && choice.cache.window == windows.most));
  }
  return all;
}

// The most checkpoints whose states a kernel can bind, in the given format.
uint32_t mostCheckpoints(const ModelDesc& model, const CacheFormats& formats) {
  uint64_t most = kMaxCheckpoints;
  forEachMemory(model, CacheShape(), formats, [&](const Memory& memory) {
    if (memory.kind == MemoryKind::kState) {
      const uint64_t slots = kMaxBindingBytes / memory.slotBytes();
      most = std::min(most, std::max<uint64_t>(slots, kStateSlots) - kStateSlots);
    }
  });
  return static_cast<uint32_t>(most);
}

// The error if all choices are refused. f16 is never refused for quality, but it may not fit every window.
Status refuseSpeed(const Budget& budget, const BudgetRequest& request, const Log& log) {
  const BudgetChoice* best = nullptr;
  bool is_quality = true;
  for (uint32_t i = 0; i < budget.n_choices; ++i) {
    const BudgetChoice& choice = budget.choices[i];
    is_quality = is_quality && choice.refused == Refusal::kQuality;
    if (choice.refused == Refusal::kSpeed &&
        (best == nullptr || choice.decode_tokens_per_s > best->decode_tokens_per_s)) {
      best = &choice;
    }
  }
  if (is_quality) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the formats that can hold this window failed the calibration of this model: "
                    "ask for a shorter window, or name the formats");
  }
  if (best == nullptr || best->decode_tokens_per_s == 0) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "the speed of this model cannot be predicted: leave the least speed open");
  }
  return log.fail(
      ORIEL_ERROR_SPEED,
      "%.1f tokens/s are out of reach on %s, the best is %.1f with keys in %s, values in "
      "%s and %u tokens: ask for at most that, or take a smaller model",
      request.min_tokens_per_s, request.speed->device,
      // rounded down, so that the suggested speed is reachable
      std::floor(best->decode_tokens_per_s * 10) / 10, kvFormatName(best->formats.k),
      kvFormatName(best->formats.v), best->cache.window);
}

}  // namespace

uint32_t chosenContext(const ModelDesc& model) {
  // Without attention, token ids are still needed to go back.
  const bool stated = model.visibleTrain() != 0 && model.attends();
  return stated ? model.visibleTrain() : kAssumedContext;
}

uint64_t ownTokenIdBytes(const CacheShape& cache) {
  Arena arena;
  TokenIds().init(cache, nullptr, &arena);
  return arena.used();
}

uint64_t tokenIdBytes(const CacheShape& cache) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < cache.sessionCount(); ++i) {
    bytes += ownTokenIdBytes(sessionCache(cache, i));
  }
  return bytes;
}

BudgetBytes budgetBytes(const ModelDesc& model, const PlanTotals& totals, uint64_t host_bytes,
                        const CacheShape& cache, const CacheFormats& formats, uint32_t chunk) {
  BudgetBytes bytes;
  bytes.weights = totals.weights_bytes;
  bytes.mapped = totals.mapped ? totals.weights_bytes : 0;
  (void)cacheBytes(model, cache, formats, &bytes.cache);
  bytes.activations = layoutActivations(model, cache, chunk, totals.on_file).bytes;
  bytes.io =
      layoutIo(model, chunk, totals.upload_half_bytes, totals.on_file, topPlaces(cache, chunk))
          .bytes;
  bytes.host = host_bytes + tokenIdBytes(cache);
  return bytes;
}

namespace {

// Predicts the steps of the choice.
void predict(const ModelDesc& model, const BudgetRequest& request, Budget* budget) {
  ModelDesc shared = model;
  if (request.speed == nullptr ||
      (budget->profile != nullptr && !shareWindow(budget->profile->parts, &shared))) {
    return;
  }
  const WorkShape work = workOf(shared, *request.work);
  if (!stepCost(*request.speed, work, budget->formats, 0, &budget->decode) ||
      !stepCost(*request.speed, work, budget->formats, budget->chunk, &budget->prefill)) {
    budget->decode = budget->prefill = {};
    return;
  }
  for (StepCost* cost : {&budget->decode, &budget->prefill}) {
    limitSeen(shared, budget->cache.sinks, budget->cache.window, cost);
  }
}

}  // namespace

Status chooseBudget(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                    const Log& log, Budget* budget) {
  *budget = Budget();
  const uint32_t sinks =
      model.encoder ? 0 : std::max(request.sinks, request.pinned) + request.recall;
  ORIEL_TRY(checkRanges(model, request, sinks, log));
  WindowRange windows;
  ORIEL_TRY(windowRange(model, request, sinks, log, &windows));

  weighPairs(model, totals, request, sinks, windows, false, budget);
  budget->longest_fits = request.window == 0 && longestFits(*budget, windows);
  if (request.window == 0 && request.loss.profiles.count != 0 && !budget->longest_fits) {
    weighPairs(model, totals, request, sinks, windows, true, budget);
  }
  if (budget->n_choices == 0) {
    const uint32_t most = mostCheckpoints(model, request.formats);
    if (request.checkpoints > most) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "%u checkpoints need more than %llu bytes in one layer: ask for at most %u",
                      request.checkpoints, static_cast<unsigned long long>(kMaxBindingBytes), most);
    }
    uint32_t longest = windows.least;
    for (uint32_t i = 0; request.sessions != nullptr && i < request.sessions->count; ++i) {
      longest = std::max(longest, request.sessions->windows[i]);
    }
    char block[64] = "";
    if (request.max_block_bytes != UINT64_MAX) {
      std::snprintf(block, sizeof(block), ", or more than %llu in all",
                    static_cast<unsigned long long>(request.max_block_bytes));
    }
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a window of %u tokens and %u sinks need more than %llu bytes in one layer%s: "
                    "ask for less",
                    longest, sinks, static_cast<unsigned long long>(kMaxBindingBytes), block);
  }
  for (uint32_t i = 1; i < budget->n_choices; ++i) {
    if (better(budget->choices[i], budget->choices[budget->chosen])) {
      budget->chosen = i;
    }
  }
  const BudgetChoice& chosen = budget->choices[budget->chosen];
  if (chosen.refused != Refusal::kNot) {
    return refuseSpeed(*budget, request, log);
  }
  budget->fits = chosen.fits;
  budget->cache = chosen.cache;
  budget->formats = chosen.formats;
  budget->chunk = chosen.chunk;
  budget->bytes = chosen.bytes;
  budget->loss = chosen.loss;
  budget->profile = chosen.profile;
  budget->minimum_bytes = chosen.minimum_bytes;
  for (uint32_t i = 0; i < budget->n_choices; ++i) {
    if (budget->choices[i].refused == Refusal::kNot) {
      budget->minimum_bytes = std::min(budget->minimum_bytes, budget->choices[i].minimum_bytes);
    }
  }
  predict(model, request, budget);
  return kOk;
}

}  // namespace oriel_internal
