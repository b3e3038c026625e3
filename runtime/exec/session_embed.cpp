// The part of a session that turns a text into a vector.
#include <algorithm>

#include "exec/session.h"
#include "text/utf8.h"

namespace oriel_internal {

/// Hands ids to the session while a text is being encoded.
class Session::EmbedFeed final : public TokenSink {
 public:
  EmbedFeed(Session* session, Pooling pooling, float* sums)
      : session_(session), pooling_(pooling), sums_(sums) {}
  Status take(const int32_t* ids, size_t count, bool last) override {
    return session_->embedIds(ids, count, last, pooling_, sums_);
  }
  bool stops() override { return session_->calls_.cancelled(); }

 private:
  Session* session_;
  Pooling pooling_;
  float* sums_;
};

Status Session::checkEmbeds() const {
  if (position_ != 0 || transcript_.hasUnread()) {
    return context_.log.fail(
        ORIEL_ERROR_STATE,
        "a text becomes a vector in an empty session, this one holds %llu tokens: reset it first",
        static_cast<unsigned long long>(position_));
  }
  return kOk;
}

Status Session::embed(const char* text, size_t bytes, Pooling pooling, float* values,
                      uint32_t* n_tokens) {
  ORIEL_TRY(checkEmbeds());
  size_t bad = 0;
  if (!isValidUtf8(text, bytes, &bad)) {
    return context_.log.fail(ORIEL_ERROR_TEXT,
                             "the text is not valid UTF-8 at byte %zu: convert it first", bad);
  }
  const bool was_blank = blank_;
  EncodeOptions options;
  options.bos = options.eos = true;
  Status status = countToEmbed(text, bytes, options, n_tokens);
  if (status.ok()) {
    std::fill_n(values, context_.model->n_embd, 0.0f);
    Workspace workspace = makeWorkspace();
    TextParts parts;
    parts.add(text, bytes);
    EmbedFeed feed(this, pooling, values);
    if (recall_ != nullptr) {
      recall_->embeds = true;  // until the text is forgotten
    }
    status = feedEncoded(parts, options, &workspace, &feed, /*counter=*/nullptr);
  }
  const Status forgotten = forgetText(was_blank);
  return status.ok() ? forgotten : status;
}

Status Session::embedTokens(const int32_t* ids, size_t count, Pooling pooling, float* values) {
  ORIEL_TRY(checkEmbeds());
  if (count == 0) {
    return context_.log.fail(ORIEL_ERROR_ARGUMENT, "there are no ids to embed: give some");
  }
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= context_.model->n_vocab) {
      return context_.log.fail(ORIEL_ERROR_ARGUMENT,
                               "%d is not in the vocabulary: use ids from 0 to %u", ids[i],
                               context_.model->n_vocab - 1);
    }
  }
  ORIEL_TRY(checkFits("the ids are", count));
  const bool was_blank = blank_;
  std::fill_n(values, context_.model->n_embd, 0.0f);
  if (recall_ != nullptr) {
    recall_->embeds = true;  // until the text is forgotten
  }
  const Status status = embedIds(ids, count, /*last=*/true, pooling, values);
  const Status forgotten = forgetText(was_blank);
  return status.ok() ? forgotten : status;
}

// A vector is made of all tokens: a query has to see them.
Status Session::checkFits(const char* what, uint64_t count) const {
  const uint64_t most = uint64_t{cache_.sinks} + cache_.window;
  return count <= most
             ? kOk
             : context_.log.fail(
                   ORIEL_ERROR_CONTEXT,
                   "%s %llu tokens, the session sees %llu: shorten it, or load the model with a "
                   "window of %llu tokens (--window)",
                   what, static_cast<unsigned long long>(count),
                   static_cast<unsigned long long>(most),
                   static_cast<unsigned long long>(count - cache_.sinks));
}

