// A synthetic recurrent model, and its executor in host memory: sessions must keep their promises for states, too.
// Tests only.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exec/executor.h"
#include "exec/sampler.h"
#include "exec/session.h"
#include "plan/memory_layout.h"
#include "support/tokenizer_case.h"

namespace oriel_internal::test {

constexpr uint32_t kRecurrentVocabulary = 41;
constexpr uint32_t kRecurrentWords = 96;
using RecurrentState = std::array<uint32_t, kRecurrentWords>;

inline uint32_t mixed(uint32_t a, uint32_t b) {
  uint32_t x = a * 0x9E3779B1u ^ (b + 0x7F4A7C15u) * 0x85EBCA6Bu;
  x = (x ^ x >> 15) * 0x2C1B3C6Du;
  return x ^ x >> 12;
}

/// The state after one more token. Every word depends on the whole previous state, so nothing is forgotten.
inline RecurrentState stateAfter(const RecurrentState& state, uint32_t token) {
  uint32_t all = token + 1;
  for (const uint32_t word : state) {
    all = mixed(all, word);
  }
  RecurrentState next;
  for (uint32_t i = 0; i < kRecurrentWords; ++i) {
    next[i] = mixed(state[i] + i, all);
  }
  return next;
}

/// Attention's value for a visible token; the values of all are summed.
inline uint32_t keyOf(uint32_t token) { return mixed(token, 77) >> 8; }

/// All different, so that the best token is unique.
inline std::vector<float> recurrentLogits(const RecurrentState& state, uint32_t seen) {
  std::vector<float> logits(kRecurrentVocabulary);
  for (uint32_t id = 0; id < kRecurrentVocabulary; ++id) {
    const uint32_t rank = mixed(mixed(state[id % kRecurrentWords], state.back()) + seen, id);
    logits[id] = static_cast<float>(rank % 4096 * kRecurrentVocabulary + id) / 1024.0f;
  }
  return logits;
}

/// Layer 0 is attention (one head, f16) over the keys of its tokens, layer 1 keeps the state. With `sharing`, layers 2
/// and 3 read their memories.
inline ModelDesc recurrentModel(bool sharing = false) {
  ModelDesc model;
  model.architecture = "recurrent";
  model.n_layers = sharing ? 4 : 2;
  model.n_embd = 32;
  model.n_heads = model.n_kv_heads = 1;
  model.head_dim = model.ropes[kMainRope].dims = 8;
  model.n_ff = 32;
  model.n_vocab = kRecurrentVocabulary;
  makeLayersAlike(&model);
  LayerKind recurrent;
  recurrent.mixer = Mixer::kState;
  recurrent.rope = kNoRope;
  recurrent.state_words = kRecurrentWords;
  recurrent.view = addView({ViewKind::kState, 0}, &model);
  const uint8_t kind = addKind(recurrent, &model);
  for (uint32_t layer = 1; layer < model.n_layers; layer += 2) {
    model.layers[layer].kind = kind;
  }
  for (uint32_t layer = 2; layer < model.n_layers; ++layer) {
    model.layers[layer].memory_of = static_cast<uint16_t>(layer - 2);
  }
  return model;
}

/// Simulates the worst allowed device behaviour: a failed or stopped step leaves garbage in its outputs, and early steps
/// finish before the call returns.
class RecurrentExecutor final : public Executor {
 public:
  RecurrentExecutor(const ModelDesc& model, const Plan& plan)
      : plan_(plan),
        state_view_(model.kind(1).view),
        cache_(static_cast<size_t>(plan.cache_bytes)),
        activations_(static_cast<size_t>(plan.activation_bytes)),
        io_(static_cast<size_t>(plan.io_bytes)) {
    forEachPlacedMemory(model, plan.cache, plan.formats,
                        [&](const Memory& memory, const BufferRef(&sides)[2]) {
                          if (memory.kind == MemoryKind::kState) {
                            states_ = sides[0];
                          } else {
                            keys_ = sides[0];
                          }
                        });
  }

