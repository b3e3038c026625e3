#include "plan/memory_layout.h"

#include <algorithm>

#include "model/adapters.h"
#include "model/model_desc.h"
#include "plan/op_list.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

// Limit of workgroups that share one head. Beyond it merging costs more than the split gains.
constexpr uint32_t kMaxSplits = 32;
// Smallest number of slots per workgroup.
constexpr uint32_t kMinSplitSlots = 256;
constexpr uint32_t kSplitGranularity = 64;
// Largest number of an encoder's texts in a step.
constexpr uint32_t kMaxTexts = 64;

// Rows of logits after the first use the memory of a body's vectors: as many rows as fit. The input rows (at the place
// of the body's normed vectors) follow in another form.
void layoutOutputs(const ModelDesc& model, uint32_t chunk, uint64_t body,
                   ActivationLayout* layout) {
  if (model.encoder) {
    const uint32_t stride = std::max(layout->embd_stride, layout->dense_stride);
    layout->head_staged = layout->stagedAt(layout->qkv, stride, layout->output_rows);
    return;
  }
  const uint64_t row_bytes = 4ull * model.n_vocab;
  const auto stagedBytes = [&](uint32_t rows) {
    return layout->stagedAt(layout->qkv, layout->embd_stride, rows).size_bytes;
  };
  const auto begin = [&](uint32_t rows) {
    return alignUp(std::max(body, layout->logits.offset_bytes + rows * row_bytes),
                   kBufferAlignment);
  };
  uint32_t rows = layout->output_rows;
  while (rows < chunk && begin(rows + 1) + stagedBytes(rows + 1) <= layout->bytes &&
         (rows + 1) * row_bytes <= kMaxBindingBytes) {
    ++rows;
  }
  layout->output_rows = rows;
  layout->logits = layout->logits.resized(rows * row_bytes);
  layout->head_staged = {ArenaKind::kActivations, 0, begin(rows), stagedBytes(rows)};
}

// Places the vectors of latent attention from `begin` on; returns their end.
uint64_t layoutLatents(const ModelDesc& model, uint32_t chunk, uint64_t most_shares, uint64_t begin,
                       ActivationLayout* layout) {
  uint32_t compressed = 0, heads = 0, queries = 0, sums = 0, attended = 0, partials = 0, gates = 0;
  for (uint32_t k = 0; k < model.n_kinds; ++k) {
    const LayerKind& kind = model.kinds[k];
    if (!kind.isLatent()) {
      continue;
    }
    const uint32_t others = kind.n_heads - 1;
    compressed = std::max(
        {compressed, kind.query_latent_dim + kind.latentCols(), paddedCols(kind.query_latent_dim)});
    heads =
        std::max({heads, kind.queryCols(), others * kind.head_dim + paddedCols(kind.plainDim())});
    queries = std::max(queries, kind.n_heads * (kind.latent_dim + 2 * kind.rope_dim));
    sums = std::max(sums, others * kind.latent_dim + paddedCols(kind.latent_dim));
    attended = std::max(attended, kind.attendedCols());
    partials = std::max(partials, kind.n_heads * (kind.latent_dim + kPartialExtra));
    gates = std::max(gates, kind.gateCols());
    layout->padded = layout->padded || kind.query_latent_dim % kUnit != 0 ||
                     kind.plainDim() % kUnit != 0 || kind.latent_dim % kUnit != 0 ||
                     kind.attendedCols() % kUnit != 0;
  }
  if (sums == 0) {
    return begin;
  }
  layout->compressed_stride = paddedCols(compressed);
  layout->query_heads_stride = paddedCols(heads);
  layout->query_stride = queries;
  layout->sums_stride = paddedCols(sums);
  layout->attended_stride = paddedCols(attended);
  const uint64_t vector = 4ull * chunk;
  PieceCounter pieces(ArenaKind::kActivations, begin);
  layout->compressed = pieces.take(vector * layout->compressed_stride);
  layout->query_heads = pieces.take(vector * layout->query_heads_stride);
  PieceCounter after(ArenaKind::kActivations, begin);
  layout->sums = after.take(vector * layout->sums_stride);
  PieceCounter rest(ArenaKind::kActivations, std::max(pieces.used(), after.used()));
  layout->latent_queries = rest.take(vector * layout->query_stride);
  layout->attended = rest.take(vector * layout->attended_stride);
  layout->partials = rest.take(4ull * most_shares * partials);
  const uint64_t end_of_rest = rest.used();
  const auto endOfStaged = [&](const BufferRef& piece, uint32_t stride) {
    const BufferRef staged = layout->stagedAt(piece, stride, chunk);
    return staged.offset_bytes + staged.size_bytes;
  };
  uint64_t end = std::max({end_of_rest, endOfStaged(layout->latent_queries, layout->embd_stride),
                           endOfStaged(layout->latent_queries, layout->compressed_stride),
                           endOfStaged(layout->sums, layout->attended_stride)});
  // After all staged inputs of products, because gates are computed first.
  layout->gates_stride = paddedCols(gates);
  PieceCounter last(ArenaKind::kActivations, end);
  layout->gates = last.take(vector * layout->gates_stride);
  return last.used();
}

