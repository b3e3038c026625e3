// What is the same on every system.
#include "os/os.h"

namespace oriel {

bool readIfThere(const char* path, void* to, uint64_t bytes) {
  SmallFile file;
  return file.openIfThere(path, Log()).ok() && file.isOpen() && file.bytes() == bytes &&
         file.read(to, bytes, Log()).ok();
}

}  // namespace oriel
