#include "base/scratch.h"

#include <algorithm>

#include "base/wipe.h"

namespace oriel_internal {
namespace {

// Balances allocator calls against unused memory.
constexpr size_t kFirstBlockBytes = 16 * 1024;
constexpr size_t kMostBlockBytes = 256 * 1024;

}  // namespace

void* Scratch::takeBytes(uint64_t bytes) {
  const uint64_t wanted = alignUp(bytes, kAlignment);
  if (failed_ || bytes > SIZE_MAX / 2) {
    failed_ = true;
    return nullptr;
  }
  if (last_ == nullptr || wanted > last_->bytes - used_) {
    constexpr size_t kHeader = (sizeof(Block) + kAlignment - 1) / kAlignment * kAlignment;
    const size_t left = most_bytes_ - total_bytes_;
    const size_t usual = std::clamp(total_bytes_, kFirstBlockBytes, kMostBlockBytes);
    const uint64_t least = wanted + kHeader;
    if (least > left) {
      failed_ = at_cap_ = true;
      return nullptr;
    }
    const size_t block_bytes = std::max(static_cast<size_t>(least), std::min(usual, left));
    void* const memory = allocator_.allocate(block_bytes, allocator_.user);
    if (memory == nullptr) {
      failed_ = true;
      return nullptr;
    }
    Block* const block = static_cast<Block*>(memory);
    *block = {last_, block_bytes};
    last_ = block;
    used_ = kHeader;
    total_bytes_ += block_bytes;
  }
  uint8_t* const piece = reinterpret_cast<uint8_t*>(last_) + used_;
  used_ += static_cast<size_t>(wanted);
  return piece;
}

void Scratch::releaseTo(const Place& place) {
  size_t end = used_;
  while (last_ != place.block) {
    Block* const before = last_->before;
    const size_t bytes = last_->bytes;
    total_bytes_ -= bytes;
    wipe(last_, bytes);
    allocator_.release(last_, bytes, allocator_.user);
    last_ = before;
    end = last_ != nullptr ? last_->bytes : 0;
  }
  if (last_ != nullptr) {
    wipe(reinterpret_cast<uint8_t*>(last_) + place.used, end - place.used);
  }
  used_ = place.used;
}

}  // namespace oriel_internal
