// Which session answers which request, and who waits.
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

  /// A slot, until it is destroyed.
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
  /// Why nobody waits any more; asked some times a second.
  using GivesUp = std::function<std::optional<ApiError>()>;
  /// First come, first served; of the free slots the one that holds most of what is asked. Throws ApiError: 429 where too
  /// many wait, and what `gives_up` says.
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
  std::list<int> waiting_;  ///< an entry each, in order
  uint64_t uses_ = 0;
};

}  // namespace cli