uint64_t visibleSlots(const CacheShape& cache) {
  return static_cast<uint64_t>(cache.sinks) + cache.window;
}

// At least decodeSplit's splits. The result never falls when the window grows, so that bytes grow with the window: the
// budgeter bisects.
uint64_t mostSplits(const CacheShape& cache) {
  return std::min<uint64_t>(ceilDiv(visibleSlots(cache), kMinSplitSlots), kMaxSplits);
}

// The pieces of a prediction block that the body leaves alone.
void layoutPrediction(const ModelDesc& model, const CacheShape& cache, uint32_t chunk,
                      PieceCounter* kept, ActivationLayout* layout) {
  const uint64_t vector = 4ull * chunk;
  layout->draft_in_stride = paddedCols(2 * model.n_embd);
  layout->draft_stride = paddedCols(model.n_embd);
  // Rows are bound one by one.
  layout->hidden_stride =
      static_cast<uint32_t>(alignUp(4ull * model.n_embd, kBufferAlignment) / sizeof(float));
  layout->draft_in = kept->take(vector * layout->draft_in_stride);
  layout->draft_residual = kept->take(vector * layout->draft_stride);
  layout->hidden = kept->take(4ull * HiddenRows{chunk}.count() * layout->hidden_stride);
  const Memory memory = predictionMemory(model, cache);
  for (uint32_t side = 0; side < 2; ++side) {
    layout->prediction_sides[side] = kept->take(memory.sideBytes(side));
  }
}

}  // namespace

Memory predictionMemory(const ModelDesc& model, const CacheShape& cache) {
  return memoryOf(model, cache, CacheFormats(), model.n_layers);
}

AttentionSplit decodeSplit(const CacheShape& cache) {
  const uint64_t slots = visibleSlots(cache);
  const uint64_t share = alignUp(ceilDiv(slots, kMaxSplits), kSplitGranularity);
  AttentionSplit split;
  split.split_slots = static_cast<uint32_t>(std::max<uint64_t>(share, kMinSplitSlots));
  split.splits = static_cast<uint32_t>(ceilDiv(slots, split.split_slots));
  return split;
}

RotationTables rotationTables(const ModelDesc& model) {
  RotationTables tables;
  for (uint8_t rope = 0; rope < kMaxRopes; ++rope) {
    if (rope != kMainRope && !model.usesRope(rope)) {
      continue;
    }
    RotationTables::Of& of = tables.ropes[rope];
    const auto take = [&] {
      const uint32_t word = tables.words;
      tables.words += model.ropes[rope].dims;
      return word;
    };
    of.keys = of.queries = of.sinks = take();
    if (rope == kMainRope) {
      of.queries = model.query_temperature != 0 ? take() : of.keys;
      of.sinks = take();
    }
  }
  tables.gates = tables.words;
  tables.words += model.adapters != nullptr ? model.adapters->gateWords() : 0;
  return tables;
}

