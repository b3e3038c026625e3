// What is the same on every system.
#include "os/os.h"

namespace oriel_internal {

bool readIfThere(const char* path, void* to, uint64_t bytes) {
  InputFile file;
  return file.openIfThere(path, Log()).ok() && file.isOpen() && file.bytes() == bytes &&
         file.readAll(to, Log()).ok();
}

Status InputFile::readAll(void* to, const Log& log) const {
  ORIEL_TRY(read(0, to, bytes(), log));
  return expectUnchanged(log);
}

}  // namespace oriel_internal
