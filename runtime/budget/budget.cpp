#include "budget/budget.h"

#include <algorithm>

#include "plan/memory_layout.h"

namespace oriel {
namespace {

// Chunks worth choosing: beyond 64 tokens a submission on a slow device takes too long to cancel, below
// 8 the weights are unpacked too often.
constexpr uint32_t kChunks[] = {64, 32, 16, 8};
constexpr uint32_t kMinChunk = 8;
constexpr uint32_t kMaxChunk = 512;
// A chunk is affordable while the window is this many times as long (ring slack is chunk - 1).
constexpr uint32_t kWindowPerChunk = 8;
// When a file does not state the context it was trained with.
constexpr uint32_t kAssumedContext = 4096;

CacheShape shapeOf(const ModelDesc& model, uint32_t sinks, uint32_t window, uint32_t chunk) {
  return {model.n_kv_heads, model.head_dim, sinks, window, window + chunk - 1};
}

bool bindable(const CacheShape& cache) {
  return kvSideBytes(KvFormat::kF16, cache) <= kMaxBindingBytes;
}

}  // namespace

BudgetBytes budgetBytes(const ModelDesc& model, const PlanTotals& totals, uint64_t host_bytes,
                        const CacheShape& cache, uint32_t chunk) {
  BudgetBytes bytes;
  bytes.weights = totals.weights_bytes;
  (void)cacheBytes(model, cache, &bytes.cache);
  bytes.activations = layoutActivations(model, cache, chunk).bytes;
  bytes.io = layoutIo(model, chunk, totals.upload_half_bytes).bytes;
  bytes.host = host_bytes;
  return bytes;
}

Status chooseBudget(const ModelDesc& model, const PlanTotals& totals, const BudgetRequest& request,
                    const Log& log, Budget* budget) {
  *budget = Budget();
  if (request.window > kMaxWindow) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a window of %u tokens is out of range: ask for at most %u",
                    request.window, kMaxWindow);
  }
  if (request.chunk > kMaxChunk) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a chunk of %u tokens is out of range: ask for at most %u",
                    request.chunk, kMaxChunk);
  }
  const uint32_t sinks = std::max(request.sinks, request.pinned);
  if (sinks > kMaxWindow) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "%u sinks are out of range: ask for at most %u", sinks,
                    kMaxWindow);
  }

  // The range of windows to choose from.
  const uint32_t context = model.context_train != 0 ? model.context_train : kAssumedContext;
  uint32_t most = request.window;
  uint32_t least = request.window;
  if (request.window == 0) {
    most = std::min(context > sinks ? context - sinks : 0, kMaxWindow);
    least = std::max(1u, std::min(std::max(kMinAutoWindow, request.pinned), most));
    most = std::max(most, least);
  }
  if (request.pinned > most || (request.window == 0 && request.pinned >= context)) {
    return log.fail(ORIEL_ERROR_CONTEXT,
                    "the pinned text has %u tokens but the window only %u: shorten the text or ask "
                    "for a larger window",
                    request.pinned, request.pinned >= context && request.window == 0 ? context : most);
  }
  if (!bindable(shapeOf(model, sinks, least, request.chunk != 0 ? request.chunk : kMinChunk))) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a window of %u tokens needs more than %llu bytes in one layer: ask for less", least,
                    static_cast<unsigned long long>(kMaxBindingBytes));
  }

  const auto bytesOf = [&](uint32_t window, uint32_t chunk) {
    return budgetBytes(model, totals, request.host_bytes, shapeOf(model, sinks, window, chunk), chunk);
  };
  const auto fits = [&](uint32_t window, uint32_t chunk) {
    return bindable(shapeOf(model, sinks, window, chunk)) &&
           bytesOf(window, chunk).total() <= request.memory_bytes;
  };

  const uint32_t least_chunk = request.chunk != 0 ? request.chunk : kMinChunk;
  budget->minimum_bytes = bytesOf(least, least_chunk).total();
  uint32_t window = least;
  uint32_t chunk = least_chunk;
  budget->fits = fits(least, least_chunk);
  if (budget->fits) {
    for (const uint32_t candidate : kChunks) {
      const uint32_t tried = request.chunk != 0 ? request.chunk : candidate;
      if (!fits(least, tried)) {
        continue;
      }
      // Bytes grow with the window: the largest that fits is found by bisection.
      uint32_t low = least;
      uint32_t high = most;
      while (low < high) {
        const uint32_t middle = low + (high - low + 1) / 2;
        if (fits(middle, tried)) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      window = low;
      chunk = tried;
      const bool affordable = request.window != 0
                                  ? chunk <= std::max(kMinChunk, window)
                                  : window >= std::min(most, kWindowPerChunk * chunk);
      if (request.chunk != 0 || affordable) {
        break;
      }
    }
  }
  budget->chunk = chunk;
  budget->cache = shapeOf(model, sinks, window, chunk);
  budget->bytes = bytesOf(window, chunk);
  return kOk;
}

}  // namespace oriel