ExpertLimits expertLimits(const ModelDesc& model) {
  ExpertLimits limits;
  for (uint32_t k = 0; k < model.n_kinds; ++k) {
    const Experts& experts = model.kinds[k].experts;
    limits.count = std::max(limits.count, experts.count);
    limits.used = std::max(limits.used, experts.used);
    limits.n_ff = std::max(limits.n_ff, experts.n_ff);
    const Experts& values = model.kinds[k].value_experts;
    limits.count = std::max(limits.count, values.count);
    limits.used = std::max(limits.used, values.used);
    limits.n_ff = std::max(limits.n_ff, values.count != 0 ? model.kinds[k].kvCols() : 0);
  }
  return limits;
}

ActivationLayout layoutActivations(const ModelDesc& model, const CacheShape& cache, uint32_t chunk,
                                   const OnFile& on_file) {
  ActivationLayout layout;
  uint32_t qkv_cols = 0;
  uint32_t query_cols = 0;
  uint32_t partial_cols = 0;
  uint32_t state_cols = 0;
  uint32_t mixed_cols = 0;
  uint32_t value_cols = 0;
  bool has_convs = false;
  for (uint32_t k = 0; k < model.n_kinds; ++k) {
    const LayerKind& kind = model.kinds[k];
    if (kind.isLatent()) {
      continue;
    }
    qkv_cols = std::max(qkv_cols, kind.queryCols() + 2 * kind.kvCols() + kind.gateCols());
    const StateShape& state = kind.state;
    // The gated delta rule has a factor per head, and like Mamba-2 decays.
    const uint32_t gates = state.decays() + state.heads;
    state_cols = std::max(state_cols, state.channels() + state.valueCols() + gates);
    mixed_cols = std::max(mixed_cols, state.channels() + gates);
    value_cols = std::max(value_cols, state.valueCols());
    query_cols = std::max(query_cols, kind.queryCols());
    partial_cols = std::max(partial_cols, kind.n_heads * (kind.head_dim + kPartialExtra));
    has_convs = has_convs || kind.mixer == Mixer::kShortConv;
  }
  bool has_branches = false;
  bool routes_first = false;
  bool has_value_experts = false;
  uint32_t shared_gate = 0;
  for (uint32_t k = 0; k < model.n_kinds; ++k) {
    const LayerKind& kind = model.kinds[k];
    has_branches = has_branches || kind.hasBranches();
    routes_first = routes_first || kind.experts.routed_first;
    has_value_experts = has_value_experts || kind.value_experts.count != 0;
    shared_gate = kind.experts.shared_gate ? 1 : shared_gate;
  }
  uint32_t n_ff = model.n_ff;
  const DraftDesc& draft = model.draft;
  for (uint32_t i = 0; i < draft.n_layers; ++i) {
    const DraftDesc::Layer& layer = draft.layers[i];
    const uint32_t head_dim = model.kind(layer.memory_of).head_dim;
    qkv_cols = std::max(qkv_cols, layer.n_heads * head_dim);
    query_cols = std::max(query_cols, layer.n_heads * head_dim);
    partial_cols = std::max(partial_cols, layer.n_heads * (head_dim + kPartialExtra));
    n_ff = std::max(n_ff, layer.n_ff);
    layout.draft_in_stride = paddedCols(2 * model.n_embd);
    layout.draft_stride = paddedCols(draft.n_embd);
  }
  layout.embd_stride = paddedCols(model.n_embd);
  layout.qkv_stride = paddedCols(qkv_cols);
  layout.query_stride = 2 * query_cols;
  layout.attended_stride = paddedCols(query_cols);
  layout.conv_stride = has_convs ? paddedCols(3 * model.n_embd) : 0;
  layout.state_in_stride = paddedCols(state_cols);
  layout.state_mixed_stride = paddedCols(mixed_cols);
  layout.state_out_stride = paddedCols(value_cols);
  layout.gate_up_stride = paddedCols(2 * n_ff + shared_gate);
  layout.gated_stride = paddedCols(std::max(n_ff, model.layer_input));
  if (model.layer_input != 0) {
    layout.layer_inputs_stride =
        paddedCols(model.n_layers * model.layer_input) + paddedCols(model.layer_input);
  }
  const ExpertLimits experts = expertLimits(model);
  const uint64_t routes = uint64_t{chunk} * experts.used;
  layout.scores_stride = paddedCols(experts.count);
  layout.expert_gate_up_stride = paddedCols(2 * experts.n_ff);
  layout.expert_gated_stride = paddedCols(experts.n_ff);
  const uint64_t vector = 4ull * chunk;

  PieceCounter kept(ArenaKind::kActivations, 0);
  layout.device_step = kept.take(stepBytes(model, chunk, chunk));
  layout.residual = kept.take(vector * layout.embd_stride);
  layout.normed = layout.head_normed = kept.take(vector * layout.embd_stride);
  layout.layer_inputs = kept.take(vector * layout.layer_inputs_stride);
  if (has_branches) {
    layout.beside = kept.take(vector * layout.embd_stride);
    layout.branch = kept.take(vector * layout.embd_stride);
  }
  if (routes_first) {
    layout.scores = kept.take(vector * layout.scores_stride);
  }
  if (const Adapters* const adapters = model.adapters; adapters != nullptr) {
    const auto columns = [](uint32_t rank) {
      return static_cast<uint32_t>(alignUp(rank, kThinColumns));
    };
    layout.thin_stride = MatrixParts::kMost * columns(adapters->most_rank);
    layout.thin_expert_stride = columns(adapters->most_expert_rank);
    layout.thin =
        kept.take(std::max(vector * layout.thin_stride, 4 * routes * layout.thin_expert_stride));
    layout.thin_gated = kept.take(vector * layout.thin_stride);
  }
  if (model.predicts) {
    layoutPrediction(model, cache, chunk, &kept, &layout);
  } else {
    layout.draft_in = kept.take(4ull * layout.draft_in_stride);
    layout.draft_residual = kept.take(4ull * layout.draft_stride);
    layout.draft_normed = kept.take(4ull * layout.draft_stride);
  }
  const uint32_t batch = batchRows(cache, chunk);
  const uint32_t sessions = cache.sessionCount();
  if (model.encoder) {
    layout.output_rows = std::min(chunk, kMaxTexts);
    layout.dense_stride = paddedCols(model.dense);
    layout.dense = kept.take(4ull * layout.output_rows * layout.dense_stride);
    layout.logits = kept.take(4ull * layout.output_rows * model.outputCols());
  } else {
    layout.top_keys = kept.take(4ull * batch * topBlocks(model.n_vocab));
    if (sessions > 1) {
      layout.kept_logits = kept.take(4ull * sessions * model.n_vocab);
    }
    layout.logits = kept.take(4ull * model.n_vocab);
  }

  PieceCounter attention(ArenaKind::kActivations, kept.used());
  layout.qkv = attention.take(vector * layout.qkv_stride);
  layout.queries = attention.take(vector * layout.query_stride);
  layout.attended = attention.take(vector * layout.attended_stride);
  layout.partials = attention.take(4ull * batch * mostSplits(cache) * partial_cols);

  PieceCounter convolution(ArenaKind::kActivations, kept.used());
  layout.conv = convolution.take(vector * layout.conv_stride);
  layout.convolved = convolution.take(has_convs ? vector * layout.embd_stride : 0);

  PieceCounter states(ArenaKind::kActivations, kept.used());
  layout.state_in = states.take(vector * layout.state_in_stride);
  layout.state_mixed = states.take(vector * layout.state_mixed_stride);
  layout.state_out = states.take(vector * layout.state_out_stride);

  PieceCounter feed_forward(ArenaKind::kActivations, kept.used());
  layout.gate_up = feed_forward.take(vector * layout.gate_up_stride);
  layout.gated = feed_forward.take(vector * layout.gated_stride);

  // For experts that make values: they run while queries and keys are kept.
  PieceCounter mixture(ArenaKind::kActivations, has_value_experts ? attention.used() : kept.used());
  if (experts.count != 0 && !routes_first) {
    layout.scores = mixture.take(vector * layout.scores_stride);
  }
  if (experts.count != 0) {
    if (on_file.expert_slots == 0 || has_value_experts) {
      layout.routes = mixture.take(4 * routeWords(static_cast<uint32_t>(routes), experts.count));
    }
    layout.expert_gate_up = mixture.take(4 * routes * layout.expert_gate_up_stride);
    layout.expert_gated = mixture.take(4 * routes * layout.expert_gated_stride);
    layout.expert_out = mixture.take(4 * routes * layout.embd_stride);
  }

  layout.padded = layout.embd_stride != model.n_embd || paddedCols(model.n_ff) != model.n_ff ||
                  layout.attended_stride != query_cols;
  for (uint32_t k = 0; k < model.n_kinds; ++k) {
    // A kind with shorter rows leaves values of another kind in the padding.
    const LayerKind& kind = model.kinds[k];
    layout.padded = layout.padded || kind.n_ff % kUnit != 0 ||
                    (!kind.isLatent() && kind.queryCols() % kUnit != 0) ||
                    kind.experts.n_ff % kUnit != 0 || kind.experts.latent % kUnit != 0 ||
                    kind.state.valueCols() % kUnit != 0 || model.layer_input % kUnit != 0 ||
                    model.dense % kUnit != 0;
  }
  const uint64_t latents_end =
      layoutLatents(model, chunk, batch * mostSplits(cache), kept.used(), &layout);
  // The staged inputs of the other products are shorter than this piece.
  const auto endOfStaged = [&](const BufferRef& piece) {
    const BufferRef staged = layout.stagedAt(piece, layout.embd_stride, chunk);
    return staged.offset_bytes + staged.size_bytes;
  };
  const BufferRef staged_pair = layout.stagedAt(layout.queries, layout.draft_in_stride, chunk);
  const uint64_t pairs_end = model.predicts ? staged_pair.offset_bytes + staged_pair.size_bytes : 0;
  const uint64_t end = std::max(
      {attention.used(), pairs_end, latents_end, convolution.used(), states.used(),
       feed_forward.used(), mixture.used(), value_cols != 0 ? endOfStaged(layout.state_mixed) : 0,
       experts.count != 0 ? endOfStaged(layout.expert_gated) : 0, endOfStaged(layout.queries),
       endOfStaged(layout.gated), has_convs ? endOfStaged(layout.convolved) : 0});
  // A guess's logits use the place of the second row of a batch's logits.
  const uint64_t row_bytes = 4ull * model.n_vocab;
  if (model.makesGuesses()) {
    layout.draft_logits = layout.logits.resized(row_bytes);
    layout.draft_logits.offset_bytes =
        alignUp(layout.logits.offset_bytes + row_bytes, kBufferAlignment);
  }
  // All logits of a batch are needed at once.
  layout.output_rows = model.encoder ? layout.output_rows : batch;
  const uint64_t texts_end =
      model.encoder
          ? layout.qkv.offset_bytes +
                layout
                    .stagedAt(layout.qkv, std::max(layout.embd_stride, layout.dense_stride),
                              layout.output_rows)
                    .size_bytes
          : 0;
  const uint64_t outputs_end =
      alignUp(layout.logits.offset_bytes + 4ull * batch * model.n_vocab, kBufferAlignment) +
      layout.stagedAt(layout.qkv, layout.embd_stride, batch).size_bytes;
  const uint64_t draft_end =
      model.makesGuesses() ? layout.draft_logits.offset_bytes + row_bytes : 0;
  layout.bytes =
      alignUp(std::max({end, draft_end, texts_end, batch > 1 && !model.encoder ? outputs_end : 0}),
              kArenaGranularity);
  layoutOutputs(model, chunk, kept.used(), &layout);
  if (sessions == 1 || model.encoder) {
    layout.kept_logits = layout.logits.resized(4ull * model.outputCols());
  }
  return layout;
}

