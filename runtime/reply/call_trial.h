// Checks that a written call is read back as the same call. Finds names that a form cannot hold before a model is
// constrained to them.
#pragma once

#include "json/json.h"
#include "reply/reader.h"

namespace oriel_internal {

class CallTrial {
 public:
  /// The expected call of `name`, without arguments or with {`key`: 1}.
  CallTrial(ReplyForms forms, const JsonText& name, const JsonText* key);
  CallTrial(const CallTrial&) = delete;
  CallTrial& operator=(const CallTrial&) = delete;

  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void push(const char* text);
  void push(const JsonText& text) { push(text.data, text.bytes); }
  /// Call at the end: true if exactly that call was read.
  bool succeeds();

 private:
  static void onPart(const ReplyPart& part, void* user);
  /// Compares the next bytes of the arguments.
  void compare(const char* text, size_t bytes);

  ReplyReader reader_;
  const JsonText name_;
  const bool has_key_;
  const JsonText key_;
  uint32_t calls_ = 0;
  bool named_ = false;
  bool ended_ = false;
  bool same_ = true;
  size_t at_ = 0;  ///< position in the arguments
};

/// True if Gemma's notation can hold this object key.
bool isGemmaKey(const JsonText& key);

}  // namespace oriel_internal
