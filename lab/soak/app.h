// The soak's side of the library's interface: the app's memory, which may refuse, and structs with struct_size.
#pragma once

#include <cstdint>
#include <fstream>

#include "oriel/advanced.h"
#include "support/gguf_writer.h"

namespace oriel_internal::test {

/// The app's memory: live bytes, and when to refuse.
struct Memory {
  uint64_t live_bytes = 0;
  uint32_t refuse_in = 0;  // calls; 0: never
  oriel_allocator table = {&Memory::allocate, &Memory::release, this};

  static void* allocate(size_t bytes, void* user) {
    Memory* self = static_cast<Memory*>(user);
    if (self->refuse_in > 0 && --self->refuse_in == 0) {
      return nullptr;
    }
    self->live_bytes += bytes;
    return alignedBlock(bytes);
  }
  static void release(void* block, size_t bytes, void* user) {
    static_cast<Memory*>(user)->live_bytes -= bytes;
    freeAligned(block);
  }
};

inline uint64_t residentPages() {
  uint64_t all = 0;
  uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

template <typename Struct>
Struct sized() {
  Struct value = {};
  value.struct_size = sizeof(value);
  return value;
}

}  // namespace oriel_internal::test
