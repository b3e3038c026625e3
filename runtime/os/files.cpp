// File code common to all systems.
#include "os/os.h"

#include <cstring>
#include <new>

#include "base/hash.h"

namespace oriel_internal {

bool readIfThere(const char* path, void* to, uint64_t bytes) {
  InputFile file;
  return file.openIfThere(path, Log()).ok() && file.isOpen() && file.bytes() == bytes &&
         file.readAll(to, Log()).ok();
}

InputFile::Next::~Next() {
  if (file != nullptr) {
    file->~InputFile();
    allocator.release(file, bytes, allocator.user);
  }
}

void InputFile::Next::takeOver(Next* other) {
  file = other->file;
  bytes = other->bytes;
  allocator = other->allocator;
  other->file = nullptr;
}

Status InputFile::append(const char* path, uint64_t first, const oriel_allocator& allocator,
                         const Log& log) {
  if (next_.file != nullptr) {
    return next_.file->append(path, first, allocator, log);
  }
  const size_t path_bytes = std::strlen(path) + 1;
  void* const block = allocator.allocate(sizeof(InputFile) + path_bytes, allocator.user);
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory to open %.600s: close other programs",
                    path);
  }
  char* const copy = static_cast<char*>(block) + sizeof(InputFile);
  std::memcpy(copy, path, path_bytes);
  next_.file = new (block) InputFile();
  next_.bytes = sizeof(InputFile) + path_bytes;
  next_.allocator = allocator;
  next_.file->shift(first);
  return next_.file->open(copy, log);
}

Status InputFile::read(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  if (next_.file != nullptr && offset >= next_.file->first_) {
    return next_.file->read(offset, to, bytes, log);
  }
  return readOwn(offset - first_, to, bytes, log);
}

void InputFile::readAhead(uint64_t offset, uint64_t bytes) const {
  if (next_.file != nullptr && offset >= next_.file->first_) {
    next_.file->readAhead(offset, bytes);
  } else {
    readOwnAhead(offset - first_, bytes);
  }
}

uint64_t InputFile::stateHash() const {
  const uint64_t next = next_.file != nullptr ? next_.file->stateHash() : 0;
  const uint64_t state[] = {was_.bytes, static_cast<uint64_t>(was_.written[0]),
                            static_cast<uint64_t>(was_.written[1]), next};
  return hashBytes(state, sizeof(state));
}

Status InputFile::expectUnchanged(const Log& log) const {
  ORIEL_TRY(expectOwnUnchanged(log));
  return next_.file != nullptr ? next_.file->expectUnchanged(log) : kOk;
}

Status InputFile::readAll(void* to, const Log& log) const {
  ORIEL_TRY(read(0, to, bytes(), log));
  return expectUnchanged(log);
}

}  // namespace oriel_internal
