// Systems without mapped weights.
#include "os/os.h"

namespace oriel_internal {

FileInParts::~FileInParts() = default;
Status FileInParts::create(const char*, uint64_t, const Log& log) {
  return log.fail(ORIEL_ERROR_UNSUPPORTED,
                  "weights are not mapped on this system: leave \"prepared_dir\" out");
}
Status FileInParts::write(uint64_t, const void*, uint64_t, const Log&) {
  return ORIEL_ERROR_UNSUPPORTED;
}
Status FileInParts::read(uint64_t, void*, uint64_t, const Log&) const {
  return ORIEL_ERROR_UNSUPPORTED;
}
Status FileInParts::finish(const Log&) { return ORIEL_ERROR_UNSUPPORTED; }

void MappedFile::close() {}
bool MappedFile::open(const char*) { return false; }
void MappedFile::forget() const {}

void removeOldest(const char*, const char*, uint64_t) {}
uint64_t bytesOfFiles(const char*, const char*) { return 0; }

}  // namespace oriel_internal
