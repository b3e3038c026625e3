// Files in the cache folder: compiled pipelines, chosen candidates and measured rates. A driver must only get files
// that were saved unchanged. An input: the file's contents, the damage, and the reader.
#ifdef ORIEL_VULKAN

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "base/arena.h"
#include "base/hash.h"
#include "fuzz/fuzz.h"
#include "speed/measure_speed.h"
#include "vulkan/kernels.h"
#include "vulkan/pipelines.h"
#include "vulkan/verdict.h"

namespace oriel_internal::fuzz::fuzz_pipeline_file {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kVendor = 0x10005;
constexpr size_t kDriverHeader = 32;
constexpr uint64_t kPipelinesHash = 80;  // where the file has the payload's
constexpr uint64_t kSpeedHash = 24;      // and the rates', which follow it

/// A driver that stores its input. One at a time: its functions are static.
struct StubDriver {
  static inline std::vector<uint8_t> to_keep;  ///< contents of its cache
  static inline std::vector<uint8_t> handed;
  static inline bool refuses = false;

  static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice, const VkPipelineCacheCreateInfo* info,
                                               const VkAllocationCallbacks*,
                                               VkPipelineCache* cache) {
    const auto* const data = static_cast<const uint8_t*>(info->pInitialData);
    handed.assign(data, data + info->initialDataSize);
    *cache = VK_NULL_HANDLE;
    return refuses && info->initialDataSize != 0 ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_SUCCESS;
  }
  static VKAPI_ATTR VkResult VKAPI_CALL get(VkDevice, VkPipelineCache, size_t* bytes, void* data) {
    if (data != nullptr) {
      std::copy(to_keep.begin(), to_keep.end(), static_cast<uint8_t*>(data));
    }
    *bytes = to_keep.size();
    return VK_SUCCESS;
  }
  static VKAPI_ATTR void VKAPI_CALL destroy(VkDevice, VkPipelineCache,
                                            const VkAllocationCallbacks*) {}
};

/// A folder of this process.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("oriel-fuzz-cache-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  /// The only file; empty: none.
  std::string file() const {
    const fs::directory_iterator first(path_);
    return first == fs::directory_iterator() ? "" : first->path().string();
  }
  std::string fileOf(const std::string& kind) const {
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
      if (entry.path().extension() == "." + kind) {
        return entry.path().string();
      }
    }
    return "";
  }

 private:
  fs::path path_;
};

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// Damage to a file: bytes changed, then truncated or extended.
class Damage {
 public:
  explicit Damage(Input* input) {
    for (uint64_t n = input->byte() % 8; n != 0; --n) {
      const size_t at = input->number(2);
      patches_.emplace_back(at, input->byte());
    }
    longer_by_ = static_cast<int8_t>(input->byte());
  }
  std::string done(std::string bytes) const {
    for (const auto& [at, value] : patches_) {
      if (at < bytes.size()) {
        bytes[at] = static_cast<char>(bytes[at] ^ value);
      }
    }
    const auto size = static_cast<int64_t>(bytes.size());
    bytes.resize(static_cast<size_t>(std::max<int64_t>(0, size + longer_by_)));
    return bytes;
  }

 private:
  std::vector<std::pair<size_t, uint8_t>> patches_;
  int longer_by_ = 0;
};

void putHash(std::string* file, uint64_t at, uint64_t first, uint64_t end) {
  if (at + 8 <= file->size() && first <= end && end <= file->size()) {
    const uint64_t hash = hashBytes(file->data() + first, end - first);
    std::memcpy(file->data() + at, &hash, sizeof(hash));
  }
}

std::unique_ptr<VulkanDevice> stubDevice(uint8_t kind) {
  auto device = std::make_unique<VulkanDevice>();
  device->api.vkCreatePipelineCache = &StubDriver::create;
  device->api.vkGetPipelineCacheData = &StubDriver::get;
  device->api.vkDestroyPipelineCache = &StubDriver::destroy;
  DeviceCaps& caps = device->caps;
  caps.type =
      (kind & 1) != 0 ? VK_PHYSICAL_DEVICE_TYPE_CPU : VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  caps.features = (kind & 2) != 0 ? UINT32_MAX : 0;
  caps.fast_integer_dot = (kind & 4) != 0;
  caps.vendor_id = kVendor;
  caps.device_id = 7;
  caps.driver_version = 3;
  std::memset(caps.pipeline_cache_uuid, 0x5a, sizeof(caps.pipeline_cache_uuid));
  return device;
}