// Refuses texts of no tokens, and of more than a query sees.
Status Session::countToEmbed(const char* text, size_t bytes, const EncodeOptions& options,
                             uint32_t* n_tokens) {
  Workspace workspace = makeWorkspace();
  size_t count = 0;
  const Tokenizer& tokenizer = *context_.tokenizer;
  if (const Status status =
          tokenizer.encode(text, bytes, options, &workspace, context_.log, nullptr, 0, &count);
      !status.ok() && status.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return status;
  }
  if (count <= (tokenizer.addBos() ? 1u : 0u) + (tokenizer.addEos() ? 1u : 0u)) {
    return context_.log.fail(ORIEL_ERROR_ARGUMENT, "the text has no tokens: give some text");
  }
  ORIEL_TRY(checkFits("the text has", count));
  *n_tokens = static_cast<uint32_t>(count);
  return kOk;
}

// Of the chunk's tokens those that count pass all layers and the last norm. No later token changes the first one's
// vector: it goes alone.
Status Session::embedIds(const int32_t* ids, size_t count, bool last, Pooling pooling,
                         float* sums) {
  if (pooling == Pooling::kFirst) {
    count = position_ == 0 ? 1 : 0;
  }
  ORIEL_TRY(readAhead(ids, count));
  for (size_t done = 0; done < count;) {
    ORIEL_TRY(betweenSteps());
    const uint32_t n =
        static_cast<uint32_t>(std::min<size_t>(count - done, context_.plan->chunk_tokens));
    Outputs outputs = {0, n};
    if (pooling == Pooling::kLast) {
      outputs = {n - 1, last && done + n == count ? 1u : 0u};
    }
    const DeviceTurn turn = this->turn();
    ORIEL_TRY(turn.status());
    ORIEL_TRY(fillRows(ids + done, n));
    ORIEL_TRY(step(ids + done, n, outputs, outputs.count != 0 ? StepRun::kChunkNorms : fillRun()));
    commit(ids + done, n);
    ORIEL_TRY(addNorms(outputs.count, sums));
    done += n;
  }
  return kOk;
}

// Adds what the last norm gave for so many tokens, as many at a time as can be read at once.
Status Session::addNorms(uint32_t rows, float* sums) {
  const Op& norm = lastNorm(*context_.plan);
  const uint32_t stride = norm.push.rms_norm.out_stride;
  const uint64_t row_bytes = sizeof(float) * uint64_t{stride};
  const auto most = static_cast<uint32_t>(context_.plan->upload.size_bytes / 2 / row_bytes);
  const double scale = norm.push.rms_norm.scale;  // of the logits
  for (uint32_t row = 0; row < rows;) {
    const uint32_t n = std::min(rows - row, std::max(most, 1u));
    const void* piece = nullptr;
    ORIEL_TRY(
        context_.executor->read(norm.bindings[kOpOut], row * row_bytes, n * row_bytes, &piece));
    const float* const values = static_cast<const float*>(piece);
    for (uint32_t c = 0; c < context_.model->n_embd; ++c) {
      double sum = 0;
      for (uint32_t i = 0; i < n; ++i) {
        sum += double{values[uint64_t{i} * stride + c]};
      }
      sums[c] += static_cast<float>(sum / scale);
    }
    row += n;
  }
  return kOk;
}

// As a reset, but for a cancel that came too late, which is the next call's. Of the cache only what the text was written
// to, unless others were before it: texts are short, and caches may be long.
Status Session::forgetText(bool was_blank) {
  BufferRef* const pieces = static_cast<BufferRef*>(workspace_block_);
  constexpr size_t kMost = kSessionWorkspaceBytes / sizeof(BufferRef);
  size_t count = kMost + 1;
  if (was_blank) {
    writtenPieces(*context_.plan, *context_.model, cache_, stored_, pieces, kMost, &count);
  }
  waitForDevice();
  const DeviceTurn turn = this->turn();
  ORIEL_TRY(turn.status());
  const Status status = count <= kMost ? context_.executor->forget(pieces, count) : forgetMemory();
  forgetOnHost();
  blank_ =
      status.ok();  // what a driver had no memory to overwrite is overwritten with what comes next
  return status;
}

}  // namespace oriel_internal
