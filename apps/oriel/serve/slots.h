// Assigns sessions to requests, and queues requests.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "serve/api_error.h"
#include "serve/slot.h"

namespace cli {

class Slots {
 public:
  /// At most `queue` requests wait for a slot.
  Slots(std::vector<std::unique_ptr<Slot>> slots, uint32_t queue);

  /// Holds a slot during its lifetime.
  class Lease {
   public:
    Lease(Slots* slots, Slot* slot) : slots_(slots), slot_(slot) {}
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Slot* operator->() const { return slot_; }

   private:
    Slots* slots_;
    Slot* slot_;
  };

  using Matcher = std::function<Slot::Match(const Slot&)>;
  /// The reason to stop waiting; called several times a second.
  using GivesUp = std::function<std::optional<ApiError>()>;
  /// First come, first served; prefers the free slot with the longest match. Throws ApiError: 429 if too many wait, or
  /// the error of `gives_up`.
  Lease take(const Matcher& match, const GivesUp& gives_up);

  size_t count() const { return slots_.size(); }
  size_t busy() const;
  size_t waiting() const;

 private:
  Slot* best(const Matcher& match) const;
  void giveBack(Slot* slot);

  const std::vector<std::unique_ptr<Slot>> slots_;
  const uint32_t queue_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Slot*> free_;
  std::list<int> waiting_;  ///< one entry each, in order
  uint64_t uses_ = 0;
};

}  // namespace cli
