#include "cpu/state_ops.h"

#include <algorithm>

#include "base/checked.h"

namespace oriel_internal {
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

}  // namespace oriel_internal
