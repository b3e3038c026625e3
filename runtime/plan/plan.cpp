#include "plan/plan.h"

#include <algorithm>

#include "plan/forward.h"
#include "plan/memory_layout.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

// Half of the upload ring: large enough to keep a copy engine busy, small compared with the weights.
constexpr uint64_t kMinUploadHalf = 64ull << 10;
constexpr uint64_t kMaxUploadHalf = 2ull << 20;
constexpr uint64_t kUploadShare = 32;

// Largest number of ops in a list of any plan. Several sessions add an op to heads. Several sessions or guesses add
// lists for batches.
uint32_t opCapacity(const PlanTotals& totals, StepList list, const CacheShape& cache) {
  const bool several = cache.sessionCount() > 1;
  const bool batches = several || cache.drafts != 0;
  const auto counted = [&](StepList of) { return totals.n_ops[static_cast<uint32_t>(of)]; };
  switch (list) {
    case StepList::kHead:
    case StepList::kOutputs:
      return counted(list) + (several ? 1 : 0);
    case StepList::kBatch:
      return batches ? counted(StepList::kDecode) : 0;
    case StepList::kBatchHead:
      return batches ? counted(StepList::kHead) + (several ? 1 : 0) : 0;
    default:
      return counted(list);
  }
}

}  // namespace

uint32_t batchRows(const CacheShape& cache, uint32_t chunk) {
  return std::min(std::max(cache.sessionCount(), 1 + cache.drafts), chunk);
}

uint32_t topPlaces(const CacheShape& cache, uint32_t chunk) {
  return std::max(cache.sessionCount(), batchRows(cache, chunk));
}

uint64_t uploadHalfBytes(uint64_t weights_bytes, uint64_t largest_group_bytes) {
  const uint64_t half = std::clamp(weights_bytes / kUploadShare, kMinUploadHalf, kMaxUploadHalf);
  return alignUp(std::max(half, largest_group_bytes), kBufferAlignment);
}

uint64_t ExpertsOnFile::Part::slotBytes() const {
  return weightGeometry(type, cols).sliceBytes(rows);
}
uint64_t ExpertsOnFile::Part::fileBytes() const { return fileRowBytes(tensor_type, cols) * rows; }

Status measureWeights(const TensorIndex& tensors, const ModelDesc& model, const OnFile& wanted,
                      const Log& log, PlanTotals* totals) {
  OnFile on_file = wanted;
  on_file.rows = on_file.rows && model.layer_input != 0;
  if (on_file.rows &&
      !weightTypeOf(tensors.find(TensorRole::kLayerInputEmbedding).type, &on_file.row_type)) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED, "the layers' input embeddings have no kernel");
  }

  // Only the merge op of a split window depends on the cache: count with a split window. Low-bit latents need an op
  // that f16 latents do not.
  const CacheShape cache = {0, 0, 0, 1u << 16, 1u << 16};
  const ActivationLayout activations = layoutActivations(model, cache, 1, on_file);
  const IoLayout io = layoutIo(model, 1, 0, on_file);
  Plan counted;
  counted.on_file = on_file;
  counted.cache = cache;
  counted.formats.k = KvFormat::kInt4;
  WeightCounts weights;
  ORIEL_TRY(emitSteps(tensors, model, log, activations, io, &counted, &weights));
  *totals = PlanTotals();
  totals->weights_bytes = weights.bytes;
  totals->weight_segments = counted.weight_segments;
  totals->n_uploads = counted.n_uploads;
  totals->n_expert_layers = counted.n_expert_layers;
  totals->on_file = on_file;
  totals->on_file_bytes = counted.on_file_bytes;
  for (uint32_t i = 0; i < kStepLists; ++i) {
    totals->n_ops[i] = counted.n_ops[i];
  }
  totals->upload_half_bytes = uploadHalfBytes(totals->weights_bytes, weights.largest_group_bytes);
  totals->weights_read_bytes_per_token = weights.read_bytes_per_token;
  totals->head_read_bytes = weights.head_read_bytes;
  totals->draft_weights_bytes = weights.draft_bytes;
  totals->adapter_bytes = weights.adapter_bytes;
  if (counted.weight_segments > UINT8_MAX) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED, "the weights need %u GiB: use a smaller model",
                    counted.weight_segments);
  }
  return kOk;
}

Status buildPlan(const TensorIndex& tensors, const ModelDesc& model, const PlanTotals& totals,
                 const CacheShape& cache, const CacheFormats& formats, uint32_t chunk,
                 const Log& log, Arena* arena, Plan* plan) {
  *plan = Plan();
  plan->cache = cache;
  if (cache.sessions != nullptr) {
    plan->sessions = *cache.sessions;
    plan->cache.sessions = &plan->sessions;
  }
  plan->batch_rows = batchRows(cache, chunk);
  plan->formats = formats;
  plan->chunk_tokens = chunk;
  plan->on_file = totals.on_file;
  const ActivationLayout activations = layoutActivations(model, cache, chunk, totals.on_file);
  const IoLayout io =
      layoutIo(model, chunk, totals.upload_half_bytes, totals.on_file, topPlaces(cache, chunk));
  if (!cacheBytes(model, cache, formats, &plan->cache_bytes)) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "a window of %u tokens needs more than %llu bytes in one layer: ask for less",
                    cache.window, static_cast<unsigned long long>(kMaxBindingBytes));
  }
  for (const BufferRef& piece :
       {activations.residual, activations.qkv, activations.queries, activations.partials,
        activations.conv, activations.gate_up, activations.layer_inputs, activations.expert_gate_up,
        activations.expert_out, activations.query_heads, activations.latent_queries,
        activations.hidden, activations.prediction_sides[0], activations.prediction_sides[1],
        activations.sums, io.step, io.file_rows, io.picture_rows}) {
    if (piece.size_bytes > kMaxBindingBytes) {
      return log.fail(ORIEL_ERROR_UNSUPPORTED, "a chunk of %u tokens is too large: ask for less",
                      chunk);
    }
  }
  plan->activation_bytes = activations.bytes;
  plan->io_bytes = io.bytes;
  plan->device_step = activations.device_step;
  plan->logits = activations.logits;
  plan->kept_logits = activations.kept_logits;
  plan->output_rows = activations.output_rows;
  plan->n_views = model.n_views;
  plan->step = io.step;
  plan->step_ahead = io.step_ahead;
  plan->top = io.top;
  plan->draft_place = topPlaces(cache, chunk);
  plan->upload = io.upload;
  plan->picture_rows = io.picture_rows;
  plan->slots = io.slots;
  if (io.slots.size_bytes != 0) {
    plan->routes = io.routes;
  }
  plan->step_decode_bytes = io.step_ahead.size_bytes;
  plan->weights_bytes = totals.weights_bytes;
  plan->weights_read_bytes_per_token = totals.weights_read_bytes_per_token;

  plan->weight_segment_bytes = arena->take<uint64_t>(totals.weight_segments);
  plan->uploads = arena->take<Upload>(totals.n_uploads);
  plan->expert_layers = arena->take<ExpertsOnFile>(totals.n_expert_layers);
  for (uint32_t i = 0; i < kStepLists; ++i) {
    const uint32_t capacity = opCapacity(totals, static_cast<StepList>(i), plan->cache);
    plan->ops[i] = i == static_cast<uint32_t>(StepList::kOutputs)
                       ? plan->ops[static_cast<uint32_t>(StepList::kHead)]
                       : arena->take<Op>(capacity);
    plan->op_capacity += capacity;
  }
  WeightCounts weights;
  return emitSteps(tensors, model, log, activations, io, plan, &weights);
}

}  // namespace oriel_internal
