// One model and its sessions in an app's operations, as phases that can fail and be repeated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oriel/advanced.h"
#include "support/captured_log.h"
#include "support/ledger.h"
#include "support/options.h"

namespace oriel_internal::test {

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

}  // namespace oriel_internal::test
