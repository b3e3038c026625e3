// A growing array in borrowed memory. Elements without memory are dropped: check the scratch for failure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/scratch.h"

namespace oriel_internal {

template <typename T>
class List {
 public:
  explicit List(Scratch* scratch) : scratch_(scratch) {}

  bool push(const T& item) {
    if (count_ == capacity_ && !grow()) {
      return false;
    }
    items_[count_++] = item;
    return true;
  }
  uint32_t count() const { return count_; }
  bool isEmpty() const { return count_ == 0; }
  void cutTo(uint32_t count) { count_ = count; }
  T& operator[](uint32_t i) { return items_[i]; }
  const T& operator[](uint32_t i) const { return items_[i]; }
  T* begin() { return items_; }
  T* end() { return items_ + count_; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + count_; }
  T& last() { return items_[count_ - 1]; }

 private:
  bool grow() {
    const uint32_t wanted = capacity_ == 0 ? 8 : capacity_ * 2;
    T* const items = scratch_->take<T>(wanted);
    if (items == nullptr) {
      return false;
    }
    std::copy_n(items_, count_, items);
    items_ = items;
    capacity_ = wanted;
    return true;
  }

  Scratch* scratch_;
  T* items_ = nullptr;
  uint32_t count_ = 0;
  uint32_t capacity_ = 0;
};

}  // namespace oriel_internal