  Status beginWrite(uint64_t bytes, void** piece) override {
    EXPECT_LE(bytes, plan_.upload.size_bytes / 2);
    *piece = at(plan_.upload);
    return kOk;
  }
  Status endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) override {
    EXPECT_LE(offset_bytes + bytes, destination.size_bytes);
    std::memcpy(at(destination) + offset_bytes, at(plan_.upload), static_cast<size_t>(bytes));
    return kOk;
  }
  Status finishLoad() override { return kOk; }
  Status finishWrites() override { return kOk; }
  Status read(const BufferRef& source, uint64_t offset_bytes, uint64_t bytes,
              const void** piece) override {
    EXPECT_FALSE(begun_) << "read while the device is at work";
    EXPECT_LE(bytes, plan_.upload.size_bytes / 2);
    EXPECT_LE(offset_bytes + bytes, source.size_bytes);
    *piece = at(source) + offset_bytes;
    return kOk;
  }
  Status copy(const CopyPiece* pieces, size_t count) override {
    EXPECT_FALSE(begun_) << "copied while the device is at work";
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(pieces[i].from.size_bytes, pieces[i].to.size_bytes);
      std::memcpy(at(pieces[i].to), at(pieces[i].from),
                  static_cast<size_t>(pieces[i].to.size_bytes));
    }
    return kOk;
  }
  void* step() override { return at(plan_.step); }
  void* rowsOfStep(const BufferRef&) override { return nullptr; }

  using Executor::run;
  Status run(StepRun what, const StopCheck& stop) override {
    EXPECT_FALSE(begun_) << "what was begun ahead was neither wanted nor dropped";
    ++runs;
    if (hasBody(what)) {
      if (!body(step(), stop)) {
        return ORIEL_ERROR_CANCELLED;
      }
      if (fails()) {
        spoil(step());
        return ORIEL_ERROR_INTERNAL;
      }
    }
    if (hasHead(what)) {
      head(step());
    }
    return kOk;
  }

  bool runsAhead() const override { return ahead; }
  void* aheadStep() override { return at(plan_.step_ahead); }
  Status runAhead(bool* more) override {
    ++runs;
    const bool wanted = *more;
    *more = false;
    if (!begun_) {
      EXPECT_TRUE(body(step(), StopCheck()));
    }
    begun_ = false;
    if (fails()) {
      spoil(running_.data());
      return ORIEL_ERROR_INTERNAL;
    }
    head(running_.data());
    if (wanted && (stays_every == 0 || runs % stays_every != 0)) {
      StepBlock(aheadStep()).token(0).token = top()->best[0].id;
      begun_ = *more = body(aheadStep(), StopCheck());
      ++begun;
    }
    return kOk;
  }
  Status dropAhead() override {
    EXPECT_TRUE(begun_);
    begun_ = false;
    ++dropped;
    return kOk;
  }
  const TopTokens* top() const override {
    return reinterpret_cast<const TopTokens*>(at(plan_.top));
  }
  Status logits(uint32_t output, const float** values) override {
    EXPECT_LT(output, plan_.output_rows);
    *values = reinterpret_cast<const float*>(at(plan_.logits)) + output * kRecurrentVocabulary;
    return kOk;
  }
  Status forget() override {
    begun_ = false;
    for (std::vector<uint8_t>* arena : {&cache_, &activations_, &io_}) {
      std::fill(arena->begin(), arena->end(), uint8_t{0});
    }
    return kOk;
  }
  uint64_t allocatedBytes(ArenaKind kind) const override { return arena(kind).size(); }
  const char* deviceName() const override { return "Abacus"; }
  const char* driverName() const override { return ""; }

  const std::vector<uint8_t>& cache() const { return cache_; }
  /// For the latest step, even if another has begun.
  View stateView() const { return view_; }

  std::function<void()> before_token;  ///< of every step
  bool ahead = false;
  uint32_t stays_every = 0;  ///< every N-th token is too slow for an early step; 0: none
  uint32_t fails_in = 0;     ///< the N-th next step fails once; 0: none
  uint32_t runs = 0, begun = 0, dropped = 0;

 private:
  const std::vector<uint8_t>& arena(ArenaKind kind) const {
    return kind == ArenaKind::kCache ? cache_ : kind == ArenaKind::kIo ? io_ : activations_;
  }
  uint8_t* at(const BufferRef& place) const {
    EXPECT_NE(ArenaKind::kWeights, place.arena);
    return const_cast<uint8_t*>(arena(place.arena).data()) + place.offset_bytes;
  }

  bool fails() { return fails_in != 0 && --fails_in == 0; }

  uint32_t* state(uint32_t slot) const {
    EXPECT_LT(slot, kStateSlots + plan_.cache.checkpoints);
    return reinterpret_cast<uint32_t*>(at(states_)) + slot * kRecurrentWords;
  }
  /// Sinks, then the ring, four words each.
  uint32_t* key(uint32_t slot) const {
    EXPECT_LT(slot, plan_.cache.sinks + plan_.cache.ring);
    return reinterpret_cast<uint32_t*>(at(keys_)) + slot * 4;
  }

  /// Everything except the head. False: stopped.
  bool body(const void* step_block, const StopCheck& stop) {
    const uint8_t* const bytes = static_cast<const uint8_t*>(step_block);
    running_.assign(bytes, bytes + plan_.step_ahead.size_bytes);
    const StepBlock block(step_block);
    const uint32_t n = block.header().n_tokens;
    EXPECT_LE(n, plan_.chunk_tokens);
    view_ = block.view(0, state_view_);
    EXPECT_TRUE(view_.count == 0 || view_.slot != view_.begin)
        << "a step reads one and writes another";
    RecurrentState now = {};
    if (view_.count != 0) {
      std::memcpy(now.data(), state(view_.begin), sizeof(now));
    }
    for (uint32_t i = 0; i < n; ++i) {
      const View same = block.view(i, state_view_);
      EXPECT_EQ(0, std::memcmp(&same, &view_, sizeof(same)));
      uint32_t* const place = key(block.view(i, 0).slot);
      place[0] = keyOf(block.token(i).token);
      place[1] = ~place[0];
    }
    after_.clear();
    seen_.clear();
    for (uint32_t i = 0; i < n; ++i) {
      if (before_token) {
        before_token();
      }
      if (stop()) {
        spoil(step_block);
        return false;
      }
      now = stateAfter(now, block.token(i).token);
      std::memcpy(state(view_.slot), now.data(), sizeof(now));
      after_.push_back(now);
      seen_.push_back(sumOfSeen(block.view(i, 0)));
    }
    return true;
  }

  uint32_t sumOfSeen(const View& view) const {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < view.n_sinks; ++i) {
      sum += key(i)[0];
    }
    for (uint32_t i = 0; i < view.count; ++i) {
      const uint32_t* const place = key(plan_.cache.sinks + (view.begin + i) % plan_.cache.ring);
      EXPECT_EQ(~place[0], place[1]) << "a slot that holds no token is seen";
      sum += place[0];
    }
    return sum;
  }

  void spoil(const void* step_block) const {
    const StepBlock block(step_block);
    std::memset(state(view_.slot), 0xA5, sizeof(RecurrentState));
    for (uint32_t i = 0; i < block.header().n_tokens; ++i) {
      std::memset(key(block.view(i, 0).slot), 0xA5, 16);
    }
  }

  void head(const void* step_block) {
    const StepBlock block(step_block);
    const uint32_t rows = block.header().n_outputs;
    EXPECT_GT(rows, 0u);
    EXPECT_LE(rows, plan_.output_rows);
    float* const out = reinterpret_cast<float*>(at(plan_.logits));
    for (uint32_t row = 0; row < rows; ++row) {
      const uint32_t token = block.token(row).output;
      const std::vector<float> logits = recurrentLogits(after_.at(token), seen_.at(token));
      std::copy(logits.begin(), logits.end(), out + row * kRecurrentVocabulary);
    }
    const TopPush push = {kRecurrentVocabulary, topBlocks(kRecurrentVocabulary), 0};
    uint32_t keys[kRecurrentVocabulary];
    const float* const last = out + (rows - 1) * kRecurrentVocabulary;
    oriel_internal::topBlocks(last, push, keys);
    topTokens(last, push, keys, reinterpret_cast<TopTokens*>(at(plan_.top)));
  }

  const Plan& plan_;
  const uint8_t state_view_;
  std::vector<uint8_t> cache_, activations_, io_;
  BufferRef states_, keys_;
  View view_ = {};
  std::vector<uint8_t> running_;  // the block of the step whose head comes next
  std::vector<RecurrentState> after_;
  std::vector<uint32_t> seen_;
  bool begun_ = false;
};

