#include "exec/cache_bytes.h"

#include "plan/memory_layout.h"

namespace oriel_internal {

SlotRows sinkRows(const CacheShape& shape) {
  return {0, valueBytes(KvFormat::kF16, shape.head_dim)};
}

SlotRows ringRows(KvFormat format, const CacheShape& shape) {
  return {4 * sideLayout(format, shape).ring_word, valueBytes(format, shape.head_dim)};
}

SlotRows scaleRows(KvFormat format, const CacheShape& shape) {
  return {4 * sideLayout(format, shape).scales_word, scaleBytes(format, shape.head_dim)};
}

BufferRef logitsPlace(const Plan& plan, uint32_t session) {
  const bool several = plan.sessionCount() > 1;
  const BufferRef& rows = several ? plan.kept_logits : plan.logits;
  const uint64_t bytes = rows.size_bytes / (several ? plan.sessionCount() : plan.output_rows);
  return rows.part(several ? session * bytes : 0, bytes);
}

Status sendCopy(const Plan& plan, Executor* executor, const BufferRef& to, const void* from) {
  return sendBytes(plan, executor, to, [&](void* piece, uint64_t done, uint64_t bytes) -> Status {
    std::memcpy(piece, static_cast<const uint8_t*>(from) + done, static_cast<size_t>(bytes));
    return kOk;
  });
}

}  // namespace oriel_internal
