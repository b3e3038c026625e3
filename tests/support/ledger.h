// An app's allocator with statistics: current and peak bytes, and refusals. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

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

}  // namespace oriel_internal::test
