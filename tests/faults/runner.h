// Runs a model through phases in which calls fail.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "oriel/advanced.h"
#include "support/allocators.h"
#include "support/captured_log.h"
#include "support/options.h"

namespace oriel_internal::test {

// One model and its sessions in an app's operations, as phases that can fail and be repeated.

/// The matrix's device and options.
struct Device {
  bool vulkan = false;  ///< else the CPU
  std::string model;
  const char* on_file = "none";
  bool recall = false;  ///< turns that left the window come back
  std::string folder;   ///< of this process: everything that is written
  uint32_t timeout_ms = 0;
};

/// The state at the end of a phase.
struct Point {
  uint64_t position = 0;
  std::vector<uint8_t> snapshot;  ///< of the session; empty if unavailable
  uint64_t live_bytes = 0;        ///< of the app's allocator
  uint64_t objects = 0;           ///< of Vulkan
  size_t descriptors = 0;         ///< open in this process
  size_t temporaries = 0;         ///< files that were being written
  bool operator==(const Point& other) const;
};

class World {
 public:
  explicit World(const Device& device);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Destroys sessions, then all of it.
  void endSessions();
  void end();
  /// Restores the initial contents: each has a leftover file of a dead process.
  void clearFolders();
  Point point();
  /// The difference between two points, in words; "" if they are equal.
  static std::string difference(const Point& is, const Point& should);
  bool trimmed() const;
  /// Whether a model that is not trimmed has lost its device.
  bool lost();
  uint64_t position() const;
  std::string path(const std::string& name) const { return device.folder + "/" + name; }

  const Device device;
  const int model_descriptor;  ///< of its file
  Ledger ledger;
  CapturedLog log;
  Options options = {};
  oriel_model* model = nullptr;
  oriel_session* session = nullptr;
  oriel_session* fork = nullptr;
  uint64_t reply_begin = 0;        ///< where the phase reply was begun first; 0: it was not
  std::vector<int32_t> generated;  ///< by the phase decode, however often it was begun

 private:
  std::string cache_;
  std::string recall_;
};

struct Phase {
  const char* name;
  /// Names of required earlier phases; others have not run, and need not.
  std::vector<const char*> behind;
  /// Can be repeated after a failure. Prepares everything else itself, with or without faults.
  oriel_status (*run)(World& world);
  bool moves;        ///< the session's position; on failure whole batches, or tokens, may have been
                     ///< committed
  const char* what;  ///< null: a helper phase without faults
};
const std::vector<Phase>& phases();
size_t phaseNumber(const std::string& name);

// One fault at a time: the list of faults, the expected and the actual results.

enum class FaultKind { kVulkan, kMissing, kAllocation, kFile };

struct Fault {
  FaultKind kind = FaultKind::kVulkan;
  size_t phase = 0;
  std::string site;    ///< the row: a function, a call and its kind of file, "allocate"
  uint64_t nth = 0;    ///< number of the call in the phase, from 1
  uint64_t calls = 0;  ///< how many those are
  int result = 0;      ///< VkResult, errno or kCutShort, ...
  std::string resultName() const;
  std::string text() const;
};

/// The expected result.
struct Right {
  bool may_go_on = false;  ///< the call succeeds: the failed part is optional, or was repeated
  bool may_fail = true;
  oriel_status status = ORIEL_OK;  ///< if it fails
};
Right rightOf(const Fault& fault);

/// Calls that were seen in a phase, by site.
struct Sites {
  FaultKind kind;
  std::string site;
  uint64_t calls;
};

/// The calls to fail: all if few, otherwise the first, the last and one between.
std::vector<uint64_t> chosen(FaultKind kind, uint64_t calls);
/// The possible failures of a site's call.
std::vector<int> resultsOf(FaultKind kind, const std::string& site);

void arm(const Fault& fault, World* world);
/// Counts only.
void armNothing(World* world);
bool fired(const Fault& fault, const World& world);
void disarm(World* world);
/// Calls seen since the last arming.
std::vector<Sites> seen(const World& world);

// Runs faults one after the other in this process.

struct Outcome {
  bool fired = false;
  oriel_status status = ORIEL_OK;
  bool lost = false;
  double ms = 0;         ///< of the call that was failed
  std::string problems;  ///< "" if all is as it should be
};

/// Every site of every phase, without a fault.
struct Count {
  size_t phase;
  Sites sites;
};

class Runner {
 public:
  explicit Runner(const Device& device);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Runs the phases of faults that match this text without faults, and stores the results. False, with a line on
  /// stderr: they fail.
  bool count(const std::string& only);
  const std::vector<Count>& counts() const { return counts_; }
  /// In the order in which it is best to carry them out.
  std::vector<Fault> faults() const;

  Outcome run(const Fault& fault);

 private:
  struct Twin {
    Point before, after;
    std::vector<int32_t> proof;
  };

  bool prepare(size_t phase);
  oriel_status runPhase(size_t phase);
  bool endWorld(std::string* problems);
  /// Ids that follow, from wherever the phase has left the world.
  std::vector<int32_t> proof();
  void expectLost(Outcome* outcome);
  void expectUnchanged(const Fault& fault, const Twin& twin, Outcome* outcome);
  void expectWorksAgain(const Fault& fault, const Twin& twin, Outcome* outcome);

  const Device device_;
  std::unique_ptr<World> world_;
  std::vector<Count> counts_;
  std::map<size_t, Twin> twins_;
};

}  // namespace oriel_internal::test
