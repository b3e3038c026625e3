#include "faults/runner.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "faults/file_faults.h"
#include "os/os.h"
#include "vulkan/loader.h"

namespace oriel_internal::test {
namespace {

/// More calls of one site than this in one phase are failed at three places. A model that a GPU runs takes a while to
/// load again.
constexpr uint64_t kAFew = 6, kMany = 64;

bool isOneOf(const std::string& text, std::initializer_list<const char*> all) {
  return std::any_of(all.begin(), all.end(), [&](const char* one) { return text == one; });
}

Right goesOn() { return {true, false, ORIEL_OK}; }
Right fails(oriel_status status) { return {false, true, status}; }
Right either(oriel_status status) { return {true, true, status}; }

// docs/api.md: refused memory; an unusable device; a lost device, or a driver failure.
Right rightOfVulkan(const Fault& fault) {
  if (isOneOf(fault.site, {"vkEnumerateInstanceExtensionProperties", "vkGetPipelineCacheData"})) {
    return goesOn();  // extensions and kept kernels are extras
  }
  if (isOneOf(fault.site, {"vkEnumerateInstanceVersion", "vkCreateInstance"}) ||
      (fault.site == "vkEnumeratePhysicalDevices" &&
       fault.result == VK_ERROR_INITIALIZATION_FAILED)) {
    return fails(ORIEL_ERROR_NO_DEVICE);
  }
  const bool memory =
      fault.result == VK_ERROR_OUT_OF_HOST_MEMORY || fault.result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const Right right = fails(memory ? ORIEL_ERROR_OUT_OF_MEMORY : ORIEL_ERROR_DEVICE);
  if (fault.site == "vkWaitForFences" && memory) {
    return goesOn();  // asked again
  }
  // For a cache: first the stored data, then an empty one. Extensions are optional, too, but the loader also asks for
  // them and then makes no device.
  return isOneOf(fault.site, {"vkCreatePipelineCache", "vkEnumerateDeviceExtensionProperties"})
             ? either(right.status)
             : right;
}

// Files named by the app must be accessible; all others are optional, or have an alternative.
Right rightOfFile(const Fault& fault) {
  const size_t space = fault.site.find(' ');
  const std::string call = fault.site.substr(0, space);
  const std::string kind = space == std::string::npos ? "" : fault.site.substr(space + 1);
  if (call == "dlsym" && kind.empty()) {
    // Between two loads of the device its kernels are tested in a third; if that fails, it is used untested.
    const bool test =
        fault.phase == phaseNumber("load") && fault.nth != 1 && fault.nth != fault.calls;
    return test ? goesOn() : fails(ORIEL_ERROR_NO_DEVICE);
  }
  if (call == "dlopen") {  // its second name may be there
    return either(ORIEL_ERROR_NO_DEVICE);
  }
  if (fault.result == EINTR || fault.result == kCutShort ||
      !isOneOf(kind, {"model", "snapshot", "spill"}) ||
      isOneOf(call, {"close", "posix_fadvise64", "unlink", "unlinkat", "opendir", "readdir64",
                     "closedir", "fstatat64", "openat64", "flock", "link"})) {
    return goesOn();
  }
  const bool new_name = kind != "model" && (call == "fstat64" || fault.result == ENOENT);
  return new_name ? either(ORIEL_ERROR_IO) : fails(ORIEL_ERROR_IO);
}

// Calls that list devices, before one is made.
bool isOfAList(const std::string& site) {
  return isOneOf(site, {"vkEnumerateInstanceVersion", "vkCreateInstance",
                        "vkEnumeratePhysicalDevices", "dlsym"});
}

Right rightWherever(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::kVulkan:
      return rightOfVulkan(fault);
    case FaultKind::kMissing:
      return fails(ORIEL_ERROR_NO_DEVICE);
    case FaultKind::kAllocation:
      return fails(ORIEL_ERROR_OUT_OF_MEMORY);
    case FaultKind::kFile:
      return rightOfFile(fault);
  }
  return {};
}

}  // namespace

std::string Fault::resultName() const {
  switch (kind) {
    case FaultKind::kVulkan:
      return nameOfVkResult(result);
    case FaultKind::kFile:
      return nameOfFileResult(result);
    case FaultKind::kMissing:
      return "is not there";
    case FaultKind::kAllocation:
      return "null";
  }
  return "?";
}

std::string Fault::text() const {
  return std::string(phases()[phase].name) + ": " + site + " " + std::to_string(nth) + " of " +
         std::to_string(calls) + ", " + resultName();
}