// Sessions of the synthetic recurrent model, and its definition. Tests only.

using Ids = std::vector<int32_t>;

constexpr uint32_t kSinks = 4;

inline Ids someTokens(size_t count, uint32_t seed = 5) {
  Ids ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>(mixed(seed, static_cast<uint32_t>(i)) % kRecurrentVocabulary);
  }
  return ids;
}

/// Text with `count` tokens.
inline std::string letters(size_t count, uint32_t seed) {
  std::string text;
  for (const int32_t id : someTokens(count, seed)) {
    text += static_cast<char>('A' + id);
  }
  return text;
}

/// The definition: every token from the first on, one by one, with the sinks and last tokens summed again for each.
class PlainModel {
 public:
  PlainModel(uint32_t window, const Ids& ids) : window_(window) { add(ids); }

  void add(const Ids& ids) {
    for (const int32_t id : ids) {
      state_ = stateAfter(state_, static_cast<uint32_t>(id));
      ids_.push_back(id);
    }
  }
  std::vector<float> logits() const {
    uint32_t seen = 0;
    for (size_t t = 0; t < ids_.size(); ++t) {
      seen += t < kSinks || t + window_ >= ids_.size() ? keyOf(static_cast<uint32_t>(ids_[t])) : 0;
    }
    return recurrentLogits(state_, seen);
  }
  Ids greedy(size_t count) {
    Ids out;
    for (size_t i = 0; i < count; ++i) {
      const std::vector<float> values = logits();
      const auto best = std::max_element(values.begin(), values.end());
      out.push_back(static_cast<int32_t>(best - values.begin()));
      add({out.back()});
    }
    return out;
  }
  const Ids& ids() const { return ids_; }

