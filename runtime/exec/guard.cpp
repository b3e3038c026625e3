#include "exec/guard.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/test_gap.h"
#include "os/os.h"

namespace oriel_internal {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

/// Interval at which a resting call checks for a cancel. A cancel takes no lock and wakes no thread.
constexpr Milliseconds kLook(50);

}  // namespace

// ---- Under the lock -------------------------------------------------------------------------------

const Guard::Call* Guard::holderOf(uint64_t sessions) const {
  for (uint32_t i = 0; i < kMaxSessions && sessions >> i != 0; ++i) {
    if ((sessions & bit(i)) != 0 && entries_[i].call != nullptr) {
      return entries_[i].call;
    }
  }
  return nullptr;
}

template <typename Test>
Guard::Call* Guard::find(const Test& test) const {
  Call* call = calls_;
  while (call != nullptr && !test(*call)) {
    call = call->next_;
  }
  return call;
}

bool Guard::areRead(uint64_t sessions) const {
  return find([&](const Call& call) {
           return call.work_ == Work::kReads && (call.sessions_ & sessions) != 0;
         }) != nullptr;
}

bool Guard::has(Work work) const {
  return find([&](const Call& call) { return call.work_ == work; }) != nullptr;
}

bool Guard::isInside() const {
  return find([](const Call& call) { return call.thread_ == threadId(); }) != nullptr;
}

Guard::Call* Guard::ofThread(Work work) const {
  return find([&](const Call& call) { return call.thread_ == threadId() && call.work_ == work; });
}

Guard::Answer Guard::admit(Lock* lock, Work work, uint64_t sessions) {
  for (;;) {
    if (const Call* const holder = holderOf(sessions); holder != nullptr) {
      return holder->thread_ != threadId() ? Answer::kBusy
             : work == Work::kReads        ? Answer::kEntered
                                           : Answer::kOwn;
    }
    if (work == Work::kDevice && phase_ != Phase::kOpen) {
      return Answer::kStopped;
    }
    if (work != Work::kControls || controller_ == nullptr) {
      return Answer::kEntered;
    }
    changed_.wait(*lock);
  }
}

// First, so that further calls cannot read them.
void Guard::take(Lock* lock, uint64_t sessions, const Call* call) {
  hold(sessions, call);
  changed_.wait(*lock, [&] { return !areRead(sessions); });
}

void Guard::hold(uint64_t sessions, const Call* call) {
  for (uint32_t i = 0; i < kMaxSessions; ++i) {
    if ((sessions & bit(i)) != 0) {
      entries_[i].call = call;
    }
  }
}

void Guard::begin(Call* call, Work work) {
  call->work_ = work;
  controller_ = work == Work::kControls ? call : controller_;
}

void Guard::end(const Call* call) {
  controller_ = controller_ == call ? nullptr : controller_;
  changed_.notify_all();
}

// ---- Calls ---------------------------------------------------------------------------------------

Guard::Call::Call(Guard* guard, Work work, uint64_t sessions)
    : guard_(guard), thread_(threadId()), sessions_(sessions), work_(work) {
  testGap();
  Lock lock(guard_->mutex_);
  const bool inside = work == Work::kRefuses ? guard_->ofThread(work) != nullptr
                                             : work != Work::kReads && guard_->isInside();
  answer_ = inside && guard_->holderOf(sessions) == nullptr ? Answer::kInside
                                                            : guard_->admit(&lock, work, sessions);
  if (!entered()) {
    return;
  }
  next_ = guard_->calls_;
  guard_->calls_ = this;
  guard_->begin(this, work);
  if (work != Work::kReads) {
    guard_->take(&lock, sessions, this);
  }
}

Guard::Call::~Call() {
  if (!entered()) {
    return;
  }
  const Lock lock(guard_->mutex_);
  Call** at = &guard_->calls_;
  while (*at != this) {
    at = &(*at)->next_;
  }
  *at = next_;
  if (work_ != Work::kReads) {
    guard_->hold(sessions_, nullptr);
  }
  guard_->end(this);
}

