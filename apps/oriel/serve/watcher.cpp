#include "serve/watcher.h"

#include <chrono>

namespace cli {
namespace {

constexpr std::chrono::milliseconds kTick(50);

}  // namespace

Watcher::Watcher() : thread_([this] { run(); }) {}

Watcher::~Watcher() {
  {
    const std::lock_guard<std::mutex> hold(lock_);
    ends_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watcher::stopAll() {
  const std::lock_guard<std::mutex> hold(lock_);
  stopping_ = true;
}

void Watcher::run() {
  std::unique_lock<std::mutex> hold(lock_);
  while (!ends_) {
    for (Guard* guard : watched_) {
      guard->look(stopping_);
    }
    if (watched_.empty()) {
      wake_.wait(hold, [this] { return ends_ || !watched_.empty(); });
    } else {
      wake_.wait_for(hold, kTick, [this] { return ends_; });
    }
  }
}

Watcher::Guard::Guard(Watcher* watcher, oriel_session* session, const Exchange& client,
                      Clock::time_point deadline)
    : watcher_(*watcher), session_(session), client_(client), deadline_(deadline) {
  const std::lock_guard<std::mutex> hold(watcher_.lock_);
  watcher_.watched_.push_back(this);
  watcher_.wake_.notify_all();
}

Watcher::Guard::~Guard() {
  const std::lock_guard<std::mutex> hold(watcher_.lock_);
  watcher_.watched_.remove(this);
}

void Watcher::Guard::look(bool stopping) {
  if (why_ == Ended::kNot) {
    if (client_.clientGone()) {
      why_ = Ended::kClientGone;
    } else if (Clock::now() >= deadline_) {
      why_ = Ended::kTimeout;
    } else if (stopping) {
      why_ = Ended::kStopping;
    }
  }
  if (why_ != Ended::kNot) {
    oriel_session_cancel(session_);
  }
}

}  // namespace cli