/// The start of a driver's bytes.
std::vector<uint8_t> driverBytes(const DeviceCaps& caps, const std::string& more) {
  std::vector<uint8_t> bytes(kDriverHeader);
  const uint32_t words[] = {kDriverHeader, VK_PIPELINE_CACHE_HEADER_VERSION_ONE, caps.vendor_id,
                            caps.device_id};
  std::memcpy(bytes.data(), words, sizeof(words));
  std::memcpy(bytes.data() + sizeof(words), caps.pipeline_cache_uuid, VK_UUID_SIZE);
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

bool isOfDriver(const DeviceCaps& caps, const std::vector<uint8_t>& bytes) {
  const std::vector<uint8_t> good = driverBytes(caps, "");
  uint32_t header = 0;
  if (bytes.size() < good.size()) {
    return false;
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header >= kDriverHeader && header <= bytes.size() &&
         std::equal(good.begin() + 4, good.end(), bytes.begin() + 4);
}

void pipelines(uint8_t flags, Input* input) {
  Watch watch;
  const Folder folder;
  const std::unique_ptr<VulkanDevice> device = stubDevice(flags);
  const Damage payload_damage(input);
  const Damage damage(input);
  const std::vector<uint8_t> made = driverBytes(device->caps, input->takeRest());
  const std::string payload = payload_damage.done(std::string(made.begin(), made.end()));
  StubDriver::to_keep.assign(payload.begin(), payload.end());
  StubDriver::refuses = (flags & 8) != 0;
  std::vector<uint64_t> scratch(payload.size() / 8 + 100);
  const std::string dir = folder.path();
  {
    PipelineCache cache;
    Workspace work(nullptr, 0, watch.allocator());
    EXPECT_EQ(ORIEL_OK, watch.ended(cache.create(*device, dir.c_str(), &work, watch.log()).code()));
    EXPECT_TRUE(StubDriver::handed.empty());
    cache.save(*device, scratch.data(), scratch.size() * 8, watch.log());
    cache.release(*device);
  }
  const std::string path = folder.fileOf("pipelines");
  const std::vector<std::string> kept = readFiles(path);
  if (kept.empty()) {
    return;  // a driver that says so little has nothing to keep
  }
  std::string spoilt = damage.done(kept[0]);
  if ((flags & 16) != 0) {
    putHash(&spoilt, kPipelinesHash, kPipelinesHash + 8, spoilt.size());
  }
  write(path, spoilt);
  PipelineCache cache;
  Workspace work(nullptr, 0, watch.allocator());
  EXPECT_EQ(ORIEL_OK, watch.ended(cache.create(*device, dir.c_str(), &work, watch.log()).code()));
  const std::vector<uint8_t> seen = StubDriver::handed;
  if (!seen.empty()) {
    pastFirstCheck();
    EXPECT_TRUE(isOfDriver(device->caps, seen));
    EXPECT_EQ(spoilt.substr(spoilt.size() - seen.size()), std::string(seen.begin(), seen.end()));
    EXPECT_TRUE((flags & 16) != 0 || spoilt == kept[0]);
    EXPECT_FALSE(StubDriver::refuses);
  } else {
    EXPECT_TRUE(StubDriver::refuses || spoilt != kept[0] ||
                !isOfDriver(device->caps, StubDriver::to_keep));
  }
  cache.release(*device);
  watch.expectPeakBelow(2 * spoilt.size() + 1000);
}

void choices(uint8_t flags, Input* input) {
  Watch watch;
  const Folder folder;
  const DeviceCaps caps = stubDevice(flags)->caps;
  const Damage damage(input);
  const std::string dir = folder.path();
  const Verdict verdict;
  const auto kept = std::make_unique<MatmulChoices>();
  kept->create(caps, verdict, dir.c_str(), watch.log());
  for (uint64_t n = input->byte() % 8 + 1; n != 0; --n) {
    const auto use = static_cast<MatmulUse>(input->byte() % kMatmulUses);
    const auto type = static_cast<WeightType>(input->byte() % kWeightTypes);
    const uint32_t index = input->byte() % 8;
    if (kept->candidate(use, type, index) != nullptr) {
      EXPECT_TRUE(kept->keep(use, type, index, watch.log()));
    }
  }
  const std::string path = folder.fileOf("kernels");
  const std::vector<std::string> before = readFiles(path);
  if (before.empty()) {
    return;
  }
  pastFirstCheck();
  std::string spoilt = damage.done(before[0]);
  if ((flags & 16) != 0 && spoilt.size() > 8) {
    putHash(&spoilt, spoilt.size() - 8, 0, spoilt.size() - 8);
  }
  write(path, spoilt);
  const auto read = std::make_unique<MatmulChoices>();
  read->create(caps, verdict, dir.c_str(), watch.log());
  for (uint32_t i = 0; i < kMatmulUses * kWeightTypes; ++i) {
    const auto use = static_cast<MatmulUse>(i / kWeightTypes);
    const auto type = static_cast<WeightType>(i % kWeightTypes);
    EXPECT_NE(nullptr, read->candidate(use, type, read->choice(use, type)));
    if (spoilt == before[0]) {
      EXPECT_EQ(kept->choice(use, type), read->choice(use, type));
      EXPECT_EQ(kept->measured(use, type), read->measured(use, type));
    } else if ((flags & 16) == 0) {
      EXPECT_FALSE(read->measured(use, type));
    }
  }
}

void rates(uint8_t flags, Input* input) {
  Watch watch;
  const Folder folder;
  const std::string dir = folder.path();
  const Damage damage(input);
  DeviceSpeed wanted;
  std::memset(static_cast<void*>(&wanted), 0, sizeof(wanted));
  std::snprintf(wanted.device, sizeof(wanted.device), "a device");
  std::snprintf(wanted.driver, sizeof(wanted.driver), "its driver");
  wanted.shape = input->number(2);
  DeviceSpeed speed = wanted;
  speed.submit_ns = static_cast<double>(input->number(3));
  speed.weight_count = input->byte() % (kMaxSpeedWeights + 1);
  speed.cache_count = input->byte() % (kMaxSpeedCaches + 1);
  writeSpeedFile(dir.c_str(), speed, watch.log());
  const std::string path = folder.file();
  std::string spoilt = damage.done(readFiles(path).at(0));
  const bool same = spoilt == readFiles(path).at(0);
  if ((flags & 16) != 0) {
    putHash(&spoilt, kSpeedHash, kSpeedHash + 8, spoilt.size());
  }
  write(path, spoilt);
  DeviceSpeed read = wanted;
  const bool found = readSpeedFile(dir.c_str(), &read);
  EXPECT_TRUE(!same || found);
  EXPECT_TRUE(same || (flags & 16) != 0 || !found);
  EXPECT_EQ(0, std::memcmp(read.device, wanted.device, sizeof(wanted.device)));
  if (found) {
    pastFirstCheck();
    EXPECT_TRUE(validSpeed(read));
    EXPECT_LE(read.weight_count, kMaxSpeedWeights);
    EXPECT_LE(read.cache_count, kMaxSpeedCaches);
    EXPECT_EQ(wanted.shape, read.shape);
  } else {
    EXPECT_EQ(0, std::memcmp(&read, &wanted, sizeof(read)));
  }
}

}  // namespace

ORIEL_FUZZ(pipeline_file) {
  Input input(data, size);
  const uint8_t which = input.byte();
  const uint8_t flags = input.byte();
  switch (which % 3) {
    case 0:
      return pipelines(flags, &input);
    case 1:
      return choices(flags, &input);
    default:
      return rates(flags, &input);
  }
}

ORIEL_FUZZ_SEEDS(pipeline_file) {
  const std::string none(1, '\0');
  for (uint8_t which = 0; which < 3; ++which) {
    for (const int flags : {0, 1, 2, 7, 8, 16, 23, 31}) {
      const std::string head = {static_cast<char>(which), static_cast<char>(flags)};
      seeds->push_back(head + none + none + none + none + "\3\1\2\3\4\5\6 what a driver keeps");
      // A word of the header changed; the file longer, and shorter.
      seeds->push_back(head + none + none + std::string("\1\x0c\0\1\0", 5) +
                       "\5\0\6\3\1\7\2 pipelines");
      seeds->push_back(head + std::string("\2\4\0\1\5\0\1\4", 8) +
                       std::string("\1\x50\0\1\xfc", 5) + "\5\0\6\3\1\7\2");
    }
  }
}

}  // namespace oriel_internal::fuzz::fuzz_pipeline_file

#endif  // ORIEL_VULKAN
