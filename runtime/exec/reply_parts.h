// What a reply means, for the app that wants to know it as it comes.
#pragma once

#include "base/status.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Hands parts to the app until it has enough. Fixed memory.
class ReplyParts {
 public:
  /// Null: the app does not ask, and nothing is read unless `reads`. `settings.tools` has to stay until finish().
  void start(const ReplySettings& settings, oriel_part_fn on_part, void* user, bool reads = false);
  bool wanted() const { return reads_; }
  /// More of the reply, as ReplyReader has it.
  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void finish() { reader_.finish(); }
  /// Overwrites what it has held.
  void forget() { reader_.forget(); }
  /// The app wants no more.
  bool stopped() const { return stopped_; }
  const ReplyReader& reader() const { return reader_; }

 private:
  static void tell(const ReplyPart& part, void* user);

  ReplyReader reader_;
  oriel_part_fn on_part_ = nullptr;
  void* user_ = nullptr;
  bool stopped_ = false;
  bool reads_ = false;
};

}  // namespace oriel_internal
