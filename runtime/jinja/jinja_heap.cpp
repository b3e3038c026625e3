#include "jinja/jinja_heap.h"

#include "jinja/jinja_value.h"

namespace oriel::jinja {
namespace {

constexpr size_t kGrain = 16;
constexpr size_t kMostSmall = 512;
constexpr size_t kSlabBytes = 4096;
constexpr uint32_t kSmallBits = 9;  // 512
constexpr size_t kMostBytes = size_t{1} << 31;

uint32_t bitsOf(size_t value) {
  uint32_t bits = 0;
  for (; value != 0; value >>= 1) {
    ++bits;
  }
  return bits;
}

}  // namespace

size_t Heap::roundUp(size_t bytes) {
  if (bytes <= kMostSmall) {
    return bytes == 0 ? kGrain : (bytes + kGrain - 1) / kGrain * kGrain;
  }
  const size_t step = size_t{1} << (bitsOf(bytes - 1) - 3);
  return (bytes + step - 1) / step * step;
}

uint32_t Heap::classOf(size_t rounded) {
  if (rounded <= kMostSmall) {
    return static_cast<uint32_t>(rounded / kGrain - 1);
  }
  const uint32_t octave = bitsOf(rounded - 1) - 1;
  const uint32_t quarter = static_cast<uint32_t>((rounded - 1) >> (octave - 2)) & 3;
  return kSmallClasses + (octave - kSmallBits) * 4 + quarter;
}

size_t Heap::sizeOf(uint32_t size_class) {
  if (size_class < kSmallClasses) {
    return (size_class + 1) * kGrain;
  }
  const uint32_t large = size_class - kSmallClasses;
  const uint32_t octave = large / 4 + kSmallBits;
  return (size_t{1} << octave) + (size_t{large % 4 + 1} << (octave - 2));
}

void* Heap::take(size_t bytes) {
  if (bytes > kMostBytes) {
    return scratch_->takeText(SIZE_MAX);  // refuses, and whoever asks is told so
  }
  const size_t rounded = roundUp(bytes);
  const uint32_t size_class = classOf(rounded);
  if (Free* const piece = free_[size_class]; piece != nullptr) {
    free_[size_class] = piece->next;
    if (piece->next == nullptr) {
      filled_[size_class / 64] &= ~(uint64_t{1} << size_class % 64);
    }
    return piece;
  }
  return rounded <= kMostSmall ? takeSmall(rounded) : takeLarge(rounded, size_class);
}

void* Heap::takeSmall(size_t rounded) {
  if (slab_left_ < rounded) {
    keepAll(slab_, slab_left_);
    slab_ = static_cast<uint8_t*>(take(kSlabBytes));
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

void* Heap::takeLarge(size_t rounded, uint32_t size_class) {
  for (uint32_t larger = size_class + 1; larger < kClasses; ++larger) {
    if ((filled_[larger / 64] >> larger % 64) == 0) {
      larger |= 63;
      continue;
    }
    if (free_[larger] != nullptr) {
      uint8_t* const piece = static_cast<uint8_t*>(take(sizeOf(larger)));
      keepAll(piece + rounded, sizeOf(larger) - rounded);
      return piece;
    }
  }
  return scratch_->takeText(rounded);
}

void Heap::keep(void* piece, uint32_t size_class) {
  free_[size_class] = new (piece) Free{free_[size_class]};
  filled_[size_class / 64] |= uint64_t{1} << size_class % 64;
}

void Heap::keepAll(uint8_t* piece, size_t bytes) {
  while (bytes >= kGrain) {
    uint32_t size_class = classOf(roundUp(bytes));
    if (sizeOf(size_class) > bytes) {
      --size_class;
    }
    keep(piece, size_class);
    piece += sizeOf(size_class);
    bytes -= sizeOf(size_class);
  }
}

void Heap::give(void* piece, size_t bytes) { keep(piece, classOf(roundUp(bytes))); }

void Heap::shrink(void* piece, size_t old_bytes, size_t bytes) {
  const size_t kept = roundUp(bytes);
  keepAll(static_cast<uint8_t*>(piece) + kept, roundUp(old_bytes) - kept);
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

}  // namespace oriel::jinja