BufferRef ActivationLayout::stagedAt(const BufferRef& piece, uint32_t stride,
                                     uint32_t tokens) const {
  return piece.resized(padded ? 0 : 4ull * kStagedUnitWords * (stride / kUnit) * tokens);
}

uint64_t picturePartBytes(const ModelDesc& model, uint32_t chunk) {
  return alignUp(weightGeometry(WeightType::kF32, model.n_embd).sliceBytes(chunk),
                 kBufferAlignment);
}

IoLayout layoutIo(const ModelDesc& model, uint32_t chunk, uint64_t upload_half,
                  const OnFile& on_file, uint32_t tops) {
  PieceCounter pieces(ArenaKind::kIo, 0);
  IoLayout layout;
  layout.step = pieces.take(stepBytes(model, chunk, chunk));
  layout.step_ahead = pieces.take(stepBytes(model, chunk, 1));
  tops += model.makesGuesses() ? 1 : 0;
  layout.top = pieces.take(uint64_t{tops} * sizeof(TopTokens));
  // All logits reach the host through the upload ring.
  layout.upload = pieces.take(std::max<uint64_t>(2 * upload_half, 4ull * model.outputCols()));
  layout.upload = layout.upload.resized(2 * upload_half);
  if (on_file.rows && model.layer_input != 0) {
    const uint32_t cols = model.n_layers * model.layer_input;
    layout.file_rows = pieces.take(weightGeometry(on_file.row_type, cols).sliceBytes(chunk));
  }
  if (model.pictures != nullptr) {
    layout.picture_rows = pieces.take(model.pictures->parts * picturePartBytes(model, chunk));
  }
  const ExpertLimits experts = expertLimits(model);
  if (on_file.expert_slots != 0 && experts.count != 0) {
    layout.routes = pieces.take(4 * routeWords(chunk * experts.used, experts.count));
    layout.slots = pieces.take(4ull * experts.count);
  }
  layout.bytes = alignUp(pieces.used(), kArenaGranularity);
  return layout;
}

