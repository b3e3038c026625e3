#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "bundle/checks.h"
#include "support/encoding.h"

namespace oriel_internal::bundle {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "llama-q4_0";
/// Practically endless, but ends even if cancelling is broken.
constexpr uint32_t kManyTokens = 20000;

oriel_status tryToLoad(const std::string& path, const Options& options) {
  oriel_model* model = nullptr;
  const oriel_status status = oriel_model_load(path.c_str(), &options, &model);
  oriel_model_free(model);
  return status;
}

void write(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream out(fs::u8path(path), std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

/// malloc that fails after a number of blocks.
struct RefusingAllocator {
  int left;
  int live = 0;

  oriel_allocator allocator() { return {allocate, release, this}; }
  static void* allocate(size_t bytes, void* user) {
    auto* self = static_cast<RefusingAllocator*>(user);
    if (self->left-- <= 0) {
      return nullptr;
    }
    // Space for malloc's pointer before the aligned block.
    void* raw = std::malloc(bytes + 64 + sizeof(void*));
    if (raw == nullptr) {
      return nullptr;
    }
    ++self->live;
    auto address = reinterpret_cast<uintptr_t>(raw) + sizeof(void*);
    address = (address + 63) & ~uintptr_t{63};
    reinterpret_cast<void**>(address)[-1] = raw;
    return reinterpret_cast<void*>(address);
  }
  static void release(void* block, size_t, void* user) {
    if (block != nullptr) {
      --static_cast<RefusingAllocator*>(user)->live;
      std::free(static_cast<void**>(block)[-1]);
    }
  }
};

/// Refuses the first block, the second, ... until loading succeeds: OUT_OF_MEMORY each time, nothing leaked.
void checkRefusedMemory(const Device& device, CheckList* list) {
  constexpr int kMost = 64;
  for (int blocks = 0; blocks < kMost; ++blocks) {
    RefusingAllocator refusing{blocks};
    const oriel_allocator allocator = refusing.allocator();
    Options options = device.options();
    options.allocator = &allocator;
    const oriel_status status = tryToLoad(device.model(kModel), options);
    if (refusing.live != 0) {
      list->end(false, std::to_string(refusing.live) + " blocks were not given back");
      return;
    }
    if (status == ORIEL_OK) {
      list->end(blocks > 0, "refused " + std::to_string(blocks) + " times, then loaded");
      return;
    }
    if (status != ORIEL_ERROR_OUT_OF_MEMORY) {
      list->status(status, ORIEL_ERROR_OUT_OF_MEMORY);
      return;
    }
  }
  list->end(false, "still refused after " + std::to_string(kMost) + " blocks");
}

/// Damaged pipelines on disk must neither crash nor change a result.
void checkDamagedCache(const Device& device, CheckList* list) {
  const std::string folder = device.scratch + "/pipelines";
  fs::create_directories(fs::u8path(folder));
  Options options = device.options();
  options.cache_folder = folder.c_str();
  const std::vector<int32_t> ids = test::someIds(20, 384);
  const auto want = evaluate(open(device.model(kModel), options), ids);
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::u8path(folder))) {
    if (entry.is_regular_file()) {
      std::vector<uint8_t> bytes = test::readBytes(entry.path().u8string());
      for (size_t i = bytes.size() / 3; i < bytes.size(); i += 97) {
        bytes[i] ^= 0x5a;
      }
      bytes.resize(bytes.size() - bytes.size() / 4);
      write(entry.path().u8string(), bytes);
      ++files;
    }
  }
  if (files == 0) {
    list->skip("nothing was kept on disk");
    return;
  }
  const auto got = evaluate(open(device.model(kModel), options), ids);
  list->end(got == want, std::to_string(files) + " damaged files, " +
                             (got == want ? "same logits" : "other logits"));
}

/// A long generation is cancelled from another thread; the session continues afterwards.
void checkCancel(const Device& device, CheckList* list) {
  const Loaded loaded = open(device.model(kModel), device.options());
  append(loaded, test::someIds(8, 384));
  struct Started {
    oriel_session* session;
    std::thread canceller;
  } started{loaded.session.get(), {}};
  const auto on_token = [](const oriel_token_event*, void* user) {
    auto* self = static_cast<Started*>(user);
    if (!self->canceller.joinable()) {
      self->canceller = std::thread([self] { oriel_session_cancel(self->session); });
    }
    return 0;
  };
  ReplyOptions options = test::greedyOptions(kManyTokens);
  options.set("ignore_stop", true);
  const oriel_status status =
      oriel_session_generate(loaded.session.get(), &options, on_token, &started, nullptr);
  if (started.canceller.joinable()) {
    started.canceller.join();
  }
  if (status != ORIEL_ERROR_CANCELLED) {
    list->status(status, ORIEL_ERROR_CANCELLED);
    return;
  }
  const size_t after = greedy(loaded, 4).size();
  list->end(after == 4, "cancelled, " + std::to_string(after) + " tokens afterwards");
}

}  // namespace

void checkFaults(const Device& device, CheckList* list) {
  const std::string group = "faults";
  const auto refused = [&](const std::string& name, const std::string& path, const Options& options,
                           oriel_status wanted) {
    list->run(group, name, [&] { list->status(tryToLoad(path, options), wanted); });
  };
  refused("a file that is not there", device.scratch + "/none.gguf", device.options(),
          ORIEL_ERROR_IO);

  const std::string bent = device.scratch + "/bent.gguf";
  std::vector<uint8_t> bytes = test::readBytes(device.model(kModel));
  if (bytes.empty()) {
    throw std::runtime_error(device.model(kModel) + " is empty");
  }
  write(bent, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2)});
  refused("half a file", bent, device.options(), ORIEL_ERROR_FORMAT);
  bytes[0] ^= 0xff;
  write(bent, bytes);
  refused("a file of another kind", bent, device.options(), ORIEL_ERROR_FORMAT);

  Options options = device.options();
  options.memory_bytes = 100000;
  refused("too little memory", device.model(kModel), options, ORIEL_ERROR_MEMORY_BUDGET);
  options = device.options();
  options.device = "vulkan:98";
  refused("a device that is not there", device.model(kModel), options, ORIEL_ERROR_NO_DEVICE);

  list->run(group, "memory that is refused", [&] { checkRefusedMemory(device, list); });
  list->run(group, "a damaged cache folder", [&] { checkDamagedCache(device, list); });
  list->run(group, "cancelled from another thread", [&] { checkCancel(device, list); });
}

}  // namespace oriel_internal::bundle
