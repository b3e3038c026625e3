#include "cpu/ops.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "cpu/cpu_executor.h"
#include "cpu/kernels.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kPiecesPerThread = 4;   // of storing: a delayed thread takes fewer
constexpr uint32_t kAttentionPieces = 12;  // minimum for attention, for threads to share

/// Pieces of attention: blocks of tokens with one key head and some of the splits.
struct Division {
  uint32_t tokens;  ///< of a block
  uint32_t blocks;
  uint32_t at_once;  ///< splits that go together
  uint32_t shares;   ///< of splits
};

// `tokens`: the maximum that can share loaded keys and values.
Division divide(uint32_t tokens, uint32_t n_tokens, uint32_t n_kv_heads, uint32_t splits) {
  // A piece has as many tokens as can share loaded data, but there are pieces for several threads. The real
  // number of threads must not matter, because the pieces determine the order of additions.
  const uint64_t least = kAttentionPieces;
  Division pieces;
  pieces.tokens = tokens;
  while (pieces.tokens > 1 && ceilDiv(n_tokens, pieces.tokens) * n_kv_heads * splits < least) {
    pieces.tokens = (pieces.tokens + 1) / 2;
  }
  pieces.blocks = static_cast<uint32_t>(ceilDiv(n_tokens, pieces.tokens));
  // With fewer threads than splits, several splits go together, which saves the merge work.
  pieces.at_once = static_cast<uint32_t>(
      std::max<uint64_t>(1, uint64_t{pieces.blocks} * n_kv_heads * splits / (2 * least)));
  pieces.shares = static_cast<uint32_t>(ceilDiv(splits, pieces.at_once));
  return pieces;
}

// `apart`: divide each token as if it were alone.
Division divide(uint32_t tokens, uint32_t n_tokens, bool apart, uint32_t n_kv_heads,
                uint32_t splits) {
  Division pieces = divide(tokens, apart ? 1 : n_tokens, n_kv_heads, splits);
  if (apart) {
    pieces.tokens = 1;
    pieces.blocks = n_tokens;
  }
  return pieces;
}

}  // namespace

template <typename Append, typename Task>
void AttentionOps::append(Append kernel, const Task& task, uint32_t heads, uint32_t n_tokens,
                          uint32_t thread) {
  if (n_tokens > 1) {
    for (uint32_t t = pool_.claim(thread); t < n_tokens; t = pool_.claim(thread)) {
      kernel(task, t, 0, heads);
    }
    return;
  }
  const uint32_t share =
      static_cast<uint32_t>(ceilDiv(heads, uint64_t{pool_.size()} * kPiecesPerThread));
  const uint32_t pieces = static_cast<uint32_t>(ceilDiv(heads, share));
  for (uint32_t piece = pool_.claim(thread); piece < pieces; piece = pool_.claim(thread)) {
    // From the end: storing costs more than rotating.
    const uint32_t last = heads - piece * share;
    kernel(task, 0, last - std::min(share, last), last);
  }
}

void AttentionOps::ropeAppend(const RopeAppendTask& task, uint32_t n_tokens, uint32_t thread) {
  append(rope_append_, task, task.push.n_heads + 2 * task.push.n_kv_heads, n_tokens, thread);
}

void AttentionOps::attention(const AttentionTask& task, uint32_t thread) {
  const AttentionPush& p = task.push;
  const Division of = divide(attentionTokens(p.n_heads / p.n_kv_heads, p.head_dim), task.n_tokens,
                             task.apart, p.n_kv_heads, p.splits);
  const uint32_t pieces = of.blocks * p.n_kv_heads * of.shares;
  for (uint32_t piece = pool_.claim(thread); piece < pieces; piece = pool_.claim(thread)) {
    const uint32_t split = piece % of.shares * of.at_once;
    const uint32_t head = piece / of.shares % p.n_kv_heads;
    const uint32_t first = piece / of.shares / p.n_kv_heads * of.tokens;
    attend_(task, head, first, std::min(of.tokens, task.n_tokens - first), split,
            std::min(of.at_once, p.splits - split));
  }
}