uint64_t prefixBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats) {
  uint64_t bytes = 0;
  forEachMemory(model, sessionCache(cache, cache.sessions->count), formats,
                [&](const Memory& memory) {
                  const CacheShape& shape = memory.shape;
                  const uint64_t vector = 4ull * kvValueWords(KvFormat::kF16, shape.head_dim);
                  bytes += memory.seen.kind == ViewKind::kSession
                               ? memory.sides() * vector * shape.n_kv_heads * shape.sinkRoom()
                               : memory.slotBytes() * shape.ring;
                });
  return bytes;
}

bool cacheBytes(const ModelDesc& model, const CacheShape& cache, const CacheFormats& formats,
                uint64_t* bytes) {
  uint64_t used = 0;
  uint64_t largest = 0;
  forEachPlacedMemory(model, cache, formats, [&](const Memory& memory, const BufferRef(&sides)[2]) {
    for (uint32_t side = 0; side < memory.sides(); ++side) {
      const uint64_t size = memory.sideBytes(side);
      largest = std::max(largest, size);
      const uint64_t segment = sides[side].segment;
      used = std::max(used, segment * kMaxAllocationBytes + sides[side].offset_bytes + size);
    }
  });
  *bytes = alignUp(used, kArenaGranularity);
  return largest <= kMaxBindingBytes && cacheSegments(*bytes) <= UINT8_MAX;
}

}  // namespace oriel_internal
