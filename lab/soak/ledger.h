// The log of a soak: calls with their results, and checks with their outcome.
#pragma once

#include <cstdio>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "faults/vulkan_faults.h"
#include "oriel/oriel.h"

namespace oriel_internal::test {

class Ledger {
 public:
  /// `trace`: prints each call before it is made.
  explicit Ledger(bool trace) : trace_(trace) {}

  uint64_t step = 0;               ///< number of the call
  bool lost = false;               ///< the device is lost and not yet recovered
  std::vector<std::string> lines;  ///< error lines since begin()

  uint64_t failed() const { return failed_; }
  const std::string& last() const { return last_; }  ///< call and status

  /// Names the next operation.
  void begin(const std::string& what) {
    doing_ = what;
    lines.clear();
    if (trace_) {
      std::printf("%llu: %s\n", static_cast<unsigned long long>(step), what.c_str());
      (void)std::fflush(stdout);
    }
  }
  /// Records its result.
  void returned(oriel_status status) {
    ++done_[doing_][status];
    last_ = doing_ + " " + oriel_status_text(status);
    noteLoss(status);
  }
  void noteLoss(oriel_status status) { lost = lost || status == ORIEL_ERROR_DEVICE; }

  void check(const char* what, bool holds, const std::string& detail) {
    ++(holds ? passed_ : failed_);
    if (!holds) {
      std::printf("FAILED in call %llu (%s): %s: %s\n", static_cast<unsigned long long>(step),
                  doing_.c_str(), what, detail.c_str());
      (void)std::fflush(stdout);
    }
  }

  /// Checks that the call's status is in its contract, and that a failure logged one line.
  template <typename Call>
  oriel_status expect(const char* what, std::initializer_list<oriel_status> allowed,
                      const Call& call) {
    begin(what);
    const oriel_status status = call();
    returned(status);
    bool fine = status == ORIEL_OK || (status == ORIEL_ERROR_DEVICE && faultLayer() != nullptr &&
                                       faultLayer()->failed() != 0);
    for (const oriel_status one : allowed) {
      fine = fine || status == one;
    }
    check("status", fine, oriel_status_text(status) + (lines.empty() ? "" : ": " + lines.back()));
    // A lost device is reported once, by the call that finds it.
    const bool silent = status == ORIEL_OK || status == ORIEL_ERROR_CANCELLED || lost;
    check("lines", silent ? lines.empty() || lost : lines.size() == 1,
          std::to_string(lines.size()) + (lines.empty() ? "" : ": " + lines.back()));
    return status;
  }

  void printCalls() const {
    for (const auto& [what, statuses] : done_) {
      std::printf("%-36s", what.c_str());
      for (const auto& [status, count] : statuses) {
        std::printf("  %s %llu", oriel_status_text(status), static_cast<unsigned long long>(count));
      }
      std::printf("\n");
    }
  }
  void printChecks() const {
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed_),
                static_cast<unsigned long long>(failed_));
  }

 private:
  const bool trace_;
  std::string doing_;
  std::string last_;
  std::map<std::string, std::map<oriel_status, uint64_t>> done_;
  uint64_t passed_ = 0, failed_ = 0;
};

}  // namespace oriel_internal::test
