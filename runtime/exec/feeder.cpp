#include "exec/feeder.h"

#include <algorithm>

#include "exec/picture_store.h"
#include "os/os.h"

namespace oriel_internal {
namespace {

constexpr size_t kIdsAtOnce = 2048;
static_assert(kIdsAtOnce * sizeof(int32_t) + Tokenizer::workBytes(1024) + 8192 <=
                  kSessionWorkspaceBytes,
              "oriel.h says from what size on memory is borrowed");

}  // namespace

Feeder::Feeder(const SessionContext& context, Conversation* at, RunningCall* call,
               SessionMemory* memory, SessionRecall* recall, Stepper* stepper, void* workspace)
    : context_(context),
      at_(*at),
      call_(*call),
      memory_(*memory),
      recall_(*recall),
      stepper_(*stepper),
      workspace_(workspace) {}

// ---- The loop ------------------------------------------------------------------------------------

Status Feeder::betweenSteps() {
  if (call_.isHot()) {
    ORIEL_TRY(stepper_.settle());
    call_.coolDown();
  }
  if (call_.wantsRest()) {
    ORIEL_TRY(stepper_.settle());
    call_.rest();
  }
  ORIEL_TRY(call_.check());
  return recall_.saveBlocks();
}

// Calls read(ids, count, last) for each batch of at most `most` ids, until *stop.
template <typename Read>
Status Feeder::feedBatches(const int32_t* ids, size_t count, uint32_t most, const Read& read,
                           const bool* stop) {
  ORIEL_TRY(stepper_.readAhead(ids, count));
  for (size_t done = 0; done < count && !(stop != nullptr && *stop);) {
    ORIEL_TRY(betweenSteps());
    const uint32_t n = batchOf(count - done, most, [&](uint32_t i) { return ids[done + i]; });
    ORIEL_TRY(read(ids + done, n, done + n == count));
    done += n;
  }
  return kOk;
}

Status Feeder::checkIds(const TokenSource& source) const {
  for (size_t i = 0; i < source.count; ++i) {
    if (source.ids[i] < 0 || static_cast<uint32_t>(source.ids[i]) >= context_.model->n_vocab) {
      return context_.log.fail(ORIEL_ERROR_ARGUMENT,
                               "token id %d is outside the vocabulary: use ids from 0 to %u",
                               source.ids[i], context_.model->n_vocab - 1);
    }
  }
  return kOk;
}

Status Feeder::append(const TokenSource& source) {
  if (source.is_text) {
    Workspace workspace = this->workspace();
    TextParts parts;
    parts.add(source.text, source.count);
    return feedText(parts, source.options, &workspace, nullptr);
  }
  ORIEL_TRY(checkIds(source));
  if (source.on_logits != nullptr) {
    return evaluate(source);
  }
  call_.expect(source.count);
  ORIEL_TRY(refresh());
  return feed(source.ids, source.count, true);
}

Status Feeder::feed(const int32_t* ids, size_t count, bool ends, ReadAs as) {
  ORIEL_TRY(findInvocations(ids, count));
  const double begin_ms = nowMs();
  const bool is_prompt = as == ReadAs::kPrompt;
  const auto read = [&](const int32_t* batch, uint32_t n, bool last) -> Status {
    ORIEL_TRY(stepper_.read(batch, n, ends && last, n == 1));
    at_.prompt_tokens += is_prompt ? n : 0;
    call_.read(n);
    return kOk;
  };
  ORIEL_TRY(feedBatches(ids, count, as == ReadAs::kSteps ? 1 : context_.plan->chunk_tokens, read));
  at_.prompt_ms += is_prompt ? nowMs() - begin_ms : 0;
  return kOk;
}

// ---- Texts ---------------------------------------------------------------------------------------

/// Counts the ids of a text that comes in pieces.
class Feeder::Counter final : public TokenSink {
 public:
  explicit Counter(RunningCall* call) : call_(*call) {}
  Status take(const int32_t*, size_t count, bool) override {
    call_.expect(count);
    tokens_ += count;
    return kOk;
  }
  bool stops() override { return call_.cancelled(); }
  uint64_t tokens() const { return tokens_; }