// Nothing has a status before a device is destroyed. A plan lists the devices only for its default memory, and takes the
// system's where it cannot. A recovery that cannot list them still tries to make one.
Right rightOf(const Fault& fault) {
  if (fault.phase == phaseNumber("destroy") ||
      (fault.phase == phaseNumber("describe") && isOfAList(fault.site))) {
    return goesOn();
  }
  const Right right = rightWherever(fault);
  const bool lists = fault.phase == phaseNumber("recover") && isOfAList(fault.site) &&
                     2 * fault.nth <= fault.calls;
  return lists ? either(right.status) : right;
}

std::vector<uint64_t> chosen(FaultKind kind, uint64_t calls) {
  std::vector<uint64_t> all;
  for (uint64_t n = 1; n <= calls; ++n) {
    if (calls <= (kind == FaultKind::kVulkan ? kAFew : kMany) || n == 1 || n == (calls + 1) / 2 ||
        n == calls) {
      all.push_back(n);
    }
  }
  return all;
}

std::vector<int> resultsOf(FaultKind kind, const std::string& site) {
  if (kind == FaultKind::kVulkan) {
    for (const VulkanCall& call : vulkanCalls()) {
      if (call.name == site) {
        return call.results;
      }
    }
    return {};
  }
  if (kind == FaultKind::kFile) {
    for (const FileCall& call : fileCalls()) {
      if (site == call.name || site.rfind(std::string(call.name) + " ", 0) == 0) {
        return call.results;
      }
    }
    return {};
  }
  return {0};
}

void armNothing(World* world) {
  world->ledger.calls = 0;
  world->ledger.refuse_nth = 0;
  if (faultLayer() != nullptr) {
    faultLayer()->clear();
  }
  FileFaults::all().arm();
}

void arm(const Fault& fault, World* world) {
  armNothing(world);
  switch (fault.kind) {
    case FaultKind::kVulkan:
      faultLayer()->fail(fault.site.c_str(), fault.nth, fault.result, 0);
      break;
    case FaultKind::kMissing:
      hideFunction(fault.site);
      break;
    case FaultKind::kAllocation:
      world->ledger.refuse_nth = fault.nth;
      break;
    case FaultKind::kFile:
      FileFaults::all().arm(fault.site, fault.nth, fault.result);
      break;
  }
}

bool fired(const Fault& fault, const World& world) {
  switch (fault.kind) {
    case FaultKind::kVulkan:
      return faultLayer()->failed() != 0;
    case FaultKind::kMissing:
      return true;
    case FaultKind::kAllocation:
      return world.ledger.calls >= fault.nth;
    case FaultKind::kFile:
      return FileFaults::all().fired();
  }
  return false;
}

void disarm(World* world) {
  world->ledger.refuse_nth = 0;
  if (faultLayer() != nullptr) {
    faultLayer()->clear();
  }
  hideFunction("");
  FileFaults::all().disarm();
}

std::vector<Sites> seen(const World& world) {
  std::vector<Sites> all;
  if (faultLayer() != nullptr) {
    faultLayer()->visit(
        [](const char* function, uint64_t calls, void* user) {
          static_cast<std::vector<Sites>*>(user)->push_back({FaultKind::kVulkan, function, calls});
        },
        &all);
  }
  for (const auto& [site, calls] : FileFaults::all().counts()) {
    all.push_back({FaultKind::kFile, site, calls});
  }
  if (world.ledger.calls != 0) {
    all.push_back({FaultKind::kAllocation, "allocate", world.ledger.calls});
  }
  return all;
}

namespace {

uint32_t errorLines(const World& world) {
  return static_cast<uint32_t>(
      std::count_if(world.log.lines.begin(), world.log.lines.end(),
                    [](const CapturedLog::Line& line) { return line.level == ORIEL_LOG_ERROR; }));
}

void add(std::string* problems, const std::string& problem) {
  if (!problem.empty()) {
    *problems += (problems->empty() ? "" : "; ") + problem;
  }
}

bool is(size_t phase, const char* name) { return std::strcmp(phases()[phase].name, name) == 0; }

// A separate world: the phase makes or frees the model.
bool beginsAnew(size_t phase) {
  return is(phase, "describe") || is(phase, "load") || is(phase, "load again");
}

// Leftovers are removed when a file of that name is written next.
bool keepsTemporary(const Fault& fault) {
  const std::string call = fault.site.substr(0, fault.site.find(' '));
  const auto any = {"unlink", "unlinkat", "opendir", "readdir64", "fstatat64", "openat64", "flock"};
  return fault.kind == FaultKind::kFile &&
         std::any_of(any.begin(), any.end(), [&](const char* one) { return call == one; });
}

uint64_t callsOfVulkan() {
  uint64_t all = 0;
  if (faultLayer() != nullptr) {
    faultLayer()->visit(
        [](const char*, uint64_t calls, void* user) { *static_cast<uint64_t*>(user) += calls; },
        &all);
  }
  return all;
}

}  // namespace

