// A session, and what it holds: so much of the next prompt as it has read already need not be read again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <oriel/advanced.h>

#include "model_handle.h"
#include "reply/reply_parts.h"
#include "serve/api_error.h"
#include "serve/reply_request.h"
#include "serve/watcher.h"

namespace cli {

struct ReplySink {
  /// False: the reply ends here.
  std::function<bool(const oriel_part&)> on_part;
  std::function<bool(const oriel_token_event&)> on_token;
};

/// How a reply went.
struct ReplyOutcome {
  oriel_generation result = {};
  ReplyParts parts;
  Ended ended = Ended::kNot;
  uint64_t prompt_tokens = 0;  ///< all that came before the reply
  uint64_t cached_tokens = 0;  ///< of them, those that the session held
  uint64_t evicted = 0;        ///< by this prompt and reply
  oriel_stats stats = {};
  double load_ms = 0;     ///< that the request waited for its model
  Json ignored_keywords;  ///< of the schemas that it was held to; null: none
};

/// The options of a session that has this form.
Settings sessionSettings(const Settings& base, const ChatForm& form);

class Slot {
 public:
  /// `base` are the options of every session, and live longer.
  Slot(const Model& model, const Settings& base);
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  oriel_session* session() const { return session_; }

  /// Of what the request begins with, how many tokens are held; and how many would be lost by going back to there.
  struct Match {
    uint64_t kept = 0;
    uint64_t lost = 0;
  };
  Match match(const ReplyRequest& request, const std::vector<int32_t>& ids) const;
  bool empty() const { return held_.empty() && ids_.empty(); }

  /// Who asks, and until when it waits.
  struct Call {
    Watcher* watcher = nullptr;
    const Exchange* client = nullptr;
    Clock::time_point deadline;
    std::atomic<bool>* device_lost = nullptr;  ///< set while there is none to answer with
  };
  /// Creates the session; one whose device was lost is recovered. Throws ApiError.
  void open(const ChatForm& form, const Call& call);
  /// A reply to the messages, or behind the ids. Throws ApiError; one that was cut short is an outcome.
  ReplyOutcome chat(const ReplyRequest& request, const Settings& options, const ReplySink& sink,
                    const Call& call);
  ReplyOutcome complete(const ReplyRequest& request, const std::vector<int32_t>& ids,
                        const Settings& options, const ReplySink& sink, const Call& call);
  /// The vector of a text. Forgets what was held.
  std::vector<float> embed(const RawPrompt& text, const Call& call, uint32_t* tokens);

  uint64_t last_used = 0;

 private:
  struct Held {
    std::string key;
    /// Where it can be gone back to; 0: a user's message alone begins a turn.
    uint64_t turn_begin = 0;
    uint64_t end = 0;  ///< position behind it
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
  /// As oriel_session_describe has it; null: it failed.
  Json describe() const;
  ReplyOutcome finish(ReplyOutcome outcome, const Settings& options, const Watcher::Guard& guard,
                      oriel_status status);

  const Model& model_;
  const Settings& base_;
  ChatForm form_;
  oriel_session* session_ = nullptr;
  uint64_t begin_ = 0;  ///< position of an empty session: behind the prefix
  std::vector<Held> held_;
  std::vector<int32_t> ids_;  ///< of a completion
  /// Of a request that did not come to its end the session holds who knows what: the next one that opens it begins anew.
  bool changing_ = false;
};

}  // namespace cli