void AttentionOps::latentAppend(const LatentAppendTask& task, uint32_t n_tokens, uint32_t thread) {
  append(latent_append_, task, task.push.n_heads + 1, n_tokens, thread);
}

// Divided as attention of one key head is.
void AttentionOps::latentAttention(const LatentAttentionTask& task, bool apart, uint32_t thread) {
  const LatentAttentionPush& p = task.push;
  const Division of = divide(latentTokens(p), task.n_tokens, apart, 1, p.splits);
  const uint32_t pieces = of.blocks * of.shares;
  for (uint32_t piece = pool_.claim(thread); piece < pieces; piece = pool_.claim(thread)) {
    const uint32_t split = piece % of.shares * of.at_once;
    const uint32_t first = piece / of.shares * of.tokens;
    attend_latents_(task, first, std::min(of.tokens, task.n_tokens - first), split,
                    std::min(of.at_once, p.splits - split));
  }
}

void AttentionOps::hadamard(const HadamardPush& p, float* rows, uint32_t n_tokens,
                            uint32_t thread) {
  for (uint32_t i = pool_.claim(thread); i < n_tokens * p.rows; i = pool_.claim(thread)) {
    hadamard_(p, rows + uint64_t{i / p.rows} * p.stride + i % p.rows * p.cols);
  }
}

namespace {

constexpr uint32_t kInputTokens = 16;     // of a piece, which share taps
constexpr uint32_t kOneTokenPieces = 4;   // for each thread
constexpr uint32_t kOneTokenRows = 8192;  // values of a state in a piece

uint32_t ceilOf(uint32_t value, uint32_t by) { return static_cast<uint32_t>(ceilDiv(value, by)); }

}  // namespace

void StateOps::inputs(const StateInputsTask& task, uint32_t thread) {
  const uint32_t parts = stateInputParts(task.push);
  if (task.n_tokens == 1) {
    const uint32_t share = ceilOf(parts, kOneTokenPieces * pool_.size());
    for (uint32_t at = pool_.claim(thread); at < ceilOf(parts, share); at = pool_.claim(thread)) {
      kernels_.inputs(task, at * share, std::min(parts, (at + 1) * share), 0, 1);
    }
    return;
  }
  const uint32_t pieces = ceilOf(task.n_tokens, kInputTokens);
  for (uint32_t at = pool_.claim(thread); at < pieces; at = pool_.claim(thread)) {
    kernels_.inputs(task, 0, parts, at * kInputTokens,
                    std::min(task.n_tokens, (at + 1) * kInputTokens));
  }
}

StateOps::ScanPieces StateOps::scanPieces(const StateScanPush& p, uint32_t n_tokens) {
  const uint32_t most =
      n_tokens == 1 ? std::max(kOneTokenRows / p.key_dim, 1u) : mostScanRows(p.key_dim);
  const uint32_t of_a_head = ceilOf(p.value_dim, most);
  return {of_a_head, static_cast<uint32_t>(alignUp(ceilOf(p.value_dim, of_a_head), kGroupRows)),
          p.heads * of_a_head};
}

void StateOps::scanPiece(const StateScanTask& task, const ScanPieces& pieces,
                         uint32_t index) const {
  const uint32_t value_dim = task.push.value_dim;
  const uint32_t first = index % pieces.of_a_head * pieces.rows;
  if (first < value_dim) {
    kernels_.scan(task, index / pieces.of_a_head, first, std::min(pieces.rows, value_dim - first));
  }
}

void StateOps::scan(const StateScanTask& task, uint32_t thread) {
  const ScanPieces pieces = scanPieces(task.push, task.n_tokens);
  for (uint32_t at = pool_.claim(thread); at < pieces.count; at = pool_.claim(thread)) {
    scanPiece(task, pieces, at);
  }
}

// ---- Ops that go together -----------------------------------------------------------------------

