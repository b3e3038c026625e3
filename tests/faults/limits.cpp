#include "faults/limits.h"

#include <algorithm>
#include <memory>

#include "faults/vulkan_faults.h"
#include "os/os.h"

namespace oriel::test {
namespace {

constexpr uint64_t kLittleBytes = 1 << 18;
constexpr uint32_t kSlowMs = 30;

oriel_status does(World& world, const char* phase) {
  return phases()[phaseNumber(phase)].run(world);
}

bool doesAll(World& world, std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](const char* name) { return does(world, name) == ORIEL_OK; });
}

size_t errorsOf(const World& world) {
  return static_cast<size_t>(
      std::count_if(world.log.lines.begin(), world.log.lines.end(),
                    [](const CapturedLog::Line& line) { return line.level == ORIEL_LOG_ERROR; }));
}

// "" if the condition holds.
std::string unless(bool holds, const char* problem) {
  return holds ? "" : std::string(problem) + " ";
}

std::string afterwards(World* world) {
  world->end();
  return unless(faultLayer()->objects() == 0, "objects are left") +
         unless(world->ledger.live_bytes == 0, "bytes are left") + faultLayer()->complaints();
}

std::string littleMemory(const Device& device) {
  World world(device);
  faultLayer()->capMemory(kLittleBytes);
  oriel_device_info listed[8] = {};
  for (oriel_device_info& info : listed) {
    info.struct_size = sizeof(info);
  }
  size_t count = 0;
  std::string problems =
      unless(oriel_device_list(nullptr, nullptr, listed, 8, &count) == ORIEL_OK &&
                 listed[0].memory_bytes == kLittleBytes,
             "the heap is listed as it is not");
  problems += unless(does(world, "load") == ORIEL_ERROR_OUT_OF_MEMORY, "loads into nothing");
  problems += unless(errorsOf(world) == 1, "not one line");
  faultLayer()->clear();
  problems += unless(doesAll(world, {"load", "create", "prefill", "decode"}), "does not recover");
  return problems + afterwards(&world);
}

std::string slowFences(const Device& device) {
  World world(device), twin(device);
  std::string problems =
      unless(doesAll(twin, {"load", "create", "prefill", "decode"}), "does not work");
  const std::vector<int32_t> ids = twin.generated;
  twin.end();
  problems += unless(doesAll(world, {"load again", "create", "prefill"}), "does not load");
  faultLayer()->delayFences(kSlowMs);
  const double begin_ms = nowMs();
  problems += unless(does(world, "decode") == ORIEL_OK && world.log.errors().empty(),
                     "slowness is an error");
  problems += unless(nowMs() - begin_ms >= 6 * kSlowMs, "it was not slow");
  problems += unless(world.generated == ids, "other tokens than when it is fast");
  faultLayer()->clear();
  return problems + afterwards(&world);
}

std::string lateFences(const Device& device) {
  Device hasty = device;
  hasty.timeout_ms = 200;
  World world(hasty);
  std::string problems = unless(doesAll(world, {"load again", "create"}), "does not load");
  world.log.clear();
  faultLayer()->delayFences(600000);
  problems += unless(does(world, "prefill") == ORIEL_ERROR_TIMEOUT, "no timeout");
  problems += unless(errorsOf(world) == 1, "not one line");
  const double begin_ms = nowMs();
  problems += unless(does(world, "prefill") == ORIEL_ERROR_DEVICE && errorsOf(world) == 1,
                     "it is not lost at once");
  problems += unless(nowMs() - begin_ms < 100, "it waits again");
  faultLayer()->clear();  // it comes back before it is destroyed
  return problems + afterwards(&world);
}

}  // namespace

const std::vector<Limit>& limits() {
  static const std::vector<Limit> all = {
      {"little memory", ORIEL_ERROR_OUT_OF_MEMORY, false, littleMemory},
      {"slow fences", ORIEL_OK, false, slowFences},
      {"late fences", ORIEL_ERROR_TIMEOUT, true, lateFences},
  };
  return all;
}

}  // namespace oriel::test
