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

void ReplyParts::start(const ReplySettings& settings, oriel_part_fn on_part, void* user,
                       bool reads) {
  on_part_ = on_part;
  user_ = user;
  stopped_ = false;
  reads_ = reads || on_part != nullptr;
  reader_.start(settings, tell, this);
}

void ReplyParts::tell(const ReplyPart& part, void* user) {
  ReplyParts& self = *static_cast<ReplyParts*>(user);
  if (self.stopped_ || self.on_part_ == nullptr) {
    return;
  }
  oriel_part told = {};
  told.struct_size = sizeof(told);
  told.kind = publicKindOf(part.kind);
  told.call = part.call;
  told.text = part.text;
  told.text_bytes = part.bytes;
  self.stopped_ = self.on_part_(&told, self.user_) != 0;
}

}  // namespace oriel_internal