 private:
  uint32_t window_;
  Ids ids_;
  RecurrentState state_ = {};
};

struct Shape {
  uint32_t chunk = 7;
  bool ahead = false;
  uint32_t window = 40;
  bool sharing = false;
  uint32_t checkpoints = 0;
  bool whole_turns = true;
  bool forgets = false;
};

/// Frames messages with letters, one token each.
inline ChatTemplate lettersFormat() {
  static constexpr char kText[] =
      "{% for m in messages %}{% if m.role == 'system' %}GH{{ m.content }}I"
      "{% elif m.role == 'assistant' %}JK{{ m.content }}LM"
      "{% elif m.role == 'user' %}AB{{ m.content }}C{% else %}DE{{ m.content }}F{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}JK{% endif %}";
  ChatTemplate chat;
  chat.jinja = kText;
  chat.jinja_bytes = sizeof(kText) - 1;
  return chat;
}

inline const LearnedTemplate& learnedLetters() {
  static const LearnedTemplate learned = [] {
    TemplateSettings settings;
    settings.text = {lettersFormat().jinja, lettersFormat().jinja_bytes};
    LearnedTemplate made;
    EXPECT_TRUE(learnTemplate(settings, {}, Log(), defaultAllocator(), &made).ok());
    return made;
  }();
  return learned;
}

/// Passes its logits to `on_logits`, if given.
inline TokenSource sourceOf(const std::vector<int32_t>& ids, oriel_logits_fn on_logits = nullptr,
                            void* user = nullptr) {
  TokenSource source;
  source.ids = ids.data();
  source.count = ids.size();
  source.on_logits = on_logits;
  source.user = user;
  return source;
}

/// One cancellable call on a session.
class CallScope {
 public:
  explicit CallScope(Session* session) : session_(session) { session_->call().begin(); }
  ~CallScope() { session_->call().end(); }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  Session* const session_;
};

/// A session on a RecurrentExecutor, and the tokens that it should have committed.
class RecurrentSession {
 public:
  explicit RecurrentSession(const Shape& shape)
      : shape_(shape),
        window_(shape.window),
        model_(recurrentModel(shape.sharing)),
        plan_(planOf(model_, shape)) {
    executor = std::make_unique<RecurrentExecutor>(model_, plan_);
    executor->ahead = shape.ahead;
    SessionContext context;
    context.model = &model_;
    context.plan = &plan_;
    context.tokenizer = tokenizer().tokenizer;
    context.executor = executor.get();
    context.allocator = &defaultAllocator();
    context.log = log.log();
    context.model_hash = 12345;
    context.chat = lettersFormat();
    context.settings.text = {context.chat.jinja, context.chat.jinja_bytes};
    context.learned = learnedLetters();
    context.transcript_bytes = Transcript::kDefaultBytes;
    context.forgets_evicted = shape.forgets;
    context.progress = [](uint64_t done, uint64_t total, void* self) {
      return static_cast<RecurrentSession*>(self)->readAgain(done, total);
    };
    context.progress_user = this;
    Arena measure;
    (void)Session::create(context, 0, shape.whole_turns, &measure);
    block_.resize(static_cast<size_t>(measure.used() / sizeof(Piece) + 1));
    Arena arena(block_.data(), measure.used());
    session_ = Session::create(context, 0, shape.whole_turns, &arena);
    EXPECT_NE(nullptr, session_);
    EXPECT_TRUE(session_->reset(Session::Begin::kAgain).ok());
  }

