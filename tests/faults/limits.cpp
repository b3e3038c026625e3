#include "faults/file_faults.h"

#include <algorithm>
#include <memory>

#include "os/os.h"

namespace oriel_internal::test {
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
  char listed[8192];
  size_t needed = 0;
  const std::string heap = "\"memory_bytes\": " + std::to_string(kLittleBytes) + ",";
  std::string problems =
      unless(oriel_device_describe(nullptr, 0, listed, sizeof(listed), &needed) == ORIEL_OK &&
                 std::string(listed).find(heap) != std::string::npos,
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

// A device with a short time limit that is still enough on this machine: four times the total work of a twin.
Device hastyAfter(double worked_ms, const Device& device) {
  Device hasty = device;
  hasty.timeout_ms = 500 + static_cast<uint32_t>(4 * worked_ms);
  return hasty;
}

std::string lateFences(const Device& device) {
  World twin(device);
  const double twin_ms = nowMs();
  std::string problems =
      unless(doesAll(twin, {"load again", "create", "prefill"}), "does not work");
  const Device hasty = hastyAfter(nowMs() - twin_ms, device);
  twin.end();
  World world(hasty);
  problems += unless(doesAll(world, {"load again", "create"}), "does not load");
  world.log.clear();
  faultLayer()->delayFences(600000);
  problems += unless(does(world, "prefill") == ORIEL_ERROR_TIMEOUT, "no timeout");
  problems += unless(errorsOf(world) == 1, "not one line");
  const double begin_ms = nowMs();
  problems += unless(does(world, "prefill") == ORIEL_ERROR_DEVICE && errorsOf(world) == 1,
                     "it is not lost at once");
  problems += unless(nowMs() - begin_ms < hasty.timeout_ms, "it waits again");
  faultLayer()->clear();  // it comes back before it is destroyed
  return problems + afterwards(&world);
}

// The session's next output equals that of a twin without a loss.
std::string goesOnAs(World* twin, World* world) {
  twin->generated.clear();
  world->generated.clear();
  std::string problems;
  for (World* const each : {twin, world}) {
    ReplyOptions options;
    options.max_tokens = 8;
    options.greedy = 1;
    options.set("ignore_stop", true);
    const auto keep = [](const oriel_token_event* event, void* user) {
      static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
      return 0;
    };
    problems += unless(oriel_session_generate(each->session, &options, keep, &each->generated,
                                              nullptr) == ORIEL_OK,
                       "does not go on");
  }
  return problems + unless(world->generated == twin->generated, "other tokens than undisturbed");
}

struct Recovering {
  const char* device = "auto";
  bool on_cpu = false;  ///< afterwards
  bool same = true;
};

std::string recoversTo(const Recovering& way, World* world) {
  oriel_recovered recovered = ORIEL_INIT(oriel_recovered);
  world->log.clear();
  const oriel_status status =
      oriel_session_recover(world->session, way.device, 0, nullptr, nullptr, &recovered);
  return unless(status == ORIEL_OK && errorsOf(*world) == 0, "does not recover") +
         unless((recovered.on_cpu != 0) == way.on_cpu,
                "is on another kind of device than expected") +
         unless((recovered.same_device != 0) == way.same, "whether it is the same is not right") +
         unless(recovered.exact == 1, "does not know every token");
}

// A device that hangs and comes back, or never does: then it is skipped, and its memory is leaked.
std::string hangs(const Device& device, bool comes_back) {
  World twin(device);
  const double twin_ms = nowMs();
  std::string problems =
      unless(doesAll(twin, {"load again", "create", "prefill", "decode"}), "does not work");
  const Device hasty = hastyAfter(nowMs() - twin_ms, device);
  World world(hasty);
  problems +=
      unless(doesAll(world, {"load again", "create", "prefill", "decode"}), "does not load");
  faultLayer()->delayFences(600000);
  const int32_t id = 5;
  problems +=
      unless(oriel_session_append(world.session, &id, 1, nullptr, nullptr) == ORIEL_ERROR_TIMEOUT,
             "no timeout");
  if (comes_back) {
    faultLayer()->clear();
    problems += recoversTo({}, &world);
  } else {
    const double begin_ms = nowMs();
    problems += recoversTo({"auto", true, false}, &world);
    problems += unless(nowMs() - begin_ms < hasty.timeout_ms, "waits for what never comes");
    faultLayer()->clear();
  }
  problems += goesOnAs(&twin, &world);
  twin.end();
  world.end();
  return problems + unless(world.ledger.live_bytes == 0, "bytes are left") +
         unless(comes_back == (faultLayer()->objects() == 0), "objects are left, or are not") +
         faultLayer()->complaints();
}

std::string hangsForAWhile(const Device& device) { return hangs(device, true); }

std::string hangsForEver(const Device& device) { return hangs(device, false); }

// From the first Vulkan device to the second, and to the CPU.
std::string otherDevices(const Device& device) {
  World world(device), twin(device);
  std::string problems = unless(doesAll(twin, {"load", "create", "prefill", "decode"}) &&
                                    doesAll(world, {"load again", "create", "prefill", "decode"}),
                                "does not load");
  for (const Recovering& way :
       {Recovering{"vulkan:1", false, false}, Recovering{"vulkan:0", false, false},
        Recovering{"cpu", true, false}}) {
    problems += unless(does(world, "lose") == ORIEL_OK, "cannot be lost");
    problems += recoversTo(way, &world);
    problems += goesOnAs(&twin, &world);
  }
  twin.end();
  return problems + afterwards(&world);
}

}  // namespace

const std::vector<Limit>& limits() {
  static const std::vector<Limit> all = {
      {"little memory", 1, ORIEL_ERROR_OUT_OF_MEMORY, false, littleMemory},
      {"slow fences", 1, ORIEL_OK, false, slowFences},
      {"late fences", 1, ORIEL_ERROR_TIMEOUT, true, lateFences},
      {"recovery on other devices", 2, ORIEL_OK, false, otherDevices},
      {"recovery of one that hangs for a while", 1, ORIEL_OK, false, hangsForAWhile},
      {"recovery of one that hangs for ever", 1, ORIEL_OK, false, hangsForEver},
  };
  return all;
}

}  // namespace oriel_internal::test
