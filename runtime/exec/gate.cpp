#include "exec/gate.h"

#include <chrono>

namespace oriel_internal {
namespace {

/// How often a call that rests looks whether it was cancelled: a cancel takes no lock.
constexpr std::chrono::milliseconds kLook(50);

}  // namespace

bool Gate::enter(Call* call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) {
    return false;
  }
  call->next_ = calls_;
  calls_ = call;
  ++inside_;
  return true;
}

Gate::Call::~Call() {
  if (!entered_) {
    return;
  }
  const std::lock_guard<std::mutex> lock(gate_->mutex_);
  Call** at = &gate_->calls_;
  while (*at != this) {
    at = &(*at)->next_;
  }
  *at = next_;
  --gate_->inside_;
  gate_->changed_.notify_all();
}

bool Gate::takeControl(Control* control) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (controlled_ && controller_ == std::this_thread::get_id()) {
    return false;
  }
  const auto lends = [this] { return closing_ && !lent_ && isInsideLocked(); };
  changed_.wait(lock, [&] { return !controlled_ || lends(); });
  control->lent_ = lent_ = controlled_;
  control->owned_ = !controlled_;
  control->lender_ = controller_;
  controlled_ = true;
  controller_ = std::this_thread::get_id();
  return true;
}

Gate::Control::~Control() {
  if (!owned_ && !lent_) {
    return;
  }
  const std::lock_guard<std::mutex> lock(gate_->mutex_);
  gate_->controlled_ = lent_;
  gate_->controller_ = lender_;
  gate_->lent_ = false;
  gate_->changed_.notify_all();
}

void Gate::close(bool rests) {
  std::unique_lock<std::mutex> lock(mutex_);
  closed_ = true;
  rests_ = rests_ || rests;
  closing_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return inside_ == at_rest_; });
  closing_ = false;
}

void Gate::open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = false;
  endRestLocked();
}

void Gate::endRest() {
  const std::lock_guard<std::mutex> lock(mutex_);
  endRestLocked();
}

// Calls that rest are at work from here on, though their threads may wake later: who closes again waits for them.
void Gate::endRestLocked() {
  rests_ = false;
  at_rest_ = 0;
  ++rest_;
  changed_.notify_all();
}

bool Gate::closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

bool Gate::resting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return rests_;
}

bool Gate::hasCalls() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return inside_ != 0;
}

bool Gate::isInside() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return isInsideLocked() || (controlled_ && controller_ == std::this_thread::get_id());
}

bool Gate::isInsideLocked() const { return callsOfThreadLocked() != 0; }

uint32_t Gate::callsOfThreadLocked() const {
  uint32_t count = 0;
  for (const Call* call = calls_; call != nullptr; call = call->next_) {
    count += call->thread_ == std::this_thread::get_id() ? 1 : 0;
  }
  return count;
}

bool Gate::wantsRest() const { return resting(); }

void Gate::rest(bool (*cancelled)(const void* user), const void* user) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!rests_) {
    return;
  }
  const uint32_t calls = callsOfThreadLocked();
  const uint64_t rest = rest_;
  at_rest_ += calls;
  changed_.notify_all();
  // Who has control may be at work with this call's session.
  while (rest == rest_ && (controlled_ || !cancelled(user))) {
    changed_.wait_for(lock, kLook);
  }
  at_rest_ -= rest == rest_ ? calls : 0;
}

}  // namespace oriel_internal