 private:
  RunningCall& call_;
  uint64_t tokens_ = 0;
};

/// Feeds ids while a text is encoded. The ids of each message form whole batches and a rest, independent of their
/// source.
class Feeder::TextFeed final : public TokenSink {
 public:
  /// `counter`: has counted the ids before; null: they are not counted. `messages`: null: none.
  TextFeed(Feeder* feeder, const Counter* counter, FedMessages* messages)
      : feeder_(*feeder),
        counter_(counter),
        messages_(messages),
        begin_(feeder->at_.position),
        skip_(messages != nullptr ? begin_ - messages->base : 0),
        pictures_(feeder->memory_.pictures) {
    if (pictures_ != nullptr) {
      placeholder_ = words().placeholder();
    }
  }

  Status take(const int32_t* ids, size_t count, bool last) override {
    const uint64_t skipped = std::min<uint64_t>(skip_, count);
    skip_ -= skipped;
    ids += skipped;
    count -= static_cast<size_t>(skipped);
    feeder_.call_.expect(counter_ != nullptr ? 0 : count);
    tokens_ += count;
    const bool all = last || counter_ != nullptr;
    warned_ = warned_ ||
              feeder_.warnIfLonger(begin_, counter_ != nullptr ? counter_->tokens() : tokens_, all);
    if (messages_ == nullptr) {
      return feeder_.feed(ids, count, last);
    }
    for (size_t i = 0; i < count; ++i) {
      const bool is_last = last && i + 1 == count;
      if (pictures_ != nullptr && ids[i] == placeholder_ && next_ < pictures_->pending()) {
        ORIEL_TRY(addPicture(pictures_->pending(next_++), is_last));
      } else {
        ORIEL_TRY(add(ids[i], is_last));
      }
    }
    return kOk;
  }
  bool stops() override { return feeder_.call_.cancelled(); }

 private:
  PictureTokens words() const {
    return PictureTokens(*feeder_.context_.tokenizer, pictures_->input().words);
  }
  Status add(int32_t id, bool is_last) {
    kept_[n_kept_++] = id;
    return n_kept_ == feeder_.context_.plan->chunk_tokens || is_last ||
                   endsAt(feeder_.at_.position + n_kept_)
               ? flush(is_last)
               : Status(kOk);
  }
  Status addPicture(const HeldPicture& picture, bool is_last) {
    uint64_t left = 0;
    ORIEL_TRY(words().count(picture, feeder_.context_.log, &left));
    feeder_.call_.expect(left - 1);
    const bool together = pictures_->input().rows_together != 0;
    uint32_t row = 0;
    return words().forEach(picture, [&](int32_t id) -> Status {
      const bool begins = TokenIds::isRow(id) && row++ == 0;
      if (begins && together && n_kept_ + picture.rows > feeder_.context_.plan->chunk_tokens) {
        ORIEL_TRY(flush(false));
      }
      if (begins && pictures_->input().in_dimensions &&
          !pictures_->addSpan(feeder_.at_.position + n_kept_, picture.rows, picture.columns[1])) {
        return feeder_.context_.log.fail(
            ORIEL_ERROR_CONTEXT, "the session has %u pictures: reset it", PictureStore::kMostSpans);
      }
      --left;
      return add(id, is_last && left == 0);
    });
  }
  // Every message except the last ends there.
  bool endsAt(uint64_t position) const {
    return messages_->done + 1 < messages_->count &&
           position >= messages_->base + messages_->tokens[messages_->done].end;
  }
  Status flush(bool last) {
    const uint32_t count = n_kept_;
    n_kept_ = 0;
    ORIEL_TRY(feeder_.feed(kept_, count, last));
    while (endsAt(feeder_.at_.position) || (last && messages_->done != messages_->count)) {
      messages_->end();
    }
    return kOk;
  }

