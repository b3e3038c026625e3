// The device under test, and the checks on it in order: progress for the user, results for the JSON.
#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "oriel/oriel.h"
#include "oriel/tools.h"
#include "support/options.h"

namespace oriel_internal::bundle {

// The device under test and the bundle's folder; models opened on it through the public API.

using test::Loaded;
using test::Options;
using test::ReplyOptions;
using test::SessionOptions;

struct Device {
  std::string option = "cpu";  ///< as in Options.device
  std::string data;            ///< the bundle's folder
  std::string scratch;         ///< a private folder for this run, removed at the end
  std::string disabled;        ///< optional Vulkan features to disable, as in Options
  std::string only;  ///< a group, or a group/ and the start of a model's name; "": everything

  std::string model(const std::string& name) const { return data + "/models/" + name + ".gguf"; }
  bool wants(const std::string& group) const {
    return only.empty() || only.substr(0, only.find('/')) == group;
  }
  bool wantsModel(const std::string& name) const {
    return only.find('/') == std::string::npos || ("models/" + name).rfind(only, 0) == 0;
  }
  /// 256 MiB, no cache folder, the log kept in lastError().
  Options options() const;
};

/// The latest error line; empty if nothing failed since `clear`.
std::string lastError();
void clearLastError();

/// Opens a model with a session, or throws std::runtime_error with the reason.
Loaded open(const std::string& path, const Options& options);

/// Logits after the last appended token.
std::vector<float> logits(const Loaded& loaded);
void append(const Loaded& loaded, const std::vector<int32_t>& ids);
/// Logits after each token.
std::vector<std::vector<float>> evaluate(const Loaded& loaded, const std::vector<int32_t>& ids);
std::vector<int32_t> greedy(const Loaded& loaded, uint32_t tokens);

/// Throws std::runtime_error if the call failed.
void require(oriel_status status, const std::string& what);

// Progress for the user, results for the JSON.

/// Fields keep their order of insertion.
using Json = nlohmann::ordered_json;

class CheckList {
 public:
  /// Announces a check before it runs, so that a crash can be attributed.
  void begin(const std::string& group, const std::string& name);
  /// Ends the current check. `detail` is for people; more fields may be added to `extra`.
  void end(bool passed, const std::string& detail, const Json& extra = Json::object());
  void skip(const std::string& reason);

  /// Begins a check and calls `check`, which ends it; if it throws, the check fails.
  template <typename Check>
  void run(const std::string& group, const std::string& name, const Check& check) {
    begin(group, name);
    try {
      check();
    } catch (const std::exception& error) {
      end(false, error.what());
    }
  }

  /// Passes if `value` is a number and at most `limit`.
  void atMost(double value, double limit, const std::string& unit);
  /// Passes if the status is the expected one.
  void status(oriel_status got, oriel_status wanted);

  int passed() const { return passed_; }
  int failed() const { return failed_; }
  int skipped() const { return skipped_; }
  const Json& results() const { return results_; }

 private:
  void record(const char* status, const std::string& detail, const Json& extra);

  Json results_ = Json::array();
  std::string group_;
  std::string name_;
  std::chrono::steady_clock::time_point begun_;
  int passed_ = 0;
  int failed_ = 0;
  int skipped_ = 0;
};

// The checks, one function per group; each reports to the list. Unreadable files throw std::runtime_error.

/// Every kernel variant of the device against plain code. Returns the candidates of each op, with times if requested.
Json checkKernels(const Device& device, bool time_candidates, CheckList* list);
/// Logits and greedy text of small models of every tensor type and architecture, and of the bundled model.
void checkModels(const Device& device, CheckList* list);
/// True if --only names a model: models/ and the start of its name.
bool namesModel(const Device& device);
/// The sliding window: logits at selected tokens of a stream against StreamingLLM in float64, also far from position
/// zero, and quantised caches against the CPU.
void checkStreaming(const Device& device, CheckList* list);
/// Bad files, too little memory, an allocator that refuses, a damaged pipeline cache, cancelling.
void checkFaults(const Device& device, CheckList* list);

/// Load times with and without compiled pipelines on disk, tokens/s of the bundled model, temperatures before and after
/// where available.
Json measure(const Device& device);

}  // namespace oriel_internal::bundle