  Rebuilt restored;
  /// Progress reports of reading, and the report at which to stop; 0: never.
  std::vector<std::pair<uint64_t, uint64_t>> progress;
  size_t stop_reading_at = 0;

  Session& operator*() { return *session_; }
  Session* operator->() { return session_; }
  const Plan& plan() const { return plan_; }
  const Shape& shape() const { return shape_; }

  void append(const Ids& ids) {
    ASSERT_EQ(ORIEL_OK, tryAppend(ids)) << log.errors();
    committed.insert(committed.end(), ids.begin(), ids.end());
  }
  oriel_status tryAppend(const Ids& ids) {
    const CallScope call(session_);
    return session_->append(sourceOf(ids)).code();
  }

  struct Reply {
    uint32_t most = 20;
    uint32_t stop_at = 0;    ///< the callback stops at this token, counted from 1
    uint32_t cancel_at = 0;  ///< or cancels
    int32_t stop_id = -1;
    oriel_status expected = ORIEL_OK;
  };
  /// Returns the tokens passed to the callback.
  Ids generate(const Reply& reply) {
    struct Given {
      const Reply* reply;
      Session* session;
      Ids ids;
    } given = {&reply, session_, {}};
    const auto note = [](const oriel_token_event* event, void* user) {
      Given* const self = static_cast<Given*>(user);
      self->ids.push_back(event->id);
      if (self->ids.size() == self->reply->cancel_at) {
        self->session->call().cancel();
      }
      return self->ids.size() == self->reply->stop_at ? 1 : 0;
    };
    GenerateSettings settings;
    settings.sampling.greedy = true;
    settings.max_tokens = reply.most;
    settings.ignore_stop = reply.stop_id < 0;
    oriel_generation result = {};
    const CallScope call(session_);
    ReplyCall reply_call(settings, note, &given, &result);
    reply_call.place.stop_id = reply.stop_id;
    const Status status = finish(session_->replier().begin(&reply_call), &reply_call);
    EXPECT_EQ(reply.expected, status.code()) << log.errors();
    // A token whose step failed was reported, but is not committed.
    const size_t kept =
        given.ids.size() - (status.ok() || status.code() == ORIEL_ERROR_CANCELLED ? 0 : 1);
    committed.insert(committed.end(), given.ids.begin(),
                     given.ids.begin() + static_cast<std::ptrdiff_t>(kept));
    return given.ids;
  }
  Ids goOn(uint32_t count = 20) {
    Reply reply;
    reply.most = count;
    return generate(reply);
  }

  std::vector<float> logits() {
    const float* values = nullptr;
    const Status status = session_->facts().stepper.logits(&values);
    EXPECT_TRUE(status.ok()) << log.errors();
    return status.ok() ? std::vector<float>(values, values + kRecurrentVocabulary)
                       : std::vector<float>();
  }
  std::vector<uint8_t> save() {
    uint64_t size = 0;
    EXPECT_TRUE(session_->save(nullptr, &size).ok());
    std::vector<uint8_t> bytes(static_cast<size_t>(size));
    EXPECT_TRUE(session_->save(bytes.data(), &size).ok()) << log.errors();
    return bytes;
  }
  oriel_status restore(const std::vector<uint8_t>& bytes) {
    RebuildSource source;
    source.from = RebuildSource::From::kSnapshot;
    source.data = bytes.data();
    source.bytes = bytes.size();
    source.log = log.log();
    return session_->rebuild(source, &restored).code();
  }
  oriel_status rewind(uint64_t position) {
    const CallScope call(session_);
    RebuildSource source;
    source.position = position;
    return session_->rebuild(source, nullptr).code();
  }

