// The part of a session that saves and restores snapshots.
#include <algorithm>
#include <cstdio>

#include "base/hash.h"
#include "exec/session.h"
#include "exec/snapshot.h"

namespace oriel_internal {
namespace {

// Distinguishes templates from the app, because a text that continues in one template may not in another. The model's
// hash already covers its own template.
void nameChat(const SessionContext& context, SnapshotOwner* owner) {
  const ChatTemplate& chat = context.chat;
  if (!context.own_template && chat.row == nullptr) {
    std::snprintf(owner->chat, sizeof(owner->chat), "jinja-%016llx",
                  static_cast<unsigned long long>(hashBytes(chat.jinja, chat.jinja_bytes)));
  } else {
    std::snprintf(owner->chat, sizeof(owner->chat), "%s", chat.name());
  }
}

// A model with adapters counts as another model.
void nameModel(const SessionContext& context, const AdapterUse* use, SnapshotOwner* owner) {
  const size_t room = sizeof(owner->model_name);
  size_t used = static_cast<size_t>(
      std::max(std::snprintf(owner->model_name, room, "%s", context.model_name), 0));
  for (uint32_t i = 0; use != nullptr && i < context.model->adapters->count; ++i) {
    const Adapter& adapter = context.model->adapters->list[i];
    if (use->scale[i] == 0) {
      continue;
    }
    owner->model_hash = hashBytes(&adapter.hash, sizeof(adapter.hash), owner->model_hash);
    owner->model_hash = hashBytes(&use->scale[i], sizeof(float), owner->model_hash);
    if (used < room) {
      used += static_cast<size_t>(
          std::max(std::snprintf(owner->model_name + used, room - used, " + %s:%.4g", adapter.name,
                                 static_cast<double>(use->scale[i])),
                   0));
    }
  }
}

}  // namespace

SnapshotOwner Session::snapshotOwner() const {
  SnapshotOwner owner;
  owner.plan = context_.plan;
  owner.model = context_.model;
  owner.cache = memory_.cache();
  owner.model_hash = context_.model_hash;
  nameModel(context_, memory_.adapters, &owner);
  nameChat(context_, &owner);
  owner.whole_turns = memory_.whole_turns;
  owner.allocator = context_.allocator;
  owner.recall_tokens = context_.recall.tokens;
  if (context_.prefixTokens() != 0) {
    owner.prefix_ids = context_.prefix->ids;
    owner.prefix_tokens = context_.prefix->tokens;
  }
  return owner;
}

Status Session::save(void* out, uint64_t* bytes, int64_t saved_at) const {
  const SnapshotOwner owner = snapshotOwner();
  const SavedParts parts = {&at_, &memory_.ids, &transcript_, memory_.pictures};
  *bytes = snapshotBytes(owner, parts);
  if (out == nullptr) {
    return kOk;
  }
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  const LiveSlots live = {memory_.states != nullptr ? memory_.states->current() : 0,
                          stepper_.logitsRow(), context_.index};
  return writeSnapshot(owner, parts, live, saved_at, context_.executor, out);
}

// The use of a snapshot from another model or in another chat format.
Status Session::readFrom(const Snapshot& snapshot, Rebuilt* result) {
  const uint64_t dropped = snapshot.held().count();
  ORIEL_TRY(readStored(snapshot.transcript, snapshot.header.transcript_bytes, UINT64_MAX - 1));
  result->how = Rebuilt::How::kRead;
  result->dropped = dropped;
  result->held = result->read = at_.position;
  return kOk;
}

Status Session::restore(const RebuildSource& options, Rebuilt* result) {
  const Log& log = options.log;
  Snapshot snapshot;
  ORIEL_TRY(openSnapshot(options.data, options.bytes, log, &snapshot));
  SnapshotOwner owner = snapshotOwner();
  char refusal[512];
  const SnapshotFit fit = fitOf(owner, snapshot, refusal, sizeof(refusal));
  const bool reads = fit == SnapshotFit::kNot && options.reads && !options.exact;
  if (reads && snapshot.header.messages != 0) {
    return readFrom(snapshot, result);
  }
  if (fit == SnapshotFit::kNot || (fit == SnapshotFit::kCarries && options.exact)) {
    const char* const more = reads ? "; it has no transcript to read"
                             : fit == SnapshotFit::kNot && snapshot.header.messages != 0
                                 ? ", or let its transcript be read again"
                                 : "";
    return log.fail(ORIEL_ERROR_FORMAT, "%s%s", refusal, more);
  }
  const DeviceTurn turn = context_.turn();
  ORIEL_TRY(turn.status());
  RestoredParts parts;
  memory_.blank = false;
  ORIEL_TRY(restoreSnapshot(owner, snapshot, fit, log, context_.executor, &parts, &memory_.ids,
                            &transcript_, memory_.pictures));
  stand(parts.at);
  recall_.restore();
  feeder_.standAdapters();
  if (fit == SnapshotFit::kCarries && memory_.states != nullptr && at_.stale) {
    // All tokens that must still be read again must be held.
    at_.base = std::max(at_.base, at_.position + 1 - memory_.viewOf(at_.position).count);
  }
  result->how = fit == SnapshotFit::kSame ? Rebuilt::How::kExactly : Rebuilt::How::kCarried;
  result->rounded = parts.rounded;
  result->held = parts.held;
  result->dropped = parts.dropped;
  return kOk;
}

}  // namespace oriel_internal
