// A running template's memory. Freed memory is reused; all of it comes from a Scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/scratch.h"
#include "base/steps.h"

namespace oriel_internal::jinja {

struct Object;

constexpr uint64_t kUnitsBetweenStops = 1u << 18;

/// Small pieces, in sizes 16 bytes apart, are cut from slabs and keep their size. Larger ones know their neighbours, and
/// free neighbours are merged.
class Heap {
 public:
  explicit Heap(Scratch* scratch) : scratch_(scratch) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Counts the work of a running template. The primitives count: taking memory, appending to lists and texts, comparing
  /// texts, looking up names. Filters therefore cannot skip it. After the last unit the primitives fail.
  Steps& meter() { return meter_; }
  /// Counts work; false: the limit is reached.
  bool spend(uint64_t units) { return meter_.spend(units); }
  /// The size that take() allocates for `bytes`.
  static size_t roundUp(size_t bytes);
  /// Null if the scratch refuses or the work has ended. Uninitialised.
  void* take(size_t bytes);
  /// `bytes` as given to take(), or rounded by roundUp().
  void give(void* piece, size_t bytes);
  /// Returns the bytes after the first `bytes` of a piece of `old_bytes`, if possible; returns the remaining size.
  size_t shrink(void* piece, size_t old_bytes, size_t bytes);

  /// Frees an unreferenced object and everything only it refers to. Iterative, since lists may nest without limit.
  void bury(Object* object);

 private:
  static constexpr uint32_t kSmallClasses = 32;
  static constexpr uint32_t kLargeClasses = 4 * 24;
  struct Small {
    Small* next;
  };
  /// Header of a large piece. A region ends with a header that is never free.
  struct alignas(16) Block {
    uint32_t bytes;   ///< including this header
    uint32_t before;  ///< size of the previous block; 0: first
    bool free;
  };
  struct FreeBlock : Block {
    FreeBlock* next;
    FreeBlock* previous;
  };

  static uint32_t largeClass(size_t bytes);
  static Block* blockAfter(Block* block);
  void* takeSmall(size_t rounded);
  void keepSmall(void* piece, size_t rounded);
  void* takeLarge(size_t rounded);
  FreeBlock* findFree(size_t bytes);
  FreeBlock* addRegion(size_t bytes);
  void cut(Block* block, size_t bytes);
  void addFree(Block* block);
  void removeFree(FreeBlock* block);
  void giveLarge(Block* block);

  Scratch* const scratch_;
  Steps meter_;
  Small* small_[kSmallClasses] = {};
  FreeBlock* large_[kLargeClasses] = {};
  uint8_t* slab_ = nullptr;
  size_t slab_left_ = 0;
  size_t regions_bytes_ = 0;
  Object* dead_ = nullptr;
  bool burying_ = false;
};

}  // namespace oriel_internal::jinja
