// What a session has where turns that left the window may come back (docs/recall.md).
#pragma once

#include "base/wipe.h"
#include "exec/recall_attention.h"
#include "exec/sampler.h"
#include "text/words.h"

namespace oriel_internal {

/// As a plan allows for it.
struct RecallSettings {
  uint32_t tokens = 0;           ///< sink slots for what comes back; 0: nothing does
  uint64_t file_bytes = 0;       ///< most bytes of a session's file
  uint64_t words = 0;            ///< room for so many in the index
  const char* folder = nullptr;  ///< of the file; outlives the session
};

/// What stood behind the sinks, and since when: so that going back finds it as it was.
class RecallHistory {
 public:
  static constexpr uint32_t kMost = 16;
  struct Entry {
    uint64_t position = 0;  ///< tokens that were there when it came: those behind them see it
    RecallSpans spans;
    bool unknown = false;  ///< it came with a snapshot
  };

  void clear() { *this = RecallHistory(); }
  void push(const Entry& entry) {
    if (count_ == kMost) {
      for (uint32_t i = 1; i < kMost; ++i) {
        entries_[i - 1] = entries_[i];
      }
      --count_;
      known_from_ = entries_[0].position;
    }
    entries_[count_++] = entry;
  }
  /// Forgets what came when so many tokens, or more, were there. Whether anything was.
  bool truncate(uint64_t position) {
    const uint32_t before = count_;
    while (count_ != 0 && entries_[count_ - 1].position >= position) {
      --count_;
    }
    return count_ != before;
  }
  /// What the token behind `position` others sees; null: nothing ever came.
  const Entry* at(uint64_t position) const {
    const Entry* found = nullptr;
    for (uint32_t i = 0; i < count_ && entries_[i].position <= position; ++i) {
      found = &entries_[i];
    }
    return found;
  }
  /// Whether that is so: only the latest are remembered.
  bool knows(uint64_t position) const { return position >= known_from_; }
  const Entry* latest() const { return count_ != 0 ? &entries_[count_ - 1] : nullptr; }

 private:
  Entry entries_[kMost];
  uint32_t count_ = 0;
  uint64_t known_from_ = 0;
};

struct SessionRecall {
  RecallSettings settings;
  void* room = nullptr;  ///< kRecallRoomBytes
  RecallFile file;
  RecallIndex index;
  WordReader reader;  ///< of the token behind those that were saved
  RecallHistory history;
  RecallSpans shown;  ///< what stands behind the sinks now
  /// Words of the messages since the latest reply, and where the first of them began.
  RecallQuery query;
  uint64_t query_begin = 0;
  SamplerState before;  ///< as it was then
  /// Of the last tokens of the opening that was just read, where anything may be looked for.
  RecallLayer layer;
  float* queries = nullptr;  ///< [kRecallQueries][heads][head_dim]
  double* sums = nullptr;    ///< [2][kRecallQueries][heads]
  uint64_t queries_bytes = 0;
  uint64_t sums_bytes = 0;
  uint32_t n_queries = 0;
  bool captures = false;
  bool embeds = false;  ///< what is read is a text for a vector, no conversation
  uint64_t first = 0;   ///< no token before this one was saved
  uint64_t saved = 0;   ///< and none from here on; ends of blocks

  /// The file has the tokens from here to `saved`.
  uint64_t kept() const { return std::max(first, saved - std::min(saved, file.tokens())); }
  bool keeps(const RecallSpans& spans) const {
    bool all = true;
    for (uint32_t i = 0; i < spans.count; ++i) {
      all = all && spans.spans[i].begin >= kept() && spans.spans[i].end <= saved;
    }
    return all;
  }

  /// What has come back stays.
  void stopKeeping(const Log& log) {
    log.write(ORIEL_LOG_WARNING,
              "turns that leave the window are kept no longer: make room where their file is, and "
              "begin the conversation anew");
    file.close();
  }
  /// Nothing of the conversation is left in memory.
  void clear() {
    index.clear();
    wipe(room, kRecallRoomBytes);
    wipe(queries, queries_bytes);
    wipe(sums, sums_bytes);
    reader.restart();
    history.clear();
    shown = {};
    query = {};
    query_begin = 0;
    before = {};
    captures = embeds = false;
    n_queries = 0;
    first = saved = 0;
  }
};

/// What a session takes for it, from its arena.
struct RecallMemory {
  void* object = nullptr;
  void* room = nullptr;
  float* queries = nullptr;
  double* sums = nullptr;
  uint64_t queries_bytes = 0;
  uint64_t sums_bytes = 0;
  RecallIndex index;
};
RecallMemory takeRecall(const RecallSettings& settings, const ModelDesc& model, Arena* arena);

}  // namespace oriel_internal
