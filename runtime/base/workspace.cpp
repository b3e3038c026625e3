#include "base/workspace.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"
#include "base/wipe.h"

namespace oriel_internal {
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