Runner::Runner(const Device& device) : device_(device), world_(new World(device)) {
  FileFaults& files = FileFaults::all();
  files.name(device.model, "model");
  files.name(device.model + ".calibration.json", "calibration");
  files.name(world_->path("cache"), "cache");
  files.name(world_->path("snapshots"), "snapshot");
  files.name(world_->path("spill"), "spill");
  files.name(world_->path("recall"), "recall");
  for (const char* folder : {"/proc", "/sys", "/dev"}) {
    files.name(folder, "system");
  }
}

Runner::~Runner() = default;

oriel_status Runner::runPhase(size_t phase) { return phases()[phase].run(*world_); }

// Up to where the phase begins.
bool Runner::prepare(size_t phase) {
  disarm(world_.get());
  world_->endSessions();
  world_->clearFolders();
  if (beginsAnew(phase)) {
    world_->end();
  }
  for (const char* before : phases()[phase].behind) {
    const bool load = std::strcmp(before, "load") == 0;
    if (load && world_->model != nullptr) {
      continue;
    }
    if (runPhase(load ? phaseNumber("load again") : phaseNumber(before)) != ORIEL_OK) {
      return false;
    }
  }
  if (is(phase, "load again")) {
    world_->end();
  }
  return true;
}

bool Runner::count(const std::string& only) {
  const size_t colon = only.find(':');  // after the phase in the fault's description
  std::string problems;
  for (size_t phase = 0; phase < phases().size(); ++phase) {
    const bool chosen = colon == std::string::npos ||
                        (std::string(phases()[phase].name) + ":").find(only.substr(0, colon + 1)) !=
                            std::string::npos;
    if (phases()[phase].what == nullptr || !chosen) {
      continue;
    }
    // the driver's first-time allocations are excluded
    for (const bool rehearsal : {true, false}) {
      Twin twin;
      if (!prepare(phase)) {
        std::fprintf(stderr, "phase %s does not work: %s\n", phases()[phase].name,
                     world_->log.errors().c_str());
        return false;
      }
      twin.before = world_->point();
      armNothing(world_.get());
      const oriel_status status = runPhase(phase);
      const std::vector<Sites> sites = seen(*world_);
      disarm(world_.get());
      if (status != ORIEL_OK) {
        std::fprintf(stderr, "phase %s ends with %s: %s\n", phases()[phase].name,
                     oriel_status_text(status), world_->log.errors().c_str());
        return false;
      }
      twin.after = world_->point();
      twin.proof = proof();
      twins_[phase] = twin;
      for (const Sites& site : sites) {
        if (!rehearsal) {
          counts_.push_back({phase, site});
        }
      }
    }
  }
  if (!endWorld(&problems)) {
    std::fprintf(stderr, "nothing was failed, and still: %s\n", problems.c_str());
  }
  return problems.empty();
}

std::vector<Fault> Runner::faults() const {
  std::vector<Fault> all;
  for (const Count& count : counts_) {
    const Sites& sites = count.sites;
    if (sites.kind == FaultKind::kVulkan && is(count.phase, "load")) {
      continue;  // asks the driver for what "load again" does
    }
    for (const int result : resultsOf(sites.kind, sites.site)) {
      for (const uint64_t nth : chosen(sites.kind, sites.calls)) {
        all.push_back({sites.kind, count.phase, sites.site, nth, sites.calls, result});
      }
    }
  }
  if (device_.vulkan) {
    for (const VulkanCall& call : vulkanCalls()) {
      if (call.name == "vkDestroyInstance") {
        continue;  // otherwise the instance could not be destroyed
      }
      all.push_back({FaultKind::kMissing, phaseNumber("load again"), call.name, 1, 1, 0});
    }
  }
  return all;
}

