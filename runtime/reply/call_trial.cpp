#include "reply/call_trial.h"

#include <cstring>
#include <initializer_list>

namespace oriel_internal {
namespace {

constexpr char kBehindKey[] = "\":1}";

/// Byte `at` of {"key":1}, without escapes: a key that needs escapes would be read differently. -1: past the end.
int argumentAt(const JsonText& key, size_t at) {
  const size_t behind = 2 + key.bytes;
  const char c = at == 0       ? '{'
                 : at == 1     ? '"'
                 : at < behind ? key.data[at - 2]
                               : kBehindKey[at < behind + 4 ? at - behind : 4];
  return at < behind + 4 ? static_cast<unsigned char>(c) : -1;
}

}  // namespace

CallTrial::CallTrial(ReplyForms forms, const JsonText& name, const JsonText* key)
    : name_(name), has_key_(key != nullptr), key_(has_key_ ? *key : JsonText()) {
  ReplySettings settings;
  settings.forms = forms;
  reader_.start(settings, onPart, this);
}

void CallTrial::push(const char* text) { push(text, std::strlen(text)); }

bool CallTrial::succeeds() {
  reader_.finish();
  const bool whole = !has_key_ ? at_ == 2 : argumentAt(key_, at_) < 0;
  return same_ && named_ && ended_ && whole && calls_ == 1;
}

void CallTrial::onPart(const ReplyPart& part, void* user) {
  CallTrial& self = *static_cast<CallTrial*>(user);
  switch (part.kind) {
    case PartKind::kText:
    case PartKind::kThought:
      self.same_ = false;
      return;
    case PartKind::kCallBegun:
      ++self.calls_;
      self.named_ = JsonText{part.text, part.bytes} == self.name_;
      return;
    case PartKind::kCallArguments:
      return self.compare(part.text, part.bytes);
    case PartKind::kCallEnded:
      self.ended_ = true;
      return;
  }
}

void CallTrial::compare(const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i, ++at_) {
    const int wanted = has_key_ ? argumentAt(key_, at_) : at_ == 0 ? '{' : '}';
    same_ = same_ && wanted == static_cast<unsigned char>(text[i]);
  }
}

bool isGemmaKey(const JsonText& key) {
  ValueReader reader;
  reader.start(ValueNotation::kGemma);
  struct Seen {
    const JsonText& key;
    size_t at = 0;
    bool same = true;
  } seen{key};
  const ByteSink out = {[](char byte, void* user) {
                          Seen& self = *static_cast<Seen*>(user);
                          self.same = self.same &&
                                      argumentAt(self.key, self.at++) == static_cast<uint8_t>(byte);
                        },
                        &seen};
  ValueStep step = reader.push('{', out);
  for (size_t i = 0; i < key.bytes && step == ValueStep::kMore; ++i) {
    step = reader.push(key.data[i], out);
  }
  for (const char c : {':', '1', '}'}) {
    step = step == ValueStep::kMore ? reader.push(c, out) : ValueStep::kWrong;
  }
  return step == ValueStep::kEnded && seen.same && argumentAt(key, seen.at) < 0;
}

}  // namespace oriel_internal
