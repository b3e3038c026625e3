#include "speed/speed_file.h"

#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "base/version.h"
#include "os/os.h"

namespace oriel_internal {
namespace {

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'S', 'P', '\n'};
/// Increase it when the meaning of rates or the measured kernels change.
constexpr uint32_t kVersion = 10;
constexpr size_t kMaxPath = 1024;

struct SpeedFile {
  char magic[8];
  uint32_t version;
  uint32_t file_bytes;
  uint64_t key;  ///< keyOf
  uint64_t rates_hash;
  DeviceSpeed rates;
};

uint64_t keyOf(const DeviceSpeed& speed) {
  uint64_t hash = hashBytes(kVersionText, sizeof(kVersionText) - 1);
  hash = hashBytes(speed.device, std::strlen(speed.device), hash);
  hash = hashBytes(speed.driver, std::strlen(speed.driver), hash);
  return hashBytes(&speed.shape, sizeof(speed.shape), hash);
}

// Hashing padding is safe: the rates are zeroed before they are filled.
SpeedFile fileOf(const DeviceSpeed& speed) {
  SpeedFile file;
  std::memset(static_cast<void*>(&file), 0, sizeof(file));
  std::memcpy(file.magic, kMagic, sizeof(kMagic));
  file.version = kVersion;
  file.file_bytes = sizeof(file);
  file.key = keyOf(speed);
  std::memcpy(static_cast<void*>(&file.rates), &speed, sizeof(speed));
  file.rates_hash = hashBytes(&file.rates, sizeof(file.rates));
  return file;
}

// False: the path is too long.
bool makePath(const char* dir, const DeviceSpeed& speed, char (&path)[kMaxPath]) {
  const int length = std::snprintf(path, sizeof(path), "%s/oriel-%016llx.speed", dir,
                                   static_cast<unsigned long long>(keyOf(speed)));
  return length > 0 && static_cast<size_t>(length) < sizeof(path);
}

}  // namespace

bool readSpeedFile(const char* dir, DeviceSpeed* speed) {
  char path[kMaxPath];
  SpeedFile file;
  if (dir == nullptr || !makePath(dir, *speed, path) || !readIfThere(path, &file, sizeof(file))) {
    return false;
  }
  // Names first: a match proves that they are NUL-terminated.
  if (std::memcmp(file.rates.device, speed->device, sizeof(speed->device)) != 0 ||
      std::memcmp(file.rates.driver, speed->driver, sizeof(speed->driver)) != 0) {
    return false;
  }
  const SpeedFile expected = fileOf(file.rates);
  if (std::memcmp(&file, &expected, offsetof(SpeedFile, rates)) != 0 ||
      file.rates.shape != speed->shape || !validSpeed(file.rates)) {
    return false;
  }
  std::memcpy(static_cast<void*>(speed), &file.rates, sizeof(*speed));
  return true;
}

void writeSpeedFile(const char* dir, const DeviceSpeed& speed, const Log& log) {
  char path[kMaxPath];
  if (dir == nullptr || !makePath(dir, speed, path)) {
    return;
  }
  const SpeedFile file = fileOf(speed);
  if (!writeFileAtomically(path, &file, sizeof(file), FileUse::kCache, Log()).ok()) {
    log.write(ORIEL_LOG_DEBUG, "cannot write %s; rates are not kept", path);
  }
}

}  // namespace oriel_internal
