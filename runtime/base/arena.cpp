#include "base/arena.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"
#include "base/hash.h"

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

namespace {

constexpr size_t kBlockAlignment = 64;

// calloc's pointer is stored directly before the aligned block.
void* callocAligned(size_t bytes, void*) {
  if (bytes > SIZE_MAX - kBlockAlignment - sizeof(void*)) {
    return nullptr;
  }
  void* raw = std::calloc(1, bytes + kBlockAlignment + sizeof(void*));
  if (raw == nullptr) {
    return nullptr;
  }
  const uintptr_t first = reinterpret_cast<uintptr_t>(raw) + sizeof(void*);
  void* block = reinterpret_cast<void*>((first + kBlockAlignment - 1) & ~(kBlockAlignment - 1));
  static_cast<void**>(block)[-1] = raw;
  return block;
}

void freeAligned(void* block, size_t, void*) {
  if (block != nullptr) {
    std::free(static_cast<void**>(block)[-1]);
  }
}

}  // namespace

const oriel_allocator& defaultAllocator() {
  static constexpr oriel_allocator kCalloc = {callocAligned, freeAligned, nullptr};
  return kCalloc;
}

bool isDefault(const oriel_allocator& allocator) { return allocator.allocate == callocAligned; }

void* allocateZeroed(const oriel_allocator& allocator, uint64_t bytes) {
  if (bytes > SIZE_MAX / 2) {
    return nullptr;
  }
  void* block = allocator.allocate(static_cast<size_t>(bytes), allocator.user);
  if (block != nullptr && !isDefault(allocator)) {
    std::memset(block, 0, static_cast<size_t>(bytes));
  }
  return block;
}

BorrowedBytes::BorrowedBytes(Workspace* workspace, uint64_t bytes)
    : workspace_(workspace), bytes_(static_cast<size_t>(bytes)) {
  if (bytes > SIZE_MAX / 2) {
    return;
  }
  bytes_ = static_cast<size_t>(alignUp(bytes, 16));
  if (bytes_ == 0) {
    static std::max_align_t nothing;  // a workspace may have no block
    data_ = &nothing;
  } else if (bytes_ <= workspace_->capacity_ - workspace_->used_) {
    data_ = workspace_->block_ + workspace_->used_;
    workspace_->used_ += bytes_;
  } else {
    data_ = workspace_->allocator_->allocate(bytes_, workspace_->allocator_->user);
    allocated_ = true;
  }
}

BorrowedBytes::~BorrowedBytes() {
  if (data_ == nullptr) {
    return;
  }
  wipe(data_, bytes_);
  if (allocated_) {
    workspace_->allocator_->release(data_, bytes_, workspace_->allocator_->user);
  } else {
    workspace_->used_ -= bytes_;
  }
}

}  // namespace oriel_internal
