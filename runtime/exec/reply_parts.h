// The parts of a reply (thoughts, calls, text), for apps that receive them during generation.
#pragma once

#include "base/status.h"
#include "reply/json_values.h"
#include "reply/reader.h"
#include "text/tokenizer.h"

namespace oriel_internal {

/// The receiver of a reply's parts.
struct PartListener {
  oriel_part_fn on_part = nullptr;  ///< null: the app does not need them
  void* user = nullptr;
  bool values = false;  ///< also the values of a JSON answer
};

/// Passes parts to the app until it wants no more. Fixed memory.
class ReplyParts {
 public:
  /// Without a receiver, reads nothing unless `reads`. `settings.tools` must stay valid until finish().
  void start(const ReplySettings& settings, const PartListener& listener, bool reads = false);
  bool wanted() const { return reads_; }
  /// Adds text of the reply, as in ReplyReader.
  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void finish() {
    reader_.finish();
    values_.finish();
  }
  /// Overwrites its contents.
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