namespace {

// True if both read the same vectors, or with float weights columns of the same rows.
bool readTogether(const Op& op, const Op& next) {
  const BufferRef& a = op.bindings[kMatmulInput];
  const BufferRef& b = next.bindings[kMatmulInput];
  return samePlace(a, b) ||
         (readsFloats(op.weights) && readsFloats(next.weights) && a.arena == b.arena &&
          a.segment == b.segment && a.offset_bytes < b.offset_bytes &&
          a.offset_bytes + a.size_bytes == b.offset_bytes + b.size_bytes);
}

// True if they read together and do not write each other's inputs or outputs.
bool goTogether(const Op& op, const Op& next) {
  if (next.kind != OpKind::kMatmul || next.push.matmul.of_outputs != op.push.matmul.of_outputs ||
      !readTogether(op, next) || samePlace(next.bindings[kOpOut], op.bindings[kMatmulInput])) {
    return false;
  }
  return !samePlace(next.bindings[kOpOut], op.bindings[kOpOut]) ||
         opTraits(next.kind).columns(next).first >= opTraits(op.kind).columns(op).end;
}

bool readSameExpertInputs(const Op& op, const Op& next) {
  return next.kind == OpKind::kExpertMatmul &&
         samePlace(next.bindings[kMatmulInput], op.bindings[kMatmulInput]) &&
         next.push.expert_matmul.of_tokens == op.push.expert_matmul.of_tokens;
}

// Stacks come in the order of their columns, then of their experts.
bool expertsGoTogether(const Op& op, const Op& next) {
  if (!readSameExpertInputs(op, next) || readsFloats(next.weights) != readsFloats(op.weights) ||
      !samePlace(next.bindings[kExpertRoutes], op.bindings[kExpertRoutes]) ||
      samePlace(next.bindings[kOpOut], op.bindings[kMatmulInput]) ||
      !samePlace(next.bindings[kOpOut], op.bindings[kOpOut])) {
    return false;
  }
  const ExpertMatmulPush& a = op.push.expert_matmul;
  const ExpertMatmulPush& b = next.push.expert_matmul;
  if (a.units != b.units || a.n_experts != b.n_experts || a.has_slots != b.has_slots) {
    return false;
  }
  return b.out_first >= a.out_first + a.rows ||
         (b.out_first == a.out_first && b.rows == a.rows && b.first >= a.first + a.count);
}

}  // namespace

bool feedsMatmul(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t rows) {
  const Op& op = ops[n];
  return rows == 1 && n + 1 < n_ops && ops[n + 1].kind == OpKind::kMatmul &&
         samePlace(op.bindings[kOpOut], ops[n + 1].bindings[kMatmulInput]) &&
         opTraits(op.kind).makes_row(op);
}

uint32_t endOfMatmuls(const Op* ops, uint32_t n_ops, uint32_t first) {
  uint32_t end = first + 1;
  while (end < n_ops && goTogether(ops[end - 1], ops[end])) {
    ++end;
  }
  return end;
}

uint32_t endOfExperts(const Op* ops, uint32_t n_ops, uint32_t first, uint32_t most) {
  uint32_t end = first + 1;
  while (end < n_ops && end - first < most && expertsGoTogether(ops[end - 1], ops[end])) {
    ++end;
  }
  return end;
}

bool feedsExperts(const Op* ops, uint32_t n_ops, uint32_t n, uint32_t most) {
  const Op& op = ops[n];
  if (op.kind != OpKind::kGatedActivation || n + 1 >= n_ops ||
      ops[n + 1].kind != OpKind::kExpertMatmul) {
    return false;
  }
  const Op& next = ops[n + 1];
  const GatedActivationPush& made = op.push.gated_activation;
  const ExpertMatmulPush& read = next.push.expert_matmul;
  if (readsFloats(next.weights) || read.of_tokens != 0 || made.rows_per_token != read.n_used ||
      made.out_stride != read.in_stride ||
      !samePlace(op.bindings[kOpOut], next.bindings[kMatmulInput])) {
    return false;
  }
  const uint32_t end = endOfExperts(ops, n_ops, n + 1, most);
  return end == n_ops || !readSameExpertInputs(next, ops[end]);
}

