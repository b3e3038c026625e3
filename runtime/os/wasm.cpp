// WebAssembly, which has no file system. The host (a page, Node) provides named files and reads them in pieces, so
// nothing is buffered here. Files cannot be written.
#include <emscripten/heap.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "base/hash.h"
#include "os/os.h"

// Imported from the host; web/src/host_library.js declares these to the linker. Offsets are doubles: integers up to
// 2^53.
extern "C" {
/// The host's number for a file name; -1: missing.
int oriel_host_open(const char* name);
void oriel_host_close(int file);
/// -1: no longer readable.
double oriel_host_size(int file);
/// 0: all bytes were written to `to`.
int oriel_host_read(int file, double offset, void* to, double bytes);
}

namespace oriel_internal {
namespace {

constexpr char kNoFiles[] =
    "WebAssembly has no files of its own: save and restore snapshots as bytes";

Status changedMeanwhile(const char* path, const Log& log) {
  return log.fail(ORIEL_ERROR_IO, "%.600s has changed: give the model again", path);
}

}  // namespace

// --- Files ---------------------------------------------------------------------------------------

InputFile::~InputFile() {
  if (isOpen()) {
    oriel_host_close(static_cast<int>(handle_));
  }
}

Status InputFile::open(const char* path, const Log& log) {
  ORIEL_TRY(openIfThere(path, log));
  if (!isOpen()) {
    return log.fail(ORIEL_ERROR_IO, "cannot open %.600s: give it as bytes, a Blob or a URL", path);
  }
  if (was_.bytes == 0) {
    return log.fail(ORIEL_ERROR_IO, "%.600s is empty: download it again", path);
  }
  return kOk;
}

Status InputFile::openIfThere(const char* path, const Log&) {
  path_ = path;
  const int file = oriel_host_open(path);
  if (file < 0) {
    return kOk;
  }
  handle_ = file;
  return readState(&was_) ? kOk : Status(ORIEL_ERROR_IO);
}

bool InputFile::readState(State* state) const {
  const double bytes = oriel_host_size(static_cast<int>(handle_));
  state->bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
  return bytes >= 0;
}

Status InputFile::readOwn(uint64_t offset, void* to, uint64_t bytes, const Log& log) const {
  return oriel_host_read(static_cast<int>(handle_), static_cast<double>(offset), to,
                         static_cast<double>(bytes)) == 0
             ? kOk
             : changedMeanwhile(path_, log);
}

void InputFile::readOwnAhead(uint64_t, uint64_t) const {}

Status InputFile::expectOwnUnchanged(const Log& log) const {
  State is;
  return readState(&is) && is.bytes == was_.bytes ? kOk : changedMeanwhile(path_, log);
}

Status writeFileAtomically(const char* path, const void*, size_t, FileUse, const Log& log) {
  return log.fail(ORIEL_ERROR_IO, "cannot write %.600s: %s", path, kNoFiles);
}

Status SpillFile::create(const char*, uint64_t, const Log& log) {
  return log.fail(ORIEL_ERROR_IO, "no room to put the cache aside: %s", kNoFiles);
}
Status SpillFile::write(uint64_t, const void*, uint64_t, const Log&) { return ORIEL_ERROR_IO; }
Status SpillFile::read(uint64_t, void*, uint64_t, const Log&) const { return ORIEL_ERROR_IO; }
void SpillFile::remove() {
  folder_ = kNoHandle;
  name_[0] = '\0';
}

bool isDescriptorPath(const char*) { return false; }
void makeFolder(const char*) {}
void removeFile(const char*) {}
uint32_t removeFiles(const char*, const char*, const char*, uint32_t*) { return 0; }

bool WorkMarker::begin(const char*, uint8_t (&)[kMostBytes], size_t* left) {
  *left = 0;
  return false;
}
void WorkMarker::write(const void*, size_t) const {}
void WorkMarker::end() {
  handle_ = kNoHandle;
  path_[0] = '\0';
}

// --- Memory, time, chance ------------------------------------------------------------------------

void preferLargePages(void*, uint64_t) {}

void wipePages(void* data, uint64_t bytes) { wipe(data, bytes); }

uint64_t freeMemoryBytes() { return emscripten_get_heap_max() - emscripten_get_heap_size(); }

void sleepMs(double ms) {
  struct timespec wait = {};
  wait.tv_sec = static_cast<time_t>(ms / 1e3);
  wait.tv_nsec = static_cast<long>((ms - static_cast<double>(wait.tv_sec) * 1e3) * 1e6);
  (void)::nanosleep(&wait, nullptr);
}

double nowMs() {
  struct timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

int64_t unixSeconds() {
  struct timespec now = {};
  const bool known = ::clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec > 0;
  return known ? static_cast<int64_t>(now.tv_sec) : 0;
}

uint64_t entropy() {
  uint64_t seed = 0;
  if (::getentropy(&seed, sizeof(seed)) != 0) {
    const double now = nowMs();
    std::memcpy(&seed, &now, sizeof(seed));
  }
  return seed;
}

// --- Shared libraries ----------------------------------------------------------------------------

SharedLibrary::~SharedLibrary() = default;
bool SharedLibrary::open(const char*) { return false; }
void* SharedLibrary::symbol(const char*) const { return nullptr; }

}  // namespace oriel_internal