// With a session that can continue. Empty: it fails.
std::vector<int32_t> Runner::proof() {
  World& world = *world_;
  std::vector<int32_t> ids;
  const auto works = [&](const char* phase) { return runPhase(phaseNumber(phase)) == ORIEL_OK; };
  if (world.model == nullptr && !works("load again")) {
    return ids;
  }
  if (world.session == nullptr && !works("create")) {
    return ids;
  }
  if (world.trimmed() && !works("resume")) {
    return ids;
  }
  if (world.position() == 0 && !works("prefill")) {
    return ids;
  }
  ReplyOptions options;
  options.max_tokens = 4;
  options.greedy = 1;
  options.seed = 1;
  options.set("ignore_stop", true);
  const auto keep = [](const oriel_token_event* event, void* user) {
    static_cast<std::vector<int32_t>*>(user)->push_back(event->id);
    return 0;
  };
  if (world.reply_begin != 0) {
    return world.generated;  // of a reply that has ended nothing follows
  }
  const oriel_status status = oriel_session_generate(world.session, &options, keep, &ids, nullptr);
  return status == ORIEL_OK || status == ORIEL_ERROR_STATE ? ids : std::vector<int32_t>();
}

bool Runner::endWorld(std::string* problems) {
  world_->end();
  const uint64_t bytes = world_->ledger.live_bytes;
  add(problems, bytes == 0 ? "" : std::to_string(bytes) + " bytes were not given back");
  if (faultLayer() != nullptr) {
    const uint64_t objects = faultLayer()->objects();
    add(problems, objects == 0 ? "" : std::to_string(objects) + " objects of Vulkan are left");
    add(problems, faultLayer()->complaints());
  }
  if (!problems->empty()) {
    world_ = std::make_unique<World>(device_);
  }
  return problems->empty();
}

// Every device call fails at once with one line, without using the device.
void Runner::expectLost(Outcome* outcome) {
  World& world = *world_;
  world.log.clear();
  const uint64_t calls = callsOfVulkan();
  const int32_t id = 1;
  const float* logits = nullptr;
  size_t count = 0;
  oriel_session* another = nullptr;
  ReplyOptions options;
  options.max_tokens = 1;
  if (world.trimmed()) {
    add(&outcome->problems, runPhase(phaseNumber("resume")) == ORIEL_ERROR_DEVICE &&
                                    errorLines(world) == 0 && callsOfVulkan() == calls
                                ? ""
                                : "the lost model is resumed, or not at once");
    return;
  }
  if (world.session == nullptr) {
    add(&outcome->problems,
        oriel_session_create(world.model, nullptr, &another) == ORIEL_OK &&
                oriel_session_append(another, &id, 1, nullptr, nullptr) == ORIEL_ERROR_DEVICE &&
                errorLines(world) == 0 && callsOfVulkan() == calls
            ? ""
            : "a session of the lost model is not made, or not lost at once");
    oriel_session_destroy(another);
    return;
  }
  bool right = true;
  for (const oriel_status status :
       {oriel_session_append(world.session, &id, 1, nullptr, nullptr),
        oriel_session_generate(world.session, &options, nullptr, nullptr, nullptr),
        oriel_session_logits(world.session, &logits, &count),
        oriel_session_save(world.session, world.path("snapshots/lost").c_str(), 0),
        oriel_session_reset(world.session), oriel_session_fork(world.session, &another)}) {
    right = right && status == ORIEL_ERROR_DEVICE;
  }
  add(&outcome->problems, right ? "" : "a call on the lost session is not ORIEL_ERROR_DEVICE");
  add(&outcome->problems,
      callsOfVulkan() == calls ? "" : "the lost device was asked for something");
  add(&outcome->problems, errorLines(world) == 0 ? "" : "that it is lost is said again");
  std::vector<int32_t> ids(256);
  add(&outcome->problems,
      oriel_session_get_tokens(world.session, 0, ids.data(), ids.size(), &count) == ORIEL_OK
          ? ""
          : "the tokens of the lost session cannot be had");
}

