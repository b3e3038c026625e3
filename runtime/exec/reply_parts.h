// What a reply means, for the app that wants to know it as it comes.
#pragma once

#include "base/status.h"
#include "reply/json_values.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// Who is told of the parts of a reply.
struct PartListener {
  oriel_part_fn on_part = nullptr;  ///< null: the app does not ask
  void* user = nullptr;
  bool values = false;  ///< also those of an answer in JSON
};

/// Hands parts to the app until it has enough. Fixed memory.
class ReplyParts {
 public:
  /// Where the app does not ask nothing is read unless `reads`. `settings.tools` has to stay until finish().
  void start(const ReplySettings& settings, const PartListener& listener, bool reads = false);
  bool wanted() const { return reads_; }
  /// More of the reply, as ReplyReader has it.
  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void finish() {
    reader_.finish();
    values_.finish();
  }
  /// Overwrites what it has held.
  void forget() {
    reader_.forget();
    values_.forget();
  }
  /// The app wants no more.
  bool stopped() const { return stopped_; }
  const ReplyReader& reader() const { return reader_; }

 private:
  static void tell(const ReplyPart& part, void* user);
  static void tellValue(JsonEvent event, const char* path, const char* text, size_t bytes,
                        void* user);
  void tell(oriel_part_kind kind, uint32_t call, const char* text, size_t bytes, const char* path);

  ReplyReader reader_;
  JsonValues values_;
  PartListener listener_;
  bool stopped_ = false;
  bool reads_ = false;
};

}  // namespace oriel_internal
