#include "vulkan/driver_watch.h"

#include <cstring>

#include "os/os.h"

namespace oriel_internal {
namespace {

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'D', 'W', '\n'};

struct MarkerFile {
  char magic[8];
  uint32_t driver_version;
  uint32_t place;
  uint32_t features;
  uint32_t reserved;
};
static_assert(sizeof(MarkerFile) == 24 && sizeof(MarkerFile) <= WorkMarker::kMostBytes,
              "written as bytes");

}  // namespace

const char* placeName(DriverPlace place) {
  switch (place) {
    case DriverPlace::kNone:
      break;
    case DriverPlace::kInstance:
      return "starting Vulkan";
    case DriverPlace::kDevice:
      return "making the device";
    case DriverPlace::kKeptKernels:
      return "taking kernels that were kept";
    case DriverPlace::kCompile:
      return "compiling kernels";
    case DriverPlace::kFirstSteps:
      return "its first work";
  }
  return "nothing";
}

DriverContact DriverWatch::begin(const char* path, uint32_t driver_version) {
  DriverContact contact;
  driver_version_ = driver_version;
  uint8_t was[WorkMarker::kMostBytes];
  size_t left = 0;
  MarkerFile file;
  if (marker_.begin(path, was, &left) && left >= sizeof(file)) {
    std::memcpy(&file, was, sizeof(file));
    if (std::memcmp(file.magic, kMagic, sizeof(kMagic)) == 0 &&
        file.driver_version == driver_version && file.place < kPlaces) {
      contact = {static_cast<DriverPlace>(file.place), file.features};
    }
  }
  write();
  return contact;
}

void DriverWatch::enter(DriverPlace place, uint32_t features) { count(place, features, 1); }

void DriverWatch::leave(DriverPlace place, uint32_t features) { count(place, features, -1); }

void DriverWatch::count(DriverPlace place, uint32_t features, int32_t by) {
  if (!marker_.isHeld()) {
    return;
  }
  while (writing_.exchange(1, std::memory_order_acquire) != 0) {
    yieldProcessor();
  }
  under_way_[static_cast<uint32_t>(place)] += by;
  for (uint32_t i = 0; i < kCounted; ++i) {
    counts_[i] += (features >> i & 1u) != 0 ? by : 0;
  }
  write();
  writing_.store(0, std::memory_order_release);
}

void DriverWatch::write() {
  MarkerFile file = {};
  std::memcpy(file.magic, kMagic, sizeof(kMagic));
  file.driver_version = driver_version_;
  for (uint32_t place = 0; place < kPlaces; ++place) {
    file.place = under_way_[place] != 0 ? place : file.place;
  }
  for (uint32_t i = 0; i < kCounted; ++i) {
    file.features |= counts_[i] != 0 ? 1u << i : 0;
  }
  marker_.write(&file, sizeof(file));
}

}  // namespace oriel_internal
