// Ends a thought of a reply that has had its tokens.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/workspace.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Counts the tokens of a reply's thoughts. Once they are as many as allowed, it gives the tokens of the mark that ends the
/// thought; of a mark that the model has begun, the rest.
class ThoughtCap {
 public:
  static constexpr uint32_t kUnlimited = UINT32_MAX;

  /// A reply begins, with at most so many tokens of thoughts.
  void start(uint32_t most) {
    *this = ThoughtCap();
    most_ = most;
  }
  bool active() const { return most_ != kUnlimited; }
  /// `reader` has read one more token. Marks in front of a thought do not count.
  void count(const ReplyReader& reader);
  /// Ends the thought that `reader` is in, if it has had its tokens.
  Status close(const ReplyReader& reader, const Tokenizer& tokenizer, Workspace* workspace);
  /// The token that has to come next; -1: any may.
  int32_t next() const { return taken_ < n_ids_ ? ids_[taken_] : -1; }
  void take() { ++taken_; }

 private:
  uint32_t most_ = kUnlimited;
  uint32_t tokens_ = 0;
  bool thinks_ = false;
  bool closing_ = false;  ///< its end was given, and the reader has not read it yet
  uint32_t n_ids_ = 0;
  uint32_t taken_ = 0;
  int32_t ids_[kMostMark] = {};
};

}  // namespace oriel_internal
