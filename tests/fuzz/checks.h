// Invariants of every call for any input: a defined status, one log line on failure, none on success or when cancelled,
// memory within bounds and returned.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/checked.h"
#include "support/captured_log.h"
#include "support/ledger.h"

namespace oriel_internal::fuzz {

/// A log and an allocator for the library, with checks of their use.
class Watch {
 public:
  Log log() { return captured_.log(); }
  const oriel_allocator* allocator() const { return ledger_.allocator(); }
  const test::Ledger& ledger() const { return ledger_; }
  std::string errors() const { return captured_.errors(); }

  /// Call after each library call; returns its status.
  oriel_status ended(oriel_status status) {
    size_t errors = 0;
    for (const test::CapturedLog::Line& line : captured_.lines) {
      EXPECT_EQ(std::string::npos, line.text.find('\n')) << line.text;
      EXPECT_LE(line.text.size(), kMaxMessageBytes);
      if (line.level == ORIEL_LOG_ERROR) {
        ++errors;
        EXPECT_NE(std::string::npos, line.text.find(": ")) << line.text;
      }
    }
    const bool silent = status == ORIEL_OK || status == ORIEL_ERROR_CANCELLED;
    EXPECT_EQ(silent ? 0u : 1u, errors) << status << ": " << captured_.errors();
    EXPECT_TRUE(status >= ORIEL_OK && status <= ORIEL_ERROR_SPEED) << status;
    EXPECT_NE(ORIEL_ERROR_INTERNAL, status) << captured_.errors();
    captured_.clear();
    return status;
  }
  /// Memory of calls so far, at most at a time.
  void expectPeakBelow(uint64_t bytes) const { EXPECT_LE(ledger_.peak_bytes, bytes); }

 private:
  test::CapturedLog captured_;
  test::Ledger ledger_;
};

}  // namespace oriel_internal::fuzz
