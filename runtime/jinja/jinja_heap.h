// Memory of a running template: what is given back is used again, all of it comes from a Scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/scratch.h"

namespace oriel::jinja {

struct Object;

/// Pieces of sizes that come in classes: 16 bytes apart up to 512, then four to an octave. A larger piece is split where
/// none of the class is free; neighbours are not joined again.
class Heap {
 public:
  explicit Heap(Scratch* scratch) : scratch_(scratch) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// How many bytes take() hands out where `bytes` are asked for.
  static size_t roundUp(size_t bytes);
  /// Null when the scratch refuses. The bytes have anything in them.
  void* take(size_t bytes);
  /// `bytes` as take() was asked for, or what roundUp() made of it.
  void give(void* piece, size_t bytes);
  /// Gives back what lies behind the first `bytes` of a piece of `old_bytes`.
  void shrink(void* piece, size_t old_bytes, size_t bytes);
  bool failed() const { return scratch_->failed(); }

  /// Frees an object that nobody refers to, and what only it refers to. Loops instead of calling itself: lists may lie in
  /// lists without end.
  void bury(Object* object);

 private:
  static constexpr uint32_t kSmallClasses = 32;
  static constexpr uint32_t kClasses = kSmallClasses + 4 * 32;
  struct Free {
    Free* next;
  };

  static uint32_t classOf(size_t rounded);
  static size_t sizeOf(uint32_t size_class);
  void* takeLarge(size_t rounded, uint32_t size_class);
  void* takeSmall(size_t rounded);
  void keep(void* piece, uint32_t size_class);
  void keepAll(uint8_t* piece, size_t bytes);

  Scratch* const scratch_;
  Free* free_[kClasses] = {};
  uint64_t filled_[(kClasses + 63) / 64] = {};
  uint8_t* slab_ = nullptr;
  size_t slab_left_ = 0;
  Object* dead_ = nullptr;
  bool burying_ = false;
};

}  // namespace oriel::jinja
