#include "exec/device_share.h"

#include <chrono>

#include "os/os.h"

namespace oriel_internal {

/// A waiting thread, on its stack.
struct DeviceWaiter {
  std::condition_variable woken;
  DecodeRequest* requests = nullptr;  ///< null: it needs the device for itself
  uint32_t count = 0;
  uint32_t open = 0;  ///< unfinished requests
  DeviceWaiter* next = nullptr;
};

namespace {

/// Longest wait for one more session, relative to the latest step. A joining session saves its own step.
constexpr double kLingerPart = 1.0 / 8;

}  // namespace

void DeviceShare::Line::add(Waiter* waiter) {
  Waiter** at = &first;
  while (*at != nullptr) {
    at = &(*at)->next;
  }
  *at = waiter;
}

void DeviceShare::Line::remove(const Waiter* waiter) {
  for (Waiter** at = &first; *at != nullptr; at = &(*at)->next) {
    if (*at == waiter) {
      *at = waiter->next;
      return;
    }
  }
}

bool DeviceShare::isFor(const Waiter& waiter, Claim claim) const {
  return !held_ && (claim == Claim::kBrief ? brief_.first == &waiter
                                           : brief_.first == nullptr && line_.first == &waiter);
}

void DeviceShare::begin(uint32_t session) {
  held_ = true;
  depth_ = 1;
  holder_ = session;
  owner_ = std::this_thread::get_id();
  ++turns_;
}

// Wakes the next thread. Requires the lock, because the waiter is on that thread's stack.
void DeviceShare::end() {
  held_ = false;
  Waiter* const next = brief_.first != nullptr ? brief_.first : line_.first;
  if (next != nullptr) {
    next->woken.notify_one();
  }
}

Status DeviceShare::take(uint32_t session, Claim claim) {
  Lock lock(mutex_);
  if (held_ && owner_ == std::this_thread::get_id()) {
    if (holder_ != session) {
      return ORIEL_ERROR_STATE;
    }
    ++depth_;
    return kOk;
  }
  Line& line = claim == Claim::kBrief ? brief_ : line_;
  if (held_ || line.first != nullptr || brief_.first != nullptr) {
    Waiter waiter;
    line.add(&waiter);
    while (!isFor(waiter, claim)) {
      waiter.woken.wait(lock);
    }
    line.remove(&waiter);
  }
  begin(session);
  return kOk;
}

void DeviceShare::give() {
  const Lock lock(mutex_);
  if (--depth_ == 0) {
    end();
  }
}

void DeviceShare::setChoosing(uint32_t session, bool chooses) {
  if (choosing_[session] != chooses) {
    choosing_[session] = chooses;
    n_choosing_ += chooses ? 1 : -1;
  }
}

void DeviceShare::tellLingering() {
  if (lingers_ != nullptr && !hasRoomForOthers()) {
    lingers_->woken.notify_one();
  }
}

void DeviceShare::leave(uint32_t session) {
  if (!several_) {
    return;
  }
  const Lock lock(mutex_);
  setChoosing(session, false);
  tellLingering();
}

void DeviceShare::decode(DecodeRequest* requests, uint32_t count) {
  Lock lock(mutex_);
  Waiter waiter;
  waiter.requests = requests;
  waiter.count = waiter.open = count;
  for (uint32_t i = 0; i < count; ++i) {
    requests[i].stage = DecodeRequest::Stage::kWaits;
    requests[i].waiter = &waiter;
    setChoosing(requests[i].index, false);
  }
  n_waiting_ += count;
  if (count != 0) {
    line_.add(&waiter);
  }
  tellLingering();
  while (waiter.open != 0) {
    if (isFor(waiter, Claim::kStep)) {
      lead(&waiter, &lock);
    } else {
      waiter.woken.wait(lock);
    }
  }
}

void DeviceShare::lead(Waiter* waiter, Lock* lock) {
  linger(waiter, lock);
  if (!isFor(*waiter, Claim::kStep)) {
    return;  // a session reads the results of a step
  }
  DecodeRequest* batch[kMaxSessions];
  const uint32_t count = collect(batch);
  begin(batch[0]->index);
  lock->unlock();
  const double begin_ms = nowMs();
  run_(batch, count);
  const double end_ms = nowMs();
  lock->lock();
  step_ms_ = end_ms - begin_ms;
  finish(batch, count);
  end();
}

// Others may use the device meanwhile to read results. A late session is not waited for again.
void DeviceShare::linger(Waiter* waiter, Lock* lock) {
  if (!hasRoomForOthers()) {
    return;
  }
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double, std::milli> most(step_ms_ * kLingerPart);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(most);
  lingers_ = waiter;
  bool in_time = true;
  while (hasRoomForOthers() && in_time) {
    in_time = waiter->woken.wait_until(*lock, deadline) != std::cv_status::timeout;
  }
  lingers_ = nullptr;
  for (uint32_t i = 0; i < kMaxSessions && !in_time; ++i) {
    setChoosing(i, false);
  }
}

// In order of arrival.
uint32_t DeviceShare::collect(DecodeRequest** batch) {
  uint32_t count = 0;
  for (Waiter* waiter = line_.first; waiter != nullptr && count < batch_rows_;) {
    Waiter* const next = waiter->next;
    count += takeAlong(waiter, batch + count, batch_rows_ - count);
    waiter = next;
  }
  n_waiting_ -= count;
  return count;
}

// Takes as many of its requests as fit. A session without remaining requests leaves the queue.
uint32_t DeviceShare::takeAlong(Waiter* waiter, DecodeRequest** batch, uint32_t room) {
  uint32_t taken = 0;
  uint32_t left = 0;
  for (uint32_t i = 0; i < waiter->count; ++i) {
    DecodeRequest& request = waiter->requests[i];
    if (request.stage != DecodeRequest::Stage::kWaits) {
      continue;
    }
    if (taken == room) {
      ++left;
      continue;
    }
    request.stage = DecodeRequest::Stage::kRuns;
    batch[taken++] = &request;
  }
  if (taken != 0 && left == 0) {
    line_.remove(waiter);
  }
  return taken;
}

void DeviceShare::finish(DecodeRequest* const* batch, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    batch[i]->stage = DecodeRequest::Stage::kDone;
    setChoosing(batch[i]->index, batch[i]->more && batch[i]->status.ok());
    Waiter* const waiter = batch[i]->waiter;
    if (--waiter->open == 0) {
      waiter->woken.notify_one();
    }
  }
}

}  // namespace oriel_internal
