// Sessions of the synthetic recurrent model, and its definition. Tests only.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "exec/session.h"
#include "support/recurrent_executor.h"
#include "support/tokenizer_case.h"
#include "support/vocabulary.h"

namespace oriel_internal::test {

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
