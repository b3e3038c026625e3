// Memory of a running template: what is given back is used again, all of it comes from a Scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/scratch.h"
#include "base/steps.h"

namespace oriel_internal::jinja {

struct Object;

constexpr uint64_t kUnitsBetweenStops = 1u << 18;

/// Small pieces, of sizes 16 bytes apart, are cut from slabs and stay what they are. Larger ones know their neighbours, and
/// free neighbours become one.
class Heap {
 public:
  explicit Heap(Scratch* scratch) : scratch_(scratch) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// The work of a running template, in units. The primitives count it: taking memory, appending to lists and texts,
  /// comparing texts, looking names up. So no filter can forget it. Once it has ended they give nothing any more.
  Steps& meter() { return meter_; }
  /// Counts work; false: it has ended.
  bool spend(uint64_t units) { return meter_.spend(units); }
  /// What take() makes of a number of bytes.
  static size_t roundUp(size_t bytes);
  /// Null when the scratch refuses, or when the work has ended. The bytes have anything in them.
  void* take(size_t bytes);
  /// `bytes` as take() was asked for, or what roundUp() made of it.
  void give(void* piece, size_t bytes);
  /// Gives back what lies behind the first `bytes` of a piece of `old_bytes`, as far as it can; returns what it has now.
  size_t shrink(void* piece, size_t old_bytes, size_t bytes);

  /// Frees an object that nobody refers to, and what only it refers to. Loops instead of calling itself: lists may lie in
  /// lists without end.
  void bury(Object* object);

 private:
  static constexpr uint32_t kSmallClasses = 32;
  static constexpr uint32_t kLargeClasses = 4 * 24;
  struct Small {
    Small* next;
  };
  /// Stands before a large piece; a region ends with one that is never free.
  struct alignas(16) Block {
    uint32_t bytes;   ///< this header included
    uint32_t before;  ///< bytes of the block before, 0: there is none
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
