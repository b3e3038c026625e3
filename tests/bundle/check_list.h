// What was checked on a device, in order: progress for whoever watches, results for the JSON.
#pragma once

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oriel/oriel.h"

namespace oriel_internal::bundle {

/// Fields stay in the order in which they were added.
using Json = nlohmann::ordered_json;

class CheckList {
 public:
  /// Announces a check before it runs, so that a crash has a name.
  void begin(const std::string& group, const std::string& name);
  /// Ends the check begun last. `detail` is for people; more fields may be added to `extra`.
  void end(bool passed, const std::string& detail, const Json& extra = Json::object());
  void skip(const std::string& reason);

  /// Begins a check and calls `check`, which ends it; when that throws instead, the check has failed.
  template <typename Check>
  void run(const std::string& group, const std::string& name, const Check& check) {
    begin(group, name);
    try {
      check();
    } catch (const std::exception& error) {
      end(false, error.what());
    }
  }

  /// Passed when `value` is at most `limit` (and a number).
  void atMost(double value, double limit, const std::string& unit);
  /// Passed when the status is the one wanted.
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

}  // namespace oriel_internal::bundle
