// Asks the desktop whether it uses dark colours.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "worker.h"

namespace desktop {

/// Asks on its own thread, since the answer may take a second.
class SystemLook {
 public:
  /// `changed` is called on that thread when the answer changes.
  explicit SystemLook(std::function<void()> changed) : changed_(std::move(changed)) {}
  void ask();
  /// True: dark. Empty: the desktop has not answered.
  std::optional<bool> dark() const;

 private:
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::optional<bool> dark_;
  Worker worker_;  // ends before what its jobs use
};

}  // namespace desktop