  Feeder& feeder_;
  const Counter* counter_;
  FedMessages* messages_;
  const uint64_t begin_;
  uint64_t skip_;  ///< ids that the session already holds
  uint64_t tokens_ = 0;
  bool warned_ = false;
  WipedArray<int32_t, kMaxChunk> kept_;
  uint32_t n_kept_ = 0;
  PictureStore* const pictures_;
  int32_t placeholder_ = -1;
  uint32_t next_ = 0;  ///< of the expected pictures
};

// Call before the ids from `begin` on are read. There are `tokens` of them, or more unless these are `all`.
bool Feeder::warnIfLonger(uint64_t begin, uint64_t tokens, bool all) const {
  const CacheShape& cache = memory_.cache();
  const uint64_t first = std::max<uint64_t>(begin, cache.sinks);
  const uint64_t end = begin + tokens;
  if (call_.recovers || call_.replays || end <= first + cache.window) {
    return false;
  }
  context_.log.write(
      ORIEL_LOG_WARNING,
      "the text has %s%llu tokens, and the window holds %u: the beginning is not seen "
      "by the reply, shorten the text or load the model with a longer window",
      all ? "" : "more than ", static_cast<unsigned long long>(tokens), cache.window);
  return true;
}

// Number of ids in whole batches.
size_t Feeder::idsAtOnce() const {
  return kIdsAtOnce / context_.plan->chunk_tokens * context_.plan->chunk_tokens;
}

bool Feeder::comesInPieces(const TextParts& text) const {
  return context_.tokenizer->idsAtMost(text.bytes()) >= idsAtOnce();
}

// Counting takes about a hundredth of the time for reading. It runs only for a progress callback or a possible warning.
Status Feeder::feedText(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                        FedMessages* messages) {
  ORIEL_TRY(refresh());
  const bool tells = context_.progress != nullptr ||
                     context_.tokenizer->idsAtMost(text.bytes()) > memory_.cache().window;
  Counter counter(&call_);
  Counter* const counts = tells && comesInPieces(text) ? &counter : nullptr;
  TextFeed feed(this, counts, messages);
  return feedPieces(text, options, workspace, &feed, counts);
}

Status Feeder::feedPieces(const TextParts& text, const EncodeOptions& options, Workspace* workspace,
                          TokenSink* sink, TokenSink* counter) {
  const Tokenizer& tokenizer = *context_.tokenizer;
  const size_t capacity = idsAtOnce();
  const BorrowedBytes ids(workspace, capacity * sizeof(int32_t));
  size_t bytes = 0;
  if (comesInPieces(text)) {
    ORIEL_TRY(tokenizer.encodeBytes(text, options, workspace, context_.log, sink, &bytes));
  }
  const bool borrows = bytes > workspace->available();
  const BorrowedBytes memory(workspace, borrows ? bytes : 0);
  if (ids.data() == nullptr || memory.data() == nullptr) {
    return context_.log.fail(
        ORIEL_ERROR_OUT_OF_MEMORY,
        "no %zu bytes of working memory for one word of the text: free memory or shorten it",
        bytes);
  }
  Workspace own(memory.data(), bytes, context_.allocator);
  Workspace* const words = borrows ? &own : workspace;
  if (counter != nullptr) {
    ORIEL_TRY(tokenizer.encodeParts(text, options, words, context_.log, ids.as<int32_t>(), capacity,
                                    counter));
  }
  return tokenizer.encodeParts(text, options, words, context_.log, ids.as<int32_t>(), capacity,
                               sink);
}

// ---- Other outputs -------------------------------------------------------------------------------

Status Feeder::evaluate(const TokenSource& source) {
  ORIEL_TRY(refresh());
  ORIEL_TRY(findInvocations(source.ids, source.count));
  const uint32_t n_vocab = context_.model->n_vocab;
  bool stop = false;
  const auto read = [&](const int32_t* batch, uint32_t n, bool) -> Status {
    EvaluatedBatch rows = stepper_.begin(batch, n);
    uint32_t shown = 0;
    for (; shown < n && !stop; ++shown) {
      ORIEL_TRY(shown != 0 ? call_.check() : Status(kOk));
      const float* logits = nullptr;
      ORIEL_TRY(stepper_.evaluate(&rows, shown, &logits));
      const size_t index = static_cast<size_t>(batch - source.ids) + shown;
      stop = source.on_logits(index, logits, n_vocab, source.user) != 0;
    }
    stepper_.commit(batch, n);
    at_.has_logits = shown == n ? 1 : 0;  // otherwise the logits belong to an earlier token
    return kOk;
  };
  ORIEL_TRY(feedBatches(source.ids, source.count, context_.plan->chunk_tokens, read, &stop));
  return stepper_.settle();
}

/// Feeds ids for a vector while a text is encoded.
class Feeder::EmbedFeed final : public TokenSink {
 public:
  EmbedFeed(Feeder* feeder, Pooling pooling, float* sums)
      : feeder_(*feeder), pooling_(pooling), sums_(sums) {}
  Status take(const int32_t* ids, size_t count, bool last) override {
    return feeder_.embedIds(ids, count, last, pooling_, sums_);
  }
  bool stops() override { return feeder_.call_.cancelled(); }

