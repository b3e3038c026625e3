#include "vulkan/verdict.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "os/os.h"
#include "vulkan/pipelines.h"
#include "vulkan/shader_table.h"

namespace oriel_internal {
namespace {

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'D', 'V', '\n'};
constexpr uint32_t kVersion = 1;
constexpr const char* kVerdictKind = "verdict";

constexpr char kRecordMagic[8] = {'O', 'r', 'i', 'e', 'l', 'V', 'R', '\n'};
constexpr uint32_t kMostRecordStarts = 192;

struct RecordFile {
  char magic[8];
  uint32_t deaths;
  uint32_t starts;  ///< remaining starts without Vulkan
  uint64_t hash;    ///< of all preceding bytes
};
static_assert(sizeof(RecordFile) == 24, "no padding: hashed as bytes");

bool endsWith(const char* text, const char* end) {
  const size_t length = std::strlen(text);
  const size_t tail = std::strlen(end);
  return length >= tail && std::strcmp(text + length - tail, end) == 0;
}

/// Number of starts without it after `deaths` earlier crashes.
uint32_t startsAfter(uint32_t deaths, uint32_t most) {
  uint32_t starts = Verdict::kSuspectStarts;
  for (uint32_t i = 0; i < deaths && starts < most; ++i) {
    starts *= 4;
  }
  return std::min(starts, most);
}

}  // namespace

struct Verdict::File {
  CacheHeader header;  ///< its detail: the number of kernels
  Kept kept;
  uint64_t hash;  ///< of all preceding bytes
};

uint32_t featuresOfKernel(const char* name) {
  constexpr uint32_t kHalf = featureBit(VulkanFeature::kFloat16);
  if (endsWith(name, "_matrix")) {
    return featureBit(VulkanFeature::kCooperativeMatrix) | kHalf;
  }
  if (endsWith(name, "_made")) {
    return featureBit(VulkanFeature::kFusedOps) |
           (endsWith(name, "_dot_made") ? featureBit(VulkanFeature::kIntegerDot) : 0);
  }
  return endsWith(name, "_half")       ? kHalf
         : endsWith(name, "_dot")      ? featureBit(VulkanFeature::kIntegerDot)
         : endsWith(name, "_subgroup") ? featureBit(VulkanFeature::kSubgroup)
         : endsWith(name, "_texel")    ? featureBit(VulkanFeature::kTexels)
                                       : 0;
}

uint32_t riskiest(uint32_t features) {
  for (const VulkanFeature feature :
       {VulkanFeature::kCooperativeMatrix, VulkanFeature::kFloat16, VulkanFeature::kFusedOps,
        VulkanFeature::kIntegerDot, VulkanFeature::kSubgroup, VulkanFeature::kTexels}) {
    if ((features & featureBit(feature)) != 0) {
      return featureBit(feature);
    }
  }
  return 0;
}

// Fills in the file except its findings and its hash.
Verdict::File Verdict::expectedFile(const DeviceCaps& caps) {
  static_assert(sizeof(File) == 72 + sizeof(Kept) + 8 && sizeof(Kept) % 8 == 0,
                "no padding: hashed as bytes");
  File file;
  std::memset(static_cast<void*>(&file), 0, sizeof(file));
  file.header = cacheHeader(caps, kMagic, kVersion, kShaderCount);
  return file;
}

bool Verdict::readFile(const DeviceCaps& caps, const char* path, File* file) {
  const File expected = expectedFile(caps);
  return readIfThere(path, file, sizeof(*file)) &&
         std::memcmp(file, &expected, offsetof(File, kept)) == 0 &&
         file->hash == hashBytes(file, offsetof(File, hash));
}

void Verdict::read(const DeviceCaps& caps, const char* dir, bool begins) {
  *this = Verdict();
  char path[1024];
  File file;
  if (dir == nullptr || !makeCachePath(caps, dir, kVerdictKind, path, sizeof(path)) ||
      !readFile(caps, path, &file)) {
    return;
  }
  kept_ = file.kept;
  suspected_ = kept_.died.count != 0 && (kept_.died.suspect_starts != 0 || !begins);
}

void Verdict::keep(const DeviceCaps& caps, const char* dir) {
  char path[1024];
  if (!changed_ || dir == nullptr || !makeCachePath(caps, dir, kVerdictKind, path, sizeof(path))) {
    return;
  }
  if (File now; !deaths_changed_ && readFile(caps, path, &now)) {
    kept_.died = now.kept.died;
  }
  File file = expectedFile(caps);
  file.kept = kept_;
  file.hash = hashBytes(&file, offsetof(File, hash));
  changed_ = !writeFileAtomically(path, &file, sizeof(file), FileUse::kCache, Log()).ok();
  deaths_changed_ = deaths_changed_ && changed_;
}

void Verdict::note(uint32_t shader, KernelState state) {
  const uint8_t number = static_cast<uint8_t>(state);
  changed_ = changed_ || kept_.kernels[shader] != number;
  kept_.kernels[shader] = number;
}

void Verdict::putAside(uint32_t choice, uint32_t position) {
  kept_.aside[choice] = static_cast<uint8_t>(kept_.aside[choice] | 1u << position);
  changed_ = true;
}

void Verdict::turnOff(uint32_t features) {
  changed_ = changed_ || (features & ~kept_.wrong_features) != 0;
  kept_.wrong_features |= features;
}

void Verdict::forgetWrong() {
  kept_.wrong_features = 0;
  std::memset(kept_.aside, 0, sizeof(kept_.aside));
  std::memset(kept_.kernels, 0, sizeof(kept_.kernels));
  changed_ = true;
}

