// Errors as values. Every fallible function in Oriel returns a Status; outputs come last.
#pragma once

#include "oriel/advanced.h"

namespace oriel_internal {

/// The C API's status code, marked nodiscard. The detail is logged once, where the failure happened (see log.h); only
/// the code is returned.
class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr Status(oriel_status code) : code_(code) {}  // NOLINT: implicit on purpose

  constexpr bool ok() const { return code_ == ORIEL_OK; }
  /// True if the device is lost for good.
  constexpr bool lost() const {
    return code_ == ORIEL_ERROR_DEVICE || code_ == ORIEL_ERROR_TIMEOUT;
  }
  /// True for a failure unrelated to the input: a retry may succeed.
  constexpr bool passing() const {
    return code_ == ORIEL_ERROR_IO || code_ == ORIEL_ERROR_OUT_OF_MEMORY;
  }
  constexpr oriel_status code() const { return code_; }

 private:
  oriel_status code_ = ORIEL_OK;
};

constexpr Status kOk{};

}  // namespace oriel_internal

/// Returns early from a function that itself returns Status.
#define ORIEL_TRY(expression)                                             \
  do {                                                                    \
    if (::oriel_internal::Status status_ = (expression); !status_.ok()) { \
      return status_;                                                     \
    }                                                                     \
  } while (false)
