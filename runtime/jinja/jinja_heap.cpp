#include "jinja/jinja_value.h"

#include <algorithm>
#include <new>

namespace oriel_internal::jinja {
namespace {

constexpr size_t kGrain = 16;
constexpr size_t kMostSmall = 512;
constexpr size_t kLeastLarge = kMostSmall + kGrain;
constexpr size_t kSlabBytes = 4096 - kGrain;
constexpr size_t kRegionBytes = 16 * 1024 - 4 * kGrain;
constexpr size_t kMostRegionBytes = 256 * 1024 - 4 * kGrain;
constexpr size_t kScratchHeaders = 4 * kGrain;
constexpr size_t kMostBytes = size_t{1} << 31;
constexpr uint32_t kLeastBits = 9;  // size classes of large blocks start here
constexpr uint32_t kMostLooks = 16;
constexpr uint64_t kUnitsOfPiece = 32;  // to take and return it

uint32_t bitsOf(size_t value) {
  uint32_t bits = 0;
  for (; value != 0; value >>= 1) {
    ++bits;
  }
  return bits;
}

}  // namespace

size_t Heap::roundUp(size_t bytes) {
  return bytes == 0 ? kGrain : (bytes + kGrain - 1) / kGrain * kGrain;
}

// Four classes per octave, by the smallest size in a class.
uint32_t Heap::largeClass(size_t bytes) {
  const uint32_t octave = bitsOf(bytes) - 1;
  const uint32_t at = (octave - kLeastBits) * 4 + ((bytes >> (octave - 2)) & 3);
  return at < kLargeClasses ? at : kLargeClasses - 1;
}

Heap::Block* Heap::blockAfter(Block* block) {
  return reinterpret_cast<Block*>(reinterpret_cast<uint8_t*>(block) + block->bytes);
}

void* Heap::take(size_t bytes) {
  if (!spend(kUnitsOfPiece)) {
    return nullptr;
  }
  if (bytes > kMostBytes) {
    return scratch_->takeText(SIZE_MAX);  // records the refusal
  }
  const size_t rounded = roundUp(bytes);
  return rounded <= kMostSmall ? takeSmall(rounded) : takeLarge(rounded);
}

void* Heap::takeSmall(size_t rounded) {
  Small** const first = &small_[rounded / kGrain - 1];
  if (Small* const piece = *first; piece != nullptr) {
    *first = piece->next;
    return piece;
  }
  if (slab_left_ < rounded) {
    if (slab_left_ > 0) {
      keepSmall(slab_, slab_left_);
    }
    slab_ = static_cast<uint8_t*>(takeLarge(kSlabBytes));
    slab_left_ = slab_ != nullptr ? kSlabBytes : 0;
    if (slab_ == nullptr) {
      return nullptr;
    }
  }
  void* const piece = slab_;
  slab_ += rounded;
  slab_left_ -= rounded;
  return piece;
}

void Heap::keepSmall(void* piece, size_t rounded) {
  Small** const first = &small_[rounded / kGrain - 1];
  *first = new (piece) Small{*first};
}

void* Heap::takeLarge(size_t rounded) {
  const size_t bytes = rounded + sizeof(Block);
  FreeBlock* block = findFree(bytes);
  if (block == nullptr) {
    block = addRegion(bytes);
  }
  if (block == nullptr) {
    return nullptr;
  }
  removeFree(block);
  block->free = false;
  cut(block, bytes);
  return reinterpret_cast<uint8_t*>(block) + sizeof(Block);
}

// Looks at a few blocks of its own class; in higher classes every block fits.
Heap::FreeBlock* Heap::findFree(size_t bytes) {
  const uint32_t own = largeClass(bytes);
  uint32_t looks = 0;
  for (FreeBlock* block = large_[own]; block != nullptr && looks < kMostLooks; ++looks) {
    if (block->bytes >= bytes) {
      return block;
    }
    block = block->next;
  }
  for (uint32_t at = own + 1; at < kLargeClasses; ++at) {
    if (large_[at] != nullptr && large_[at]->bytes >= bytes) {
      return large_[at];
    }
  }
  return nullptr;
}

Heap::FreeBlock* Heap::addRegion(size_t bytes) {
  const size_t wished = std::clamp(regions_bytes_ / 2, kRegionBytes, kMostRegionBytes);
  const size_t least = bytes + bytes / 4;  // growing strings can extend in place
  const size_t left = scratch_->leftBytes() / kGrain * kGrain;
  size_t usable = roundUp(least > wished ? least : wished);
  if (usable + kScratchHeaders > left) {
    usable = bytes;
  }
  regions_bytes_ += usable;
  char* const memory = scratch_->takeText(usable + sizeof(Block));
  if (memory == nullptr) {
    return nullptr;
  }
  Block* const block = new (memory) Block{static_cast<uint32_t>(usable), 0, false};
  new (memory + usable) Block{sizeof(Block), static_cast<uint32_t>(usable), false};
  addFree(block);
  return static_cast<FreeBlock*>(block);
}

// Returns the part of a block beyond `bytes`, if it is large enough.
void Heap::cut(Block* block, size_t bytes) {
  const size_t rest = block->bytes - bytes;
  if (rest < kLeastLarge + sizeof(Block)) {
    return;
  }
  block->bytes = static_cast<uint32_t>(bytes);
  Block* const other = new (blockAfter(block))
      Block{static_cast<uint32_t>(rest), static_cast<uint32_t>(bytes), false};
  blockAfter(other)->before = other->bytes;
  giveLarge(other);
}

void Heap::addFree(Block* block) {
  FreeBlock* const added = static_cast<FreeBlock*>(block);
  FreeBlock** const first = &large_[largeClass(block->bytes)];
  added->free = true;
  added->next = *first;
  added->previous = nullptr;
  if (*first != nullptr) {
    (*first)->previous = added;
  }
  *first = added;
}

void Heap::removeFree(FreeBlock* block) {
  if (block->next != nullptr) {
    block->next->previous = block->previous;
  }
  (block->previous != nullptr ? block->previous->next : large_[largeClass(block->bytes)]) =
      block->next;
}

void Heap::giveLarge(Block* block) {
  Block* const after = blockAfter(block);
  if (after->free) {
    removeFree(static_cast<FreeBlock*>(after));
    block->bytes += after->bytes;
  }
  if (block->before != 0) {
    Block* const before =
        reinterpret_cast<Block*>(reinterpret_cast<uint8_t*>(block) - block->before);
    if (before->free) {
      removeFree(static_cast<FreeBlock*>(before));
      before->bytes += block->bytes;
      block = before;
    }
  }
  blockAfter(block)->before = block->bytes;
  addFree(block);
}

void Heap::give(void* piece, size_t bytes) {
  const size_t rounded = roundUp(bytes);
  if (rounded <= kMostSmall) {
    keepSmall(piece, rounded);
  } else {
    giveLarge(reinterpret_cast<Block*>(static_cast<uint8_t*>(piece) - sizeof(Block)));
  }
}

size_t Heap::shrink(void* piece, size_t old_bytes, size_t bytes) {
  const size_t old = roundUp(old_bytes);
  if (old <= kMostSmall) {
    return old;  // otherwise pieces of that size would become scarce
  }
  const size_t kept = std::max(roundUp(bytes), kLeastLarge);
  cut(reinterpret_cast<Block*>(static_cast<uint8_t*>(piece) - sizeof(Block)), kept + sizeof(Block));
  return kept;
}

void Heap::bury(Object* object) {
  object->next_dead = dead_;
  dead_ = object;
  if (burying_) {
    return;
  }
  burying_ = true;
  while (dead_ != nullptr) {
    Object* const next = dead_;
    dead_ = next->next_dead;
    destroy(next, this);
  }
  burying_ = false;
}

}  // namespace oriel_internal::jinja