uint64_t Verdict::asideHash() const {
  const bool none = std::all_of(kept_.aside, kept_.aside + kChoices,
                                [](uint8_t positions) { return positions == 0; });
  return none ? 0 : hashBytes(kept_.aside, sizeof(kept_.aside));
}

// A crash with cached kernels only discards those kernels.
bool Verdict::died(const DriverContact& contact) {
  if (contact.place == DriverPlace::kNone || contact.place == DriverPlace::kKeptKernels) {
    return false;
  }
  const uint32_t more = contact.features & ~kept_.died.features;
  kept_.died.features |= more;
  // The same features again: either a start retried them, or turning them off does not help.
  const bool asked_again = contact.features != 0 && kept_.died.suspect_starts == 0;
  kept_.died.deadly |= more == 0 && !asked_again ? 1 : 0;
  kept_.died.place = static_cast<uint32_t>(contact.place);
  kept_.died.suspect_starts = startsAfter(kept_.died.count, kMostSuspectStarts);
  ++kept_.died.count;
  suspected_ = changed_ = deaths_changed_ = true;
  return true;
}

void Verdict::starting() {
  if (kept_.died.suspect_starts != 0) {
    --kept_.died.suspect_starts;
    changed_ = deaths_changed_ = true;
  }
}

void Verdict::survived() {
  if (kept_.died.count != 0 && !suspected_) {
    survivedTest();
  }
}

void Verdict::survivedTest() {
  if (kept_.died.count != 0) {
    kept_.died = Deaths();
    suspected_ = false;
    changed_ = deaths_changed_ = true;
  }
}

void Verdict::countKernels(uint32_t* right, uint32_t* wrong) const {
  const auto count = [this](KernelState state) {
    return static_cast<uint32_t>(
        std::count(kept_.kernels, kept_.kernels + kMaxKernels, static_cast<uint8_t>(state)));
  };
  *right = count(KernelState::kRight);
  *wrong = count(KernelState::kWrong);
}

void Verdict::describe(char* text, size_t capacity) const {
  text[0] = '\0';
  char names[128];
  char item[320];
  const auto nameFirst = [this](bool plain) -> const char* {
    for (uint32_t i = 0; i < std::min(kShaderCount, kMaxKernels); ++i) {
      if (state(i) == KernelState::kWrong && (featuresOfKernel(kShaders[i].name()) == 0) == plain) {
        return kShaders[i].name();
      }
    }
    return nullptr;
  };
  if (kept_.wrong_features != 0) {
    const char* const name = nameFirst(false);
    writeFeatureNames(kept_.wrong_features, names, sizeof(names));
    std::snprintf(item, sizeof(item), "%s off: %s came out wrong", names,
                  name != nullptr ? name : "a kernel");
    appendToList(item, text, capacity);
  }
  if (const char* const name = nameFirst(true); name != nullptr) {
    std::snprintf(item, sizeof(item), "no models that need %s: it came out wrong", name);
    appendToList(item, text, capacity);
  }
  if (asideHash() != 0) {
    appendToList("ways to multiply put aside: they came out wrong", text, capacity);
  }
  if (suspected_) {
    writeFeatureNames(kept_.died.features, names, sizeof(names));
    std::snprintf(item, sizeof(item), "%s off: the driver ended a process at %s",
                  kept_.died.deadly != 0 ? "the device" : names,
                  placeName(static_cast<DriverPlace>(kept_.died.place)));
    appendToList(item, text, capacity);
  }
}

// ---- Vulkan as a whole ----

bool VulkanRecord::makePath(const char* dir, const char* kind, char* path, size_t capacity) {
  const int length = std::snprintf(path, capacity, "%s/oriel-vulkan.%s", dir, kind);
  return length > 0 && static_cast<size_t>(length) < capacity;
}

bool VulkanRecord::start(const char* dir, bool died, bool counts) {
  if (!makePath(dir, kVerdictKind, path_, sizeof(path_))) {
    path_[0] = '\0';
    return true;
  }
  RecordFile file = {};
  there_ = readIfThere(path_, &file, sizeof(file)) &&
           std::memcmp(file.magic, kRecordMagic, sizeof(kRecordMagic)) == 0 &&
           file.hash == hashBytes(&file, offsetof(RecordFile, hash));
  if (!there_) {
    file = {};
  }
  if (died) {
    file.starts = startsAfter(file.deaths, kMostRecordStarts);
    ++file.deaths;
  }
  if (file.starts == 0) {
    return true;
  }
  if (!died && !counts) {
    return false;
  }
  file.starts -= counts ? 1 : 0;
  std::memcpy(file.magic, kRecordMagic, sizeof(kRecordMagic));
  file.hash = hashBytes(&file, offsetof(RecordFile, hash));
  (void)writeFileAtomically(path_, &file, sizeof(file), FileUse::kCache, Log()).ok();
  return false;
}

void VulkanRecord::survived() {
  if (there_) {
    removeFile(path_);
  }
}

uint32_t forgetVerdicts(const char* dir, uint32_t* left) {
  return removeFiles(dir, "oriel-", ".verdict", left) +
         removeFiles(dir, "oriel-", ".contact", left);
}

// ---- The marker -----------------------------------------------------------------------------------

namespace {

constexpr char kMarkerMagic[8] = {'O', 'r', 'i', 'e', 'l', 'D', 'W', '\n'};

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
    if (std::memcmp(file.magic, kMarkerMagic, sizeof(kMarkerMagic)) == 0 &&
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
  std::memcpy(file.magic, kMarkerMagic, sizeof(kMarkerMagic));
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
