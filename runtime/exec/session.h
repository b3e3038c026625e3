// A conversation in progress: feeds tokens to an executor, keeps the position, chooses what comes next.
#pragma once

#include <atomic>

#include "base/workspace.h"
#include "exec/executor.h"
#include "exec/sampler.h"
#include "kv/rope.h"
#include "kv/window.h"
#include "text/chat.h"
#include "text/tokenizer.h"

namespace oriel {

/// What a session works with; all of it outlives the session.
struct SessionContext {
  const ModelDesc* model = nullptr;
  const Plan* plan = nullptr;
  const Tokenizer* tokenizer = nullptr;
  ChatFormat chat_format = ChatFormat::kNone;
  Executor* executor = nullptr;
  const oriel_allocator* allocator = nullptr;
  Log log;
};

/// See oriel.h for what the calls promise. A step is committed only after the executor said it
/// succeeded; until then it has touched ring slots that no committed query can see.
class Session {
 public:
  /// Takes all memory the session will ever need from `arena` (null when measuring).
  static Session* create(const SessionContext& context, uint64_t first_position, Arena* arena);

  Status reset();
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  Status append(const int32_t* ids, size_t count);
  Status appendText(const char* text, size_t bytes, const EncodeOptions& options);
  Status evaluate(const int32_t* ids, size_t count, oriel_logits_fn on_logits, void* user);
  Status logits(const float** values) const;
  Status generate(const SamplerOptions& sampling, uint32_t max_tokens, bool ignore_stop,
                  oriel_token_fn on_token, void* user, oriel_generation* result);

  Status chatAdd(const char* role, const char* text, size_t bytes);
  Status chatReply(const SamplerOptions& sampling, uint32_t max_tokens, oriel_token_fn on_token,
                   void* user, oriel_generation* result);

  uint64_t position() const { return position_; }
  uint32_t windowUsed() const { return position_ == 0 ? 0 : window_.visible(position_ - 1); }
  uint64_t submissions() const { return submissions_; }

 private:
  Session(const SessionContext& context, uint64_t first_position);

  Status checkIds(const int32_t* ids, size_t count) const;
  Status checkCancelled();
  void fillStep(const int32_t* ids, uint32_t count, uint32_t head_row);
  Status submit(StepRun what);
  void commit(const int32_t* ids, uint32_t count);
  Workspace makeWorkspace() const;
  Status appendEncoded(const char* text, size_t bytes, const EncodeOptions& options,
                       Workspace* workspace);
  Status appendRendered(const char* text, size_t bytes, const TextRange& literal,
                        Workspace* workspace);

  const SessionContext context_;
  SlidingWindow window_;
  RopePhases phases_;
  const uint64_t first_position_;
  Sampler sampler_;
  StreamDecoder decoder_;
  void* workspace_block_ = nullptr;
  std::atomic<bool> cancelled_{false};
  uint64_t position_ = 0;  ///< tokens committed
  bool has_logits_ = false;
  bool reply_open_ = false;  ///< the assistant's turn still wants its end
  uint64_t submissions_ = 0;
  uint32_t prompt_tokens_ = 0;  ///< appended since the last reply
  double prompt_ms_ = 0;        ///< and how long that took
};

}  // namespace oriel