Guard::Answer Guard::Call::become(Work work) {
  testGap();
  Lock lock(guard_->mutex_);
  work_ = Work::kHost;
  guard_->end(this);
  const Answer answer = guard_->admit(&lock, work, 0);
  if (answer == Answer::kEntered) {
    guard_->begin(this, work);
  }
  return answer;
}

bool Guard::Call::take(uint32_t session, double wait_ms) {
  testGap();
  Lock lock(guard_->mutex_);
  const uint64_t wanted = bit(session);
  const bool free = guard_->changed_.wait_for(lock, Milliseconds(wait_ms),
                                              [&] { return guard_->holderOf(wanted) == nullptr; });
  if (free) {
    sessions_ |= wanted;
    guard_->take(&lock, wanted, this);
  }
  return free;
}

void Guard::Call::giveBack(uint32_t session) {
  const Lock lock(guard_->mutex_);
  sessions_ &= ~bit(session);
  guard_->hold(bit(session), nullptr);
  guard_->changed_.notify_all();
}

bool Guard::Call::takeFree(uint32_t session) {
  const Lock lock(guard_->mutex_);
  Entry& entry = guard_->entries_[session];
  if (!entry.isFree()) {
    return false;
  }
  sessions_ |= bit(session);
  entry.call = this;
  return true;
}

// ---- Control and rest ----------------------------------------------------------------------------

void Guard::close(Phase phase) {
  Lock lock(mutex_);
  phase_ = phase_ != Phase::kPaused ? phase : phase_;
  changed_.wait(lock, [this] { return !has(Work::kDevice); });
}

// Resting calls count as running from here on, even if their threads wake later: the next close() waits for them.
void Guard::open() {
  const Lock lock(mutex_);
  phase_ = Phase::kOpen;
  for (Call* call = calls_; call != nullptr; call = call->next_) {
    call->work_ = call->work_ == Work::kRests ? Work::kDevice : call->work_;
  }
  changed_.notify_all();
}

Guard::Phase Guard::phase() const {
  const Lock lock(mutex_);
  return phase_;
}

bool Guard::hasDeviceCalls() const {
  const Lock lock(mutex_);
  return has(Work::kDevice) || has(Work::kRests);
}

bool Guard::wantsRest() const {
  const Lock lock(mutex_);
  return phase_ == Phase::kPaused && ofThread(Work::kDevice) != nullptr;
}

void Guard::rest(bool (*cancelled)(const void* user), const void* user) {
  Lock lock(mutex_);
  Call* const call = ofThread(Work::kDevice);
  if (call == nullptr || phase_ != Phase::kPaused) {
    return;
  }
  call->work_ = Work::kRests;
  changed_.notify_all();
  // The controlling call may be working with this call's session.
  while (call->work_ == Work::kRests && (controller_ != nullptr || !cancelled(user))) {
    changed_.wait_for(lock, kLook);
  }
  call->work_ = Work::kDevice;
}

// ---- Sessions ------------------------------------------------------------------------------------

Guard::Entry Guard::entry(uint32_t session) const {
  const Lock lock(mutex_);
  return entries_[session];
}

void Guard::setHandle(uint32_t session, oriel_session* handle) {
  const Lock lock(mutex_);
  entries_[session].handle = handle;
}

uint32_t Guard::takenCount() const {
  const Lock lock(mutex_);
  return static_cast<uint32_t>(std::count_if(std::begin(entries_), std::end(entries_),
                                             [](const Entry& entry) { return !entry.isFree(); }));
}

Guard::Answer Guard::mayEnd() const {
  const bool used = takenCount() != 0;
  const Lock lock(mutex_);
  return isInside() ? Answer::kInside : used ? Answer::kUsed : Answer::kEntered;
}

}  // namespace oriel_internal
