// The colours that the desktop asks programs for.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "worker.h"

namespace desktop {

/// Asks on a thread of its own: the answer may take a second.
class SystemLook {
 public:
  /// `changed` is called on that thread when there is another answer.
  explicit SystemLook(std::function<void()> changed) : changed_(std::move(changed)) {}
  void ask();
  /// Whether the desktop is dark; nothing where it does not say, or has not yet.
  std::optional<bool> dark() const;

 private:
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::optional<bool> dark_;
  Worker worker_;  // ends before what its jobs use
};

}  // namespace desktop
