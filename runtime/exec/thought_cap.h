// Ends a thought of a reply that has reached its limit of tokens.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/workspace.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Counts the tokens of a reply's thoughts. At the limit it returns the tokens of the mark that ends the thought. If
/// the model has begun that mark, it returns the rest.
class ThoughtCap {
 public:
  static constexpr uint32_t kUnlimited = UINT32_MAX;

  /// Begins a reply with at most `most` tokens of thoughts.
  void start(uint32_t most) {
    *this = ThoughtCap();
    most_ = most;
  }
  bool active() const { return most_ != kUnlimited; }
  /// Call after `reader` has read one more token. Marks before a thought do not count.
  void count(const ReplyReader& reader);
  /// Ends the current thought of `reader` if it has reached the limit.
  Status close(const ReplyReader& reader, const Tokenizer& tokenizer, Workspace* workspace);
  /// The token that must come next; -1: any token.
  int32_t next() const { return taken_ < n_ids_ ? ids_[taken_] : -1; }
  void take() { ++taken_; }

 private:
  uint32_t most_ = kUnlimited;
  uint32_t tokens_ = 0;
  bool thinks_ = false;
  bool closing_ = false;  ///< the closing mark was returned, and the reader has not read it yet
  uint32_t n_ids_ = 0;
  uint32_t taken_ = 0;
  int32_t ids_[kMostMark] = {};
};

}  // namespace oriel_internal