// The failure left nothing behind.
void Runner::expectUnchanged(const Fault& fault, const Twin& twin, Outcome* outcome) {
  const Phase& phase = phases()[fault.phase];
  Point point = world_->point();
  if (is(fault.phase, "recover")) {  // what there was of the old device may be gone
    add(&outcome->problems, world_->lost() ? "" : "it is not lost any more");
    point.live_bytes = std::max(point.live_bytes, twin.before.live_bytes);
    point.objects = std::max(point.objects, twin.before.objects);
    point.descriptors = std::max(point.descriptors, twin.before.descriptors);
  }
  if (phase.moves) {
    if (point.position == twin.before.position) {
      point.snapshot = twin.before.snapshot;  // a place may count as gone that has been written to
    } else {
      point.position = twin.before.position;
      point.snapshot = twin.before.snapshot;
    }
  }
  point.temporaries = std::max(point.temporaries, twin.before.temporaries);  // old ones may be gone
  add(&outcome->problems, World::difference(point, twin.before));
}

void Runner::expectWorksAgain(const Fault& fault, const Twin& twin, Outcome* outcome) {
  world_->log.clear();
  const oriel_status status = runPhase(fault.phase);
  if (status != ORIEL_OK) {
    add(&outcome->problems,
        std::string("done again it is ") + oriel_status_text(status) + ": " + world_->log.errors());
    return;
  }
  Point point = world_->point();
  // Removed tokens count for the repeat penalty, also in the snapshot.
  if (is(fault.phase, "reply") || is(fault.phase, "recall")) {
    point.snapshot = twin.after.snapshot;
  }
  add(&outcome->problems, World::difference(point, twin.after));
}

Outcome Runner::run(const Fault& fault) {
  Outcome outcome;
  if (!prepare(fault.phase)) {
    outcome.problems = "what comes before does not work: " + world_->log.errors();
    (void)endWorld(&outcome.problems);
    return outcome;
  }
  const Twin& twin = twins_[fault.phase];
  Right right = rightOf(fault);
  if (device_.vulkan && fault.kind == FaultKind::kAllocation && is(fault.phase, "load")) {
    right.may_go_on = true;  // kernels are tested, or used untested if that fails
  }
  world_->log.clear();
  arm(fault, world_.get());
  const double begin_ms = nowMs();
  outcome.status = runPhase(fault.phase);
  outcome.ms = nowMs() - begin_ms;
  outcome.fired = fired(fault, *world_);
  disarm(world_.get());
  if (!outcome.fired) {
    return outcome;
  }
  const bool went_on = outcome.status == ORIEL_OK;
  // Without the recall file the reply differs.
  const bool forgets = went_on && fault.kind == FaultKind::kFile && is(fault.phase, "recall");
  const bool is_right =
      went_on ? right.may_go_on : right.may_fail && outcome.status == right.status;
  add(&outcome.problems, is_right ? "" : std::string("it is ") + oriel_status_text(outcome.status));
  const uint32_t lines = errorLines(*world_);
  const bool may_say = is(fault.phase, "destroy");
  add(&outcome.problems, lines == (went_on ? 0u : 1u) || (may_say && lines <= 1)
                             ? ""
                             : std::to_string(lines) + " lines: " + world_->log.errors());
  // A trimmed model reports it when resumed.
  outcome.lost = is(fault.phase, "recover") ? false
                 : world_->trimmed()        ? outcome.status == ORIEL_ERROR_DEVICE &&
                                           runPhase(phaseNumber("resume")) == outcome.status
                                     : world_->lost();
  if (outcome.lost) {
    expectLost(&outcome);
    add(&outcome.problems,
        outcome.status == ORIEL_ERROR_DEVICE || outcome.status == ORIEL_ERROR_TIMEOUT
            ? ""
            : "lost without a word");
    (void)endWorld(&outcome.problems);
    if (!prepare(fault.phase)) {
      add(&outcome.problems, "it cannot be loaded again: " + world_->log.errors());
      return outcome;
    }
    expectWorksAgain(fault, twin, &outcome);
  } else if (!went_on) {
    expectUnchanged(fault, twin, &outcome);
    expectWorksAgain(fault, twin, &outcome);
  } else {
    Point point = world_->point();
    if (keepsTemporary(fault)) {
      point.temporaries = twin.after.temporaries;
      point.descriptors = std::min(point.descriptors, twin.after.descriptors);  // its folder is
    }
    if (forgets) {
      point.snapshot = twin.after.snapshot;
      point.descriptors = std::max(point.descriptors, twin.after.descriptors);
    }
    add(&outcome.problems, World::difference(point, twin.after));
  }
  if (proof() != twin.proof && !forgets) {
    add(&outcome.problems, "what follows is something else");
  }
  if (!outcome.problems.empty() || beginsAnew(fault.phase)) {
    (void)endWorld(&outcome.problems);
  }
  return outcome;
}

}  // namespace oriel_internal::test
