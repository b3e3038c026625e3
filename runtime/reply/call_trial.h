// Whether what is written as a call is read as one: names that a form has no place for are found before a model is held
// to them.
#pragma once

#include "json/json.h"
#include "reply/reader.h"

namespace oriel_internal {

class CallTrial {
 public:
  /// The call that is meant: of `name`, with no arguments or, where there is a key, with the number 1 under it.
  CallTrial(ReplyForms forms, const JsonText& name, const JsonText* key);
  CallTrial(const CallTrial&) = delete;
  CallTrial& operator=(const CallTrial&) = delete;

  void push(const char* text, size_t bytes) { reader_.push(text, bytes); }
  void push(const char* text);
  void push(const JsonText& text) { push(text.data, text.bytes); }
  /// Behind all of it: that call was read, and nothing else.
  bool succeeds();

 private:
  static void onPart(const ReplyPart& part, void* user);
  /// The next bytes of the arguments.
  void compare(const char* text, size_t bytes);

  ReplyReader reader_;
  const JsonText name_;
  const bool has_key_;
  const JsonText key_;
  uint32_t calls_ = 0;
  bool named_ = false;
  bool ended_ = false;
  bool same_ = true;
  size_t at_ = 0;  ///< of the arguments
};

/// Whether Gemma's notation has such a key of an object.
bool isGemmaKey(const JsonText& key);

}  // namespace oriel_internal