 private:
  Feeder& feeder_;
  Pooling pooling_;
  float* sums_;
};

Status Feeder::embed(const TokenSource& source, Pooling pooling, float* sums) {
  if (!source.is_text) {
    ORIEL_TRY(checkIds(source));
    return embedIds(source.ids, source.count, /*last=*/true, pooling, sums);
  }
  Workspace workspace = this->workspace();
  TextParts parts;
  parts.add(source.text, source.count);
  EmbedFeed feed(this, pooling, sums);
  return feedPieces(parts, source.options, &workspace, &feed, /*counter=*/nullptr);
}

// If only the first token's vector is needed, no later token is read.
Status Feeder::embedIds(const int32_t* ids, size_t count, bool last, Pooling pooling, float* sums) {
  ORIEL_TRY(findInvocations(ids, count));
  if (pooling == Pooling::kFirst) {
    count = at_.position == 0 ? 1 : 0;
  }
  return feedBatches(ids, count, context_.plan->chunk_tokens,
                     [&](const int32_t* batch, uint32_t n, bool ends) {
                       const StepOutputs outputs = pooling != Pooling::kLast
                                                       ? StepOutputs{0, n}
                                                       : StepOutputs{n - 1, last && ends ? 1u : 0u};
                       return stepper_.readNorms(batch, n, outputs, sums);
                     });
}

// ---- Adapters ------------------------------------------------------------------------------------

// The beginning of the last occurrence of the adapter's invocation tokens, in held tokens and these ids. kNever: no new
// occurrence.
uint64_t Feeder::lastInvocation(uint32_t adapter, const int32_t* ids, size_t count) const {
  const AdapterUse& use = *memory_.adapters;
  const Adapter& of = context_.model->adapters->list[adapter];
  const uint64_t end = at_.position + count;
  const uint64_t overlap = std::min<uint64_t>(use.searched, of.n_invocation - 1);
  const auto is = [&](uint64_t t, int32_t id) {
    return t >= at_.position ? ids[t - at_.position] == id
                             : memory_.knows(t, t + 1) && memory_.ids.at(t) == id;
  };
  for (uint64_t t = end; t-- > use.searched - overlap;) {
    uint32_t same = 0;
    while (same < of.n_invocation && t + same < end && is(t + same, of.invocation[same])) {
      ++same;
    }
    if (same == of.n_invocation) {
      return t;
    }
  }
  return AdapterUse::kNever;
}

// Activated adapters apply from there on. Tokens read without them are read again.
Status Feeder::findInvocations(const int32_t* ids, size_t count) {
  AdapterUse* const use = memory_.adapters;
  if (use == nullptr || use->reads_again) {
    return kOk;
  }
  const Adapters& all = *context_.model->adapters;
  for (uint32_t i = 0; i < all.count; ++i) {  // invocations that going back has removed
    if (all.list[i].n_invocation != 0 && use->from[i] != AdapterUse::kNever &&
        use->from[i] + all.list[i].n_invocation > at_.position) {
      use->markStale(use->from[i]);
      use->from[i] = AdapterUse::kNever;
      use->searched = 0;
    }
  }
  use->searched = std::min(use->searched, at_.position);
  for (uint32_t i = 0; i < all.count; ++i) {
    const uint64_t found =
        all.list[i].n_invocation != 0 ? lastInvocation(i, ids, count) : AdapterUse::kNever;
    if (found != AdapterUse::kNever) {
      if (use->scale[i] != 0 && found != use->from[i]) {
        use->markStale(std::min(use->from[i], found));
      }
      use->from[i] = found;
    }
  }
  use->searched = at_.position + count;
  return readStale();
}

void Feeder::standAdapters() {
  AdapterUse* const use = memory_.adapters;
  if (use == nullptr) {
    return;
  }
  use->searched = 0;
  use->stale_from = AdapterUse::kNever;
  for (uint32_t i = 0; i < context_.model->adapters->count; ++i) {
    use->from[i] =
        context_.model->adapters->list[i].n_invocation != 0 ? lastInvocation(i, nullptr, 0) : 0;
  }
  use->searched = at_.position;
}

// Reads visible tokens again that were read with other scales.
Status Feeder::readStale() {
  AdapterUse& use = *memory_.adapters;
  const uint64_t end = at_.position;
  const uint64_t from = std::max<uint64_t>(use.stale_from, context_.prefixTokens());
  if (from >= end || use.reads_again) {
    use.stale_from = AdapterUse::kNever;
    return kOk;
  }
  use.reads_again = true;
  Status status = kOk;
  if (memory_.states != nullptr) {
    status = readAnew(end);
  } else {
    const uint64_t sinks = std::min<uint64_t>(at_.sinks, end);
    const uint64_t first = std::max({from, sinks, end - memory_.viewOf(end - 1).count});
    call_.expect((from < sinks ? sinks - from : 0) + (end - first));
    at_.has_logits = 0;
    if (from < sinks) {
      at_.position = from;
      status = readAgain(sinks, first == end);
    }
    if (status.ok() && first != end) {
      at_.position = first;
      status = readAgain(end, true);
    }
    at_.position = end;
    at_.has_logits = status.ok() ? at_.has_logits : 0;
  }
  use.reads_again = false;
  use.stale_from = status.ok() ? AdapterUse::kNever : use.stale_from;
  return status;
}

// ---- Held tokens ---------------------------------------------------------------------------------

Status Feeder::readAgain(uint64_t end, bool ends) {
  const WipedCopy<SamplerState> sampler = at_.sampler;
  const uint32_t prompt_tokens = at_.prompt_tokens;
  Status status = kOk;
  while (at_.position < end && status.ok()) {
    WipedArray<int32_t, kMaxChunk> ids;
    const uint32_t n = heldBatch(at_.position, end);
    memory_.ids.copy(at_.position, n, ids);
    status = feed(ids, n, ends && at_.position + n == end);
    call_.counts.read_again += status.ok() && !call_.recovers ? n : 0;
  }
  at_.sampler = sampler;
  at_.prompt_tokens = prompt_tokens;
  return status;
}

Status Feeder::replay(uint64_t end, bool ends, ReplaySteps* steps, uint64_t* read, bool* exact) {
  while (at_.position < end) {
    ORIEL_TRY(recall_.again());
    bool as_then = true;
    *exact = *exact && recall_.isAsThen();
    const uint32_t n = steps->next(at_.position, end, &as_then);
    const bool batch = (memory_.ids.marks(at_.position) & TokenIds::kBatch) != 0;
    WipedArray<int32_t, kMaxChunk> ids;
    memory_.ids.copy(at_.position, n, ids);
    ORIEL_TRY(feedBatches(ids, n, n, [&](const int32_t* of, uint32_t count, bool) {
      return stepper_.read(of, count, ends && at_.position + count == end,
                           count == 1 && (!batch || !as_then));
    }));
    *read += n;
    *exact = *exact && as_then;
    steps->done(as_then);
    call_.read(n);
  }
  return kOk;
}

Status Feeder::readAnew(uint64_t end) {
  const uint64_t sinks = std::min<uint64_t>(at_.sinks, end);
  const uint64_t origin = context_.prefixTokens();
  ORIEL_TRY(origin != 0 ? memory_.copyPrefix(/*to_prefix=*/false) : kOk);
  memory_.states->restart(origin);
  at_.stale = 0;
  at_.position = origin;
  at_.has_logits = 0;
  call_.expect(sinks + (at_.base < end ? end - at_.base : 0));
  Status status = readAgain(sinks, at_.base >= end);
  if (status.ok()) {
    at_.position = at_.base;
    status = readAgain(end, true);
  }
  at_.position = end;
  at_.has_logits = status.ok() ? at_.has_logits : 0;
  at_.stale = status.ok() ? 0 : 1;
  return status;
}

Status Feeder::forgetEvicted() {
  if (memory_.states == nullptr || !context_.forgets_evicted) {
    return kOk;
  }
  const uint64_t first = at_.position + 1 - memory_.viewOf(at_.position).count;
  if (first > std::max<uint64_t>(at_.base, at_.sinks)) {
    at_.base = first;
    at_.stale = 1;
  }
  return refresh();
}

}  // namespace oriel_internal
