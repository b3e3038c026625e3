// Memory for one call whose need is not known before: blocks from the app's allocator, up to a cap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/checked.h"
#include "oriel/advanced.h"

namespace oriel_internal {

/// Hands out pieces and takes none back until release() to an earlier place or its end; then every byte is overwritten
/// with zeros, since it may hold what somebody typed. Once it has refused, it refuses everything.
class Scratch {
 public:
  static constexpr size_t kAlignment = 16;

  /// `most_bytes`: of all blocks together, their headers included.
  Scratch(const oriel_allocator& allocator, size_t most_bytes)
      : allocator_(allocator), most_bytes_(most_bytes) {}
  /// For a part of another one's work: where the system refuses this one, the other has failed, too.
  Scratch(Scratch* around, size_t most_bytes)
      : around_(around), allocator_(around->allocator_), most_bytes_(most_bytes) {}
  ~Scratch() {
    releaseTo({});
    if (around_ != nullptr && noMemory()) {
      around_->failed_ = true;
    }
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// `count` zeroed elements; null when the cap is reached or the system refuses.
  template <typename T>
  T* take(uint64_t count) {
    static_assert(std::is_trivially_destructible<T>::value, "no destructors are run");
    static_assert(alignof(T) <= kAlignment, "raise kAlignment");
    uint64_t bytes = 0;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): there are pieces that hold pointers
    if (!checkedMul(count, sizeof(T), &bytes)) {
      failed_ = true;
      return nullptr;
    }
    void* const piece = takeBytes(bytes);
    if (piece != nullptr) {
      std::memset(piece, 0, static_cast<size_t>(bytes));
    }
    return static_cast<T*>(piece);
  }
  /// Bytes with anything in them.
  char* takeText(uint64_t bytes) { return static_cast<char*>(takeBytes(bytes)); }

  bool failed() const { return failed_; }
  /// Whether it was the cap that refused, not the system.
  bool atCap() const { return at_cap_; }
  bool noMemory() const { return failed_ && !at_cap_; }
  size_t usedBytes() const { return total_bytes_; }
  /// What the cap leaves, beside what is free in the blocks there are.
  size_t leftBytes() const { return most_bytes_ - total_bytes_; }

 private:
  struct Block {
    Block* before;
    size_t bytes;  ///< this header included
  };

 public:
  struct Place {
    Block* block = nullptr;
    size_t used = 0;
  };
  Place place() const { return {last_, used_}; }
  /// All pieces since `place` are given back.
  void releaseTo(const Place& place);

 private:
  void* takeBytes(uint64_t bytes);

  Scratch* const around_ = nullptr;
  const oriel_allocator& allocator_;
  const size_t most_bytes_;
  size_t total_bytes_ = 0;  ///< of all blocks
  Block* last_ = nullptr;
  size_t used_ = 0;  ///< of the last block
  bool failed_ = false;
  bool at_cap_ = false;
};

}  // namespace oriel_internal
