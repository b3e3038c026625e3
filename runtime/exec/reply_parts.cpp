#include "exec/reply_parts.h"

namespace oriel_internal {
namespace {

oriel_part_kind publicKindOf(PartKind kind) {
  switch (kind) {
    case PartKind::kText:
      return ORIEL_PART_TEXT;
    case PartKind::kThought:
      return ORIEL_PART_THOUGHT;
    case PartKind::kCallBegun:
      return ORIEL_PART_CALL_BEGUN;
    case PartKind::kCallArguments:
      return ORIEL_PART_CALL_ARGUMENTS;
    case PartKind::kCallEnded:
      return ORIEL_PART_CALL_ENDED;
  }
  return ORIEL_PART_TEXT;
}

}  // namespace

void ReplyParts::start(const ReplySettings& settings, const PartListener& listener, bool reads) {
  listener_ = listener;
  stopped_ = false;
  reads_ = reads || listener.on_part != nullptr;
  reader_.start(settings, tell, this);
  values_.start(listener.values ? tellValue : nullptr, this);
}

void ReplyParts::tell(const ReplyPart& part, void* user) {
  ReplyParts& self = *static_cast<ReplyParts*>(user);
  self.tell(publicKindOf(part.kind), part.call, part.text, part.bytes, nullptr);
  if (part.kind == PartKind::kText) {
    self.values_.push(part.text, part.bytes);
  }
}

void ReplyParts::tellValue(JsonEvent event, const char* path, const char* text, size_t bytes,
                           void* user) {
  constexpr oriel_part_kind kKinds[] = {ORIEL_PART_STRING, ORIEL_PART_LITERAL,
                                        ORIEL_PART_VALUE_ENDED};
  static_cast<ReplyParts*>(user)->tell(kKinds[static_cast<size_t>(event)], 0, text, bytes, path);
}

void ReplyParts::tell(oriel_part_kind kind, uint32_t call, const char* text, size_t bytes,
                      const char* path) {
  if (stopped_ || listener_.on_part == nullptr) {
    return;
  }
  oriel_part told = {};
  told.struct_size = sizeof(told);
  told.kind = kind;
  told.call = call;
  told.text = text;
  told.text_bytes = bytes;
  told.path = path;
  stopped_ = listener_.on_part(&told, listener_.user) != 0;
}

}  // namespace oriel_internal