namespace {

// In double, so that the choice between two close experts depends on the inputs only.
void scoresOf(const RoutePush& p, const float* in, double* scores) {
  if (p.sigmoid != 0) {
    for (uint32_t e = 0; e < p.n_experts; ++e) {
      scores[e] = 1.0 / (1.0 + std::exp(-static_cast<double>(in[e])));
    }
    return;
  }
  const double most = static_cast<double>(*std::max_element(in, in + p.n_experts));
  double sum = 0;
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    scores[e] = std::exp(static_cast<double>(in[e]) - most);
    sum += scores[e];
  }
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    scores[e] /= sum;
  }
}

// Excludes experts outside the best groups.
void leaveGroups(const RoutePush& p, double* values) {
  const uint32_t size = p.n_experts / p.groups;
  double groups[kMaxExpertGroups];
  for (uint32_t g = 0; g < p.groups; ++g) {
    double best[2] = {-HUGE_VAL, -HUGE_VAL};
    for (uint32_t e = g * size; e < (g + 1) * size; ++e) {
      best[1] = std::max(best[1], std::min(best[0], values[e]));
      best[0] = std::max(best[0], values[e]);
    }
    groups[g] = best[0] + (size > 1 ? best[1] : 0);
  }
  bool stays[kMaxExpertGroups] = {};
  for (uint32_t k = 0; k < p.used_groups; ++k) {
    const auto best = std::max_element(groups, groups + p.groups) - groups;
    stays[best] = true;
    groups[best] = -HUGE_VAL;
  }
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    values[e] = stays[e / size] ? values[e] : -HUGE_VAL;
  }
}

}  // namespace

void routeToken(const RoutePush& p, const float* in, const float* bias, uint32_t t,
                const Routes& routes) {
  double scores[kMaxExperts];
  double values[kMaxExperts];  // selection scores; -inf: already chosen
  scoresOf(p, in, scores);
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    values[e] = scores[e] + (bias != nullptr ? static_cast<double>(bias[e]) : 0.0);
  }
  if (p.groups > 1) {
    leaveGroups(p, values);
  }
  const uint64_t first = uint64_t{t} * p.n_used;
  double sum = 0;
  for (uint32_t k = 0; k < p.n_used; ++k) {
    const uint32_t best =
        static_cast<uint32_t>(std::max_element(values, values + p.n_experts) - values);
    routes.expert[first + k] = best;
    routes.weight[first + k] = static_cast<float>(scores[best]);
    sum += scores[best];
    values[best] = -HUGE_VAL;
  }
  const float divisor = p.normalised != 0
                            ? static_cast<float>(std::max(sum, static_cast<double>(kLeastRouteSum)))
                            : 1.0f;
  for (uint32_t k = 0; k < p.n_used; ++k) {
    routes.weight[first + k] = routes.weight[first + k] / divisor * p.scale;
  }
}

void sortRoutes(const SortRoutesPush& p, uint32_t n_tokens, const Routes& routes) {
  const uint32_t n = n_tokens * p.n_used;
  uint32_t* const begin = routes.begin;
  std::fill(begin, begin + p.n_experts + 1, 0u);
  for (uint32_t r = 0; r < n; ++r) {
    ++begin[routes.expert[r] + 1];
  }
  for (uint32_t e = 0; e < p.n_experts; ++e) {
    begin[e + 1] += begin[e];
  }
  // begin[e] advances through its places; afterwards each equals the beginning of the next.
  for (uint32_t r = 0; r < n; ++r) {
    const uint32_t place = begin[routes.expert[r]]++;
    routes.place[r] = place;
    routes.route_at[place] = r;
  }
  for (uint32_t e = p.n_experts; e > 0; --e) {
    begin[e] = begin[e - 1];
  }
  begin[0] = 0;
}

}  // namespace oriel_internal
