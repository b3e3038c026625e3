// The part of a session that has its steps in common with others.
#include "exec/session.h"

namespace oriel_internal {

// Its token becomes row `row` of the block. What can fail does so before anything changes.
Status Session::fillJoined(void* block, uint32_t row, const DecodeRequest& request) {
  if (rows_.active()) {
    ORIEL_TRY(rows_.fill(&request.id, 1, context_.log, context_.executor->fileRows(), row));
  }
  // A session is the same on devices that run ahead.
  willStore(at_.position + (request.more && mayRunAhead() ? 2 : 1));
  fillToken(block, row, at_.position, at_.position, request.id, row);
  return kOk;
}

Status Session::endJoined(const DecodeRequest& request) {
  if (!request.status.ok()) {
    at_.has_logits = at_.has_logits && endedInBody(request.status);
    at_.unfinished = request.status.lost() ? request.id : -1;
    return request.status;
  }
  ++submissions_;
  has_top_ = true;
  at_.has_logits = 1;
  logits_row_ = top_row_ = 0;
  commit(&request.id, 1, !(request.more && mayRunAhead()));
  return kOk;
}

namespace {

void setAll(DecodeRequest* const* requests, uint32_t count, Status status) {
  for (uint32_t i = 0; i < count; ++i) {
    requests[i]->status = status;
  }
}

}  // namespace

// Rows of the block that cannot be filled are left out. Where experts could not be read for all, it may be one of them
// who wants what is not there: each goes alone.
void Session::runTogether(DecodeRequest* const* requests, uint32_t count) {
  const Session& first = *requests[0]->session;
  Executor* const executor = first.context_.executor;
  void* const block = executor->step();
  DecodeRequest* filled[kMaxSessions];
  uint32_t n_filled = 0;
  first.fillHeader(block, count, count);
  for (uint32_t i = 0; i < count; ++i) {
    requests[i]->status = requests[i]->session->fillJoined(block, n_filled, *requests[i]);
    if (requests[i]->status.ok()) {
      filled[n_filled++] = requests[i];
    }
  }
  if (n_filled == 0) {
    return;
  }
  first.fillHeader(block, n_filled, n_filled);
  const Status status = executor->run(n_filled == 1 ? StepRun::kDecode : StepRun::kBatch);
  setAll(filled, n_filled, status);
  if (n_filled > 1 && endedInBody(status)) {
    for (uint32_t i = 0; i < n_filled; ++i) {
      runTogether(filled + i, 1);
    }
  }
}

}  // namespace oriel_internal
