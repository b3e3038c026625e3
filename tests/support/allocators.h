// An app's allocator with statistics: current and peak bytes, and refusals. Tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "oriel/advanced.h"
#include "support/gguf_writer.h"

namespace oriel_internal::test {

class Ledger {
 public:
  Ledger() : table_{&Ledger::allocate, &Ledger::release, this} {}
  ~Ledger() { EXPECT_EQ(0u, live_bytes); }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  const oriel_allocator* allocator() const { return &table_; }

  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t calls = 0;       ///< of allocate, including refused ones
  uint64_t refuse_nth = 0;  ///< counting from 1; 0: none
  bool refuse_all = false;

 private:
  static void* allocate(size_t bytes, void* user) {
    Ledger* self = static_cast<Ledger*>(user);
    ++self->calls;
    if (self->refuse_all || self->calls == self->refuse_nth) {
      return nullptr;
    }
    void* block = alignedBlock(bytes);
    self->blocks_[block] = bytes;
    self->live_bytes += bytes;
    self->peak_bytes = std::max(self->peak_bytes, self->live_bytes);
    return block;
  }
  static void release(void* block, size_t bytes, void* user) {
    Ledger* self = static_cast<Ledger*>(user);
    const auto known = self->blocks_.find(block);
    if (known == self->blocks_.end()) {
      ADD_FAILURE() << "a block was released that was never given out, or twice";
      return;
    }
    EXPECT_EQ(known->second, bytes) << "released with another size than it was taken with";
    self->live_bytes -= known->second;
    self->blocks_.erase(known);
    freeAligned(block);
  }

  oriel_allocator table_;
  std::map<void*, size_t> blocks_;
};

// An app's allocator that searches every freed block for user input. Tests only.

class SearchingAllocator {
 public:
  SearchingAllocator()
      : table_{&SearchingAllocator::allocate, &SearchingAllocator::release, this} {}
  ~SearchingAllocator() {
    for (const auto& [block, bytes] : blocks_) {
      freeAligned(block);
    }
  }
  SearchingAllocator(const SearchingAllocator&) = delete;
  SearchingAllocator& operator=(const SearchingAllocator&) = delete;

  const oriel_allocator* allocator() const { return &table_; }

  void lookFor(const std::string& text) { needles_.emplace_back(text.begin(), text.end()); }
  /// Searches for the ids as an array.
  void lookFor(const std::vector<int32_t>& ids) {
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(ids.data());
    needles_.emplace_back(bytes, bytes + ids.size() * sizeof(int32_t));
  }

  /// Freed blocks so far that contained any of it.
  uint32_t found_in_released() const { return found_; }
  uint32_t released() const { return released_; }
  /// Live blocks that contain any of it.
  uint32_t found_in_live() const {
    return static_cast<uint32_t>(
        std::count_if(blocks_.begin(), blocks_.end(),
                      [this](const auto& entry) { return holdsAny(entry.first, entry.second); }));
  }
  /// Live or freed blocks of this size with nonzero bytes.
  uint32_t notZero(uint64_t bytes) const {
    uint32_t count = static_cast<uint32_t>(std::count(dirty_.begin(), dirty_.end(), bytes));
    for (const auto& [block, size] : blocks_) {
      count += size == bytes && !isZero(block, size) ? 1 : 0;
    }
    return count;
  }

 private:
  static bool isZero(const void* block, size_t bytes) {
    const uint8_t* at = static_cast<const uint8_t*>(block);
    return std::all_of(at, at + bytes, [](uint8_t byte) { return byte == 0; });
  }
  bool holdsAny(const void* block, size_t bytes) const {
    const uint8_t* const begin = static_cast<const uint8_t*>(block);
    return std::any_of(needles_.begin(), needles_.end(), [&](const std::vector<uint8_t>& needle) {
      return std::search(begin, begin + bytes, needle.begin(), needle.end()) != begin + bytes;
    });
  }
  static void* allocate(size_t bytes, void* user) {
    void* const block = alignedBlock(bytes);
    static_cast<SearchingAllocator*>(user)->blocks_[block] = bytes;
    return block;
  }
  static void release(void* block, size_t bytes, void* user) {
    SearchingAllocator* const self = static_cast<SearchingAllocator*>(user);
    self->found_ += self->holdsAny(block, bytes) ? 1 : 0;
    ++self->released_;
    if (!isZero(block, bytes)) {
      self->dirty_.push_back(bytes);
    }
    self->blocks_.erase(block);
    freeAligned(block);
  }

  oriel_allocator table_;
  std::map<void*, size_t> blocks_;
  std::vector<std::vector<uint8_t>> needles_;
  std::vector<uint64_t> dirty_;
  uint32_t found_ = 0;
  uint32_t released_ = 0;
};

}  // namespace oriel_internal::test
