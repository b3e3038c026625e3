// Cancels calls of clients that have left.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <oriel/advanced.h>
#include <oriel/oriel.h>

#include "model_handle.h"
#include "reply/reply_parts.h"
#include "serve/api_error.h"
#include "serve/http_server.h"
#include "serve/message.h"

namespace cli {

enum class Ended { kNot, kClientGone, kTimeout, kStopping };

/// Checks every watched call several times a second, and repeats a cancel until the call ends: a cancel before the call
/// begins has no effect.
class Watcher {
 public:
  Watcher();
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  /// Watches the session's calls during its lifetime. The session and the exchange must outlive it.
  class Guard {
   public:
    Guard(Watcher* watcher, oriel_session* session, const Exchange& client,
          Clock::time_point deadline);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    /// The reason of the cancel.
    Ended why() const { return why_; }

   private:
    friend class Watcher;
    void look(bool stopping);

    Watcher& watcher_;
    oriel_session* const session_;
    const Exchange& client_;
    const Clock::time_point deadline_;
    std::atomic<Ended> why_{Ended::kNot};
  };

  /// Cancels all running and future calls.
  void stopAll();

 private:
  void run();

  std::mutex lock_;
  std::condition_variable wake_;
  std::list<Guard*> watched_;
  bool stopping_ = false;
  bool ends_ = false;
  std::thread thread_;
};

// A session with a record of its contents, so that a prompt's common prefix is not read again.

struct ReplySink {
  /// False: stop the reply.
  std::function<bool(const oriel_part&)> on_part;
  std::function<bool(const oriel_token_event&)> on_token;
};

/// The result of a reply.
struct ReplyOutcome {
  oriel_generation result = {};
  ReplyParts parts;
  Ended ended = Ended::kNot;
  uint64_t prompt_tokens = 0;  ///< everything before the reply
  uint64_t cached_tokens = 0;  ///< the part that the session already held
  uint64_t evicted = 0;        ///< by this prompt and reply
  oriel_stats stats = {};
  double load_ms = 0;     ///< waiting time for the model
  Json ignored_keywords;  ///< from the reply's schemas; null: none
};

/// The options of a session with this form.
Settings sessionSettings(const Settings& base, const ChatForm& form);

class Slot {
 public:
  /// `base`: options of every session; must outlive it.
  Slot(const Model& model, const Settings& base);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  oriel_session* session() const { return session_; }

  /// Held tokens that match the request's beginning, and tokens lost by going back to them.
  struct Match {
    uint64_t kept = 0;
    uint64_t lost = 0;
  };
  Match match(const ReplyRequest& request, const std::vector<int32_t>& ids) const;
  bool empty() const { return held_.empty() && ids_.empty(); }

  /// The client, and its deadline.
  struct Call {
    Watcher* watcher = nullptr;
    const Exchange* client = nullptr;
    Clock::time_point deadline;
    std::atomic<bool>* device_lost = nullptr;  ///< set while no device works
  };
  /// Creates the session; recovers it if its device was lost. Throws ApiError.
  void open(const ChatForm& form, const Call& call);
  /// Replies to the messages, or continues the ids. Throws ApiError; a truncated reply is a result.
  ReplyOutcome chat(const ReplyRequest& request, const Settings& options, const ReplySink& sink,
                    const Call& call);
  ReplyOutcome complete(const ReplyRequest& request, const std::vector<int32_t>& ids,
                        const Settings& options, const ReplySink& sink, const Call& call);
  /// Returns the vectors of texts, or with a query their scores as answers to it. Adds the tokens read to *tokens.
  /// Resets the session.
  std::vector<std::vector<float>> embed(const std::vector<RawPrompt>& inputs,
                                        const std::string* query, const Call& call,
                                        uint64_t* tokens);

  uint64_t last_used = 0;

 private:
  struct Held {
    std::string key;
    /// Position to go back to; 0: only a user's message starts a turn.
    uint64_t turn_begin = 0;
    uint64_t end = 0;  ///< position after it
  };

  void forget();
  void recover(const Call& call);
  void forgetAfterFailure(const ApiError& error, const Call& call);
  void keepReply();
  void check(oriel_status status, const Watcher::Guard& guard) const;
  size_t common(const std::vector<ChatMessage>& messages) const;
  size_t keptMessages(const std::vector<ChatMessage>& messages) const;
  bool goBack(uint64_t position);
  uint64_t goBackTo(size_t messages);
  void add(const ChatMessage& message, const Watcher::Guard& guard);
  oriel_stats stats() const;
  uint64_t position() const;
  uint64_t evicted() const;
  /// The JSON of oriel_session_describe; null on failure.
  Json describe() const;
  ReplyOutcome finish(ReplyOutcome outcome, const Settings& options, const Watcher::Guard& guard,
                      oriel_status status);

  const Model& model_;
  const Settings& base_;
  ChatForm form_;
  oriel_session* session_ = nullptr;
  uint64_t begin_ = 0;  ///< start position of an empty session: after the prefix
  std::vector<Held> held_;
  std::vector<int32_t> ids_;  ///< for a completion
  /// A request did not finish, so the contents are unknown: the next open() restarts.
  bool changing_ = false;
};

// Assigns sessions to requests, and queues requests.

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