  /// A message or a reply; its committed tokens are read from the session.
  oriel_status say(const std::string& text, const char* role = "user") {
    const CallScope call(session_);
    const oriel_status status = session_->appendMessages(role, text.data(), text.size()).code();
    noteCommitted();
    return status;
  }
  oriel_status answer(uint32_t most = 10) {
    GenerateSettings greedy;
    greedy.sampling.greedy = true;
    greedy.max_tokens = most;
    oriel_generation result = {};
    const CallScope call(session_);
    ReplyCall reply(greedy, nullptr, nullptr, &result);
    Scratch tools(defaultAllocator(), 1);
    Status opened = session_->openReply(greedy, &tools, &reply.place);
    if (opened.ok()) {
      reply.status = finish(session_->replier().begin(&reply), &reply);
      opened = session_->closeReply(reply);
    }
    const oriel_status status = opened.code();
    noteCommitted();
    return status;
  }
  void noteCommitted() {
    const uint64_t position = session_->facts().at.position;
    if (committed.size() > position) {
      committed.resize(static_cast<size_t>(position));
    }
    uint64_t count = 0;
    Ids more(static_cast<size_t>(position) - committed.size());
    const SessionMemory& memory = session_->facts().memory;
    ASSERT_TRUE(
        copyHeld(memory.ids, memory.held(), committed.size(), more.data(), more.size(), &count));
    ASSERT_EQ(more.size(), count);
    committed.insert(committed.end(), more.begin(), more.end());
  }

  /// A few more tokens and a reply must equal the definition.
  void expectAsDefined(const char* what) {
    SCOPED_TRACE(what);
    ASSERT_EQ(committed.size(), session_->facts().at.position);
    PlainModel plain(window_, committed);
    const Ids more = someTokens(3, 99);
    append(more);
    plain.add(more);
    ASSERT_EQ(plain.logits(), logits());
    ASSERT_EQ(plain.greedy(15), goOn(15));
    ASSERT_EQ(plain.logits(), logits());
  }

  static Plan planOf(const ModelDesc& model, const Shape& shape) {
    const CacheShape cache = {
        model.n_kv_heads, model.head_dim, kSinks, shape.window, shape.window + shape.chunk - 1,
        shape.checkpoints};
    Plan plan;
    plan.cache = cache;
    plan.chunk_tokens = shape.chunk;
    plan.n_views = model.n_views;
    const ActivationLayout activations = layoutActivations(model, cache, shape.chunk);
    const IoLayout io = layoutIo(model, shape.chunk, 256);
    EXPECT_TRUE(cacheBytes(model, cache, plan.formats, &plan.cache_bytes));
    plan.activation_bytes = activations.bytes;
    plan.io_bytes = io.bytes;
    plan.device_step = activations.device_step;
    plan.logits = activations.logits;
    plan.output_rows = activations.output_rows;
    plan.step = io.step;
    plan.step_ahead = io.step_ahead;
    plan.top = io.top;
    plan.upload = io.upload;
    plan.step_decode_bytes = io.step_ahead.size_bytes;
    return plan;
  }

  CapturedLog log;
  std::unique_ptr<RecurrentExecutor> executor;
  Ids committed;

 private:
  static Status finish(const Status& begun, ReplyCall* call) {
    if (!begun.ok()) {
      return begun;
    }
    Replier::run(&call, 1);
    return call->status;
  }
  int readAgain(uint64_t done, uint64_t total) {
    progress.emplace_back(done, total);
    return progress.size() == stop_reading_at ? 1 : 0;
  }
  struct alignas(64) Piece {
    uint8_t bytes[64];
  };

  /// One letter a token.
  static TokenizerCase& tokenizer() {
    static TokenizerCase* const made = [] {
      Vocabulary v;
      for (uint32_t id = 0; id < kRecurrentVocabulary; ++id) {
        v.add(std::string(1, static_cast<char>('A' + id)));
      }
      return new TokenizerCase(v.writer().build());
    }();
    EXPECT_TRUE(made->status.ok()) << made->log.errors();
    return *made;
  }

  const Shape shape_;
  const uint32_t window_;
  const ModelDesc model_;
  const Plan plan_;
  std::vector<Piece> block_;
  Session* session_ = nullptr;
};

/// Every batch size, with and without early steps, with and without checkpoints.
template <typename Check>
void forEachShape(const Check& check) {
  for (const uint32_t chunk : {1u, 7u, 64u}) {
    for (const bool ahead : {false, true}) {
      for (const uint32_t checkpoints : {0u, 1u, 2u, 5u}) {
        SCOPED_TRACE("chunk " + std::to_string(chunk) + (ahead ? ", ahead, " : ", ") +
                     std::to_string(checkpoints) + " checkpoints");
        Shape shape;
        shape.chunk = chunk;
        shape.ahead = ahead;
        shape.checkpoints = checkpoints;
        check(shape);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  }
}

}  // namespace oriel_internal::test
