#include "exec/cache_bytes.h"

#include "kv/window.h"
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

namespace {

/// Collects pieces, and copies them when its room is full.
class Copier {
 public:
  Copier(void* room, size_t room_bytes, Executor* executor)
      : pieces_(static_cast<CopyPiece*>(room)),
        capacity_(room_bytes / sizeof(CopyPiece)),
        executor_(executor) {}

  void add(const BufferRef& from, const BufferRef& to) {
    if (!status_.ok() || from.size_bytes == 0) {
      return;
    }
    if (count_ == capacity_) {
      status_ = finish();
    }
    pieces_[count_++] = {from, to};
  }
  Status finish() {
    const size_t count = count_;
    count_ = 0;
    return !status_.ok() || count == 0 ? status_ : executor_->copy(pieces_, count);
  }

 private:
  CopyPiece* pieces_;
  size_t capacity_;
  Executor* executor_;
  size_t count_ = 0;
  Status status_ = kOk;
};

// Calls visit(slot in `from`, slot in `to`, count) for tokens that are contiguous in both rings.
template <typename Visit>
void forEachRun(const CacheShape& from, const CacheShape& to, uint64_t first, uint64_t end,
                const Visit& visit) {
  const uint32_t held = std::min(from.ring, to.ring);
  for (uint64_t t = std::max(first, end - std::min<uint64_t>(end, held)); t < end;) {
    const uint64_t a = SlidingWindow(from).slot(t) - from.sinkRoom();
    const uint64_t b = SlidingWindow(to).slot(t) - to.sinkRoom();
    const uint64_t count = std::min({end - t, from.ring - a, to.ring - b});
    visit(static_cast<uint32_t>(a), static_cast<uint32_t>(b), count);
    t += count;
  }
}

void copySide(const BufferRef& side, KvFormat format, const CacheShape& from, const CacheShape& to,
              const MemoryCopy& what, Copier* copier) {
  for (uint32_t head = 0; head < from.n_kv_heads; ++head) {
    if (what.sinks && from.sinks + from.recalled != 0) {
      const uint64_t sinks = std::min<uint64_t>(what.tokens.sinks, from.sinks + from.recalled);
      const SlotRows rows = sinkRows(from);
      copier->add(rows.of(side, from.sinkRow(head, 0), sinks),
                  rows.of(side, to.sinkRow(head, 0), sinks));
    }
    // Without sinks, the first tokens have no special slots.
    const uint64_t first = from.sinks != 0 ? std::max<uint64_t>(what.tokens.first, from.sinks) : 0;
    forEachRun(from, to, first, std::max(first, what.tokens.end),
               [&](uint32_t a, uint32_t b, uint64_t count) {
                 for (const SlotRows& rows : {ringRows(format, from), scaleRows(format, from)}) {
                   copier->add(rows.of(side, from.ringRow(head, a), count),
                               rows.of(side, to.ringRow(head, b), count));
                 }
               });
  }
}

}  // namespace

void sessionPieces(const Plan& plan, const ModelDesc& model, const CacheShape& cache,
                   bool with_sinks, BufferRef* pieces, size_t capacity, size_t* count) {
  *count = 0;
  const auto add = [&](const BufferRef& piece) {
    if (piece.size_bytes != 0 && (*count)++ < capacity) {
      pieces[*count - 1] = piece;
    }
  };
  const bool sinks_too = with_sinks || !cache.sharesSinks();
  forEachPlacedMemory(
      model, cache, plan.formats, [&](const Memory& memory, const BufferRef(&sides)[2]) {
        const CacheShape& shape = memory.shape;
        if (memory.isWords()) {
          const SlotRows slots = wordRows(shape);
          add(slots.of(sides[0], shape.first_ring, shape.ring));
          return;
        }
        for (uint32_t side = 0; side < memory.sides(); ++side) {
          const uint64_t heads = shape.n_kv_heads;
          const KvFormat format = memory.formats[side];
          if (sinks_too) {
            add(sinkRows(shape).of(sides[side], shape.sinkRow(0, 0), heads * shape.sinkRoom()));
          }
          for (const SlotRows& rows : {ringRows(format, shape), scaleRows(format, shape)}) {
            add(rows.of(sides[side], shape.ringRow(0, 0), heads * shape.ring));
          }
        }
      });
  if (plan.sessionCount() > 1 && cache.session < plan.sessionCount()) {
    const auto rowOf = [&](const BufferRef& rows) {
      const uint64_t bytes = rows.size_bytes / plan.sessionCount();
      return rows.part(cache.session * bytes, bytes);
    };
    add(rowOf(plan.kept_logits));
    add(rowOf(plan.top));
  }
}

Status copyMemory(const Plan& plan, const ModelDesc& model, const MemoryCopy& what, void* room,
                  size_t room_bytes, Executor* executor) {
  Copier copier(room, room_bytes, executor);
  forEachPlacedMemory(
      model, what.from, plan.formats, [&](const Memory& memory, const BufferRef(&sides)[2]) {
        if (what.beside_sinks && memory.seen.kind == ViewKind::kSession) {
          return;
        }
        const CacheShape& from = memory.shape;
        CacheShape to = viewShape(memory.seen, what.to);
        to.n_kv_heads = from.n_kv_heads;
        to.head_dim = from.head_dim;
        const SlotRows slots = wordRows(from);
        switch (memory.kind) {
          case MemoryKind::kKeysValues:
          case MemoryKind::kLatent:
            for (uint32_t side = 0; side < memory.sides(); ++side) {
              copySide(sides[side], memory.formats[side], from, to, what, &copier);
            }
            break;
          case MemoryKind::kColumns:
            forEachRun(from, to, 0, what.tokens.end, [&](uint32_t a, uint32_t b, uint64_t count) {
              copier.add(slots.of(sides[0], from.first_ring + a, count),
                         slots.of(sides[0], to.first_ring + b, count));
            });
            break;
          case MemoryKind::kState:
            copier.add(slots.of(sides[0], from.first_ring + what.from_state, 1),
                       slots.of(sides[0], to.first_ring, 1));
            break;
        }
      });
  return copier.finish();
}

}  // namespace oriel_internal
