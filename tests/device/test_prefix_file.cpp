// A key/value prefix from a file: its effect on a session, and refused files.
#include <unistd.h>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/api.h"
#include "base/half.h"
#include "exec/snapshot.h"
#include "kv/quantise.h"
#include "oriel/advanced.h"
#include "support/allocators.h"
#include "support/encoding.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/golden.h"
#include "support/recovery.h"
#include "support/reply.h"
#include "support/tiers.h"
#include "support/watched_session.h"

namespace oriel_internal::test::test_prefix_file {
namespace {

const char* const kPage = ORIEL_TEST_DATA "/prefix/page.txt";
const char* const kQuestions = ORIEL_TEST_DATA "/prefix/test.json";
const char* const kTrainedPrefix = ORIEL_TEST_DATA "/prefix/page.gguf";
constexpr uint32_t kF16 = 1;

Options optionsOf(CapturedLog* log) { return sessionOptions(log, 512, 16); }

uint64_t fingerprintOf(const std::string& path) {
  CapturedLog log;
  ModelFile file;
  GgufTensor norm;
  uint64_t fingerprint = 0;
  EXPECT_TRUE(file.open(path.c_str(), defaultAllocator(), log.log()).ok());
  EXPECT_TRUE(file.gguf().findTensor("output_norm.weight", &norm));
  EXPECT_TRUE(prefixFingerprint(file.gguf(), norm, log.log(), &fingerprint).ok());
  return fingerprint;
}

/// The host's record of a prefix.
class PrefixRoom {
 public:
  explicit PrefixRoom(uint32_t capacity) : block_(64 * 1024) {
    Arena arena(block_.data(), block_.size());
    prefix_ = Prefix::create(capacity, Transcript::kLeastBytes, nullptr, 0, &arena);
  }
  Prefix* get() const { return prefix_; }

 private:
  std::vector<uint8_t> block_;
  Prefix* prefix_ = nullptr;
};

/// A model with reserved prefix memory, and a session.
class Behind {
 public:
  Behind(const std::string& path, Options options, uint32_t tokens)
      : fingerprint(fingerprintOf(path)) {
    options.set("prefix_tokens", tokens);
    loaded = load(path, options);
  }

  oriel_model& model() const { return *loaded.model; }

  Status loadPrefix(const std::string& path, CapturedLog* log, const oriel_allocator& allocator,
                    Prefix* prefix) const {
    return loadPrefixFile(
        path.c_str(),
        {model().desc, fingerprint, model().plan, model().plan.cache, allocator, model().executor},
        log->log(), prefix);
  }
  /// A new session after it.
  void stand(const std::string& path) {
    CapturedLog log;
    loaded.session.reset();
    ASSERT_TRUE(loadPrefix(path, &log, model().allocator, model().prefix).ok()) << log.errors();
    showPrefix(&model());
    begin();
  }
  /// A new session without a prefix.
  void standAlone() {
    loaded.session.reset();
    ASSERT_EQ(ORIEL_OK, oriel_prefix_set(&model(), nullptr));
    begin();
  }

  Loaded loaded;
  const uint64_t fingerprint;

 private:
  void begin() {
    oriel_session* session = nullptr;
    EXPECT_EQ(ORIEL_OK, oriel_session_create(&model(), nullptr, &session));
    loaded.session.reset(session);
  }
};

/// The session's sinks as a prefix file.
GgufWriter prefixOf(const Behind& behind, uint32_t tokens) {
  const ModelDesc& desc = behind.model().desc;
  GgufWriter file;
  file.addString("general.architecture", "oriel-prefix");
  file.addUint32("oriel.prefix.version", 1);
  file.addUint32("oriel.prefix.tokens", tokens);
  file.addUint32("oriel.prefix.layers", desc.n_layers);
  file.addUint32("oriel.prefix.vocab_size", desc.n_vocab);
  file.addString("oriel.prefix.model_architecture", desc.architecture);
  file.addString("oriel.prefix.model_name", "Somebody");
  file.addUint64("oriel.prefix.fingerprint", behind.fingerprint);
  forEachPlacedMemory(
      desc, behind.model().plan.cache, behind.model().plan.formats,
      [&](const Memory& memory, const BufferRef(&sides)[2]) {
        const CacheShape& shape = memory.shape;
        for (uint32_t side = 0; side < 2; ++side) {
          std::vector<uint8_t> values;
          for (uint32_t head = 0; head < shape.n_kv_heads; ++head) {
            const void* piece = nullptr;
            EXPECT_TRUE(behind.model()
                            .executor
                            ->read(sides[side], shape.sinkRow(head, 0) * shape.head_dim * 2,
                                   uint64_t{tokens} * shape.head_dim * 2, &piece)
                            .ok());
            const uint8_t* const bytes = static_cast<const uint8_t*>(piece);
            values.insert(values.end(), bytes, bytes + size_t{tokens} * shape.head_dim * 2);
          }
          file.addTensor((side == 0 ? "prefix.k." : "prefix.v.") + std::to_string(memory.layer),
                         kF16, {shape.head_dim, tokens, shape.n_kv_heads}, values);
        }
      });
  return file;
}

class PrefixFile : public testing::Test {
 protected:
  PrefixFile()
      : path_(testing::TempDir() + "/oriel-prefix-" + std::to_string(getpid()) + ".gguf") {}
  ~PrefixFile() override { std::remove(path_.c_str()); }

  void write(const std::vector<uint8_t>& bytes) const {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  /// One line names the file and the fault, and no memory leaks.
  void expectRefused(const Behind& behind, oriel_status status, const std::string& culprit) const {
    CapturedLog log;
    Ledger ledger;
    const PrefixRoom room(20);
    EXPECT_EQ(status, behind.loadPrefix(path_, &log, *ledger.allocator(), room.get()).code());
    EXPECT_EQ(0u, room.get()->tokens);
    EXPECT_TRUE(log.says(culprit)) << log.errors();
    EXPECT_TRUE(log.says(path_)) << log.errors();
    EXPECT_EQ(std::string::npos, log.errors().find('\n'));
    EXPECT_EQ(0u, ledger.live_bytes);
  }

  const std::string path_;
};

RUNS_ON(kCpu);
TEST_F(PrefixFile, of_a_texts_own_keys_and_values_is_that_text_to_the_bit) {
  CapturedLog log;
  // A window of 64: the following text evicts tokens, and sees the prefix as sinks.
  Options options = optionsOf(&log);
  options.window_tokens = 64;
  options.set("kv", "k8v4");
  const std::vector<int32_t> more = someIds(130, 512);
  std::vector<std::vector<float>> want;
  {
    Behind text(kRandom, options, 40);
    ASSERT_EQ(ORIEL_OK, append(text.loaded, someIds(40, 512)));
    write(prefixOf(text, 40).build());
    want = evaluate(text.loaded, more);
  }
  for (const uint32_t room : {40u, 48u}) {  // exactly the prefix's size, and more
    Behind behind(kRandom, options, room);
    uint32_t n = 0;
    ASSERT_TRUE(countPrefixFile(path_.c_str(), behind.model().allocator, log.log(), &n).ok());
    EXPECT_EQ(40u, n);
    behind.stand(path_);
    EXPECT_EQ(40u, statsOf(behind.loaded).position);
    EXPECT_TRUE(want == evaluate(behind.loaded, more)) << room;
  }
  EXPECT_EQ("", log.errors());
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, of_another_model_is_refused_with_what_differs) {
  CapturedLog log;
  const Behind behind(kRandom, optionsOf(&log), 20);
  ASSERT_TRUE(behind.loaded.session);
  ASSERT_EQ(ORIEL_OK, append(behind.loaded, someIds(20, 512)));
  const GgufWriter good = prefixOf(behind, 20);
  const auto refused = [&](const GgufWriter& file, oriel_status status, const char* culprit) {
    write(file.build());
    expectRefused(behind, status, culprit);
  };
  GgufWriter file = good;
  file.addString("general.architecture", "llama");
  refused(file, ORIEL_ERROR_FORMAT, "no prefix");
  file = good;
  file.addUint32("oriel.prefix.version", 2);
  refused(file, ORIEL_ERROR_UNSUPPORTED, "version 2, this build reads version 1");
  file = good;
  file.addUint32("oriel.prefix.tokens", 0);
  refused(file, ORIEL_ERROR_FORMAT, "no tokens");
  file.addUint32("oriel.prefix.tokens", 21);
  refused(file, ORIEL_ERROR_CONTEXT, "21 tokens and there is room for 20");
  file.addUint32("oriel.prefix.tokens", 19);
  refused(file, ORIEL_ERROR_FORMAT, "prefix.k.0 of the prefix is not f16 of");
  file.removeKey("oriel.prefix.tokens");
  refused(file, ORIEL_ERROR_FORMAT, "oriel.prefix.tokens");
  file = good;
  file.addString("oriel.prefix.model_architecture", "qwen3");
  refused(file, ORIEL_ERROR_FORMAT, "of a qwen3 model, this is llama");
  file = good;
  file.addUint32("oriel.prefix.layers", 77);
  refused(file, ORIEL_ERROR_FORMAT, "77 layers, this one has");
  file = good;
  file.addUint32("oriel.prefix.vocab_size", 9);
  refused(file, ORIEL_ERROR_FORMAT, "9 tokens in its vocabulary");
  file = good;
  file.addUint64("oriel.prefix.fingerprint", behind.fingerprint + 1);
  refused(file, ORIEL_ERROR_FORMAT, "other weights of this shape (\"Somebody\")");
  file = good;
  file.removeTensor("prefix.v.1");
  refused(file, ORIEL_ERROR_FORMAT, "no prefix.v.1");
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, that_is_damaged_is_refused) {
  CapturedLog log;
  const Behind behind(kRandom, optionsOf(&log), 20);
  ASSERT_TRUE(behind.loaded.session);
  ASSERT_EQ(ORIEL_OK, append(behind.loaded, someIds(20, 512)));
  GgufWriter file = prefixOf(behind, 20);
  const std::vector<uint8_t> whole = file.build();
  for (size_t bytes = 1; bytes < whole.size(); bytes += 1 + bytes / 64) {
    write({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
    expectRefused(behind, ORIEL_ERROR_FORMAT, "");
  }
  for (const int bits : {0x7c00, 0xfc00, 0x7e01}) {
    const uint16_t no_number = static_cast<uint16_t>(bits);
    GgufWriter broken = file;
    std::vector<uint8_t>& values = broken.tensors().back().data;
    std::memcpy(values.data() + values.size() - 2, &no_number, 2);
    write(broken.build());
    expectRefused(behind, ORIEL_ERROR_FORMAT, "no number");
  }
  // Each allocation refused in turn.
  write(whole);
  Ledger ledger;
  const PrefixRoom room(20);
  for (ledger.refuse_nth = 1; ledger.refuse_nth < 9; ++ledger.refuse_nth) {
    ledger.calls = 0;
    CapturedLog said;
    const Status status = behind.loadPrefix(path_, &said, *ledger.allocator(), room.get());
    EXPECT_EQ(ledger.calls < ledger.refuse_nth ? ORIEL_OK : ORIEL_ERROR_OUT_OF_MEMORY,
              status.code());
    EXPECT_EQ(status.ok(), said.errors().empty());
    EXPECT_EQ(0u, ledger.live_bytes);
  }
  EXPECT_LT(ledger.calls, 4u);
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, cannot_stand_for_what_is_no_key_and_no_value) {
  CapturedLog log;
  const Behind behind(kRandom, optionsOf(&log), 20);
  ASSERT_TRUE(behind.loaded.session);
  ASSERT_EQ(ORIEL_OK, append(behind.loaded, someIds(20, 512)));
  write(prefixOf(behind, 20).build());
  const std::pair<const char*, const char*> cases[] = {
      {ORIEL_TEST_DATA "/models/gemma3.gguf", "sliding windows"},
      {ORIEL_TEST_DATA "/models/lfm2-q8_0.gguf", "convolutions"},
  };
  for (const auto& [path, what] : cases) {
    const Loaded loaded = load(path, optionsOf(&log));
    ASSERT_TRUE(loaded.session);
    CapturedLog said;
    const PrefixRoom room(20);
    const PrefixTarget target = {loaded.model->desc,      0,
                                 loaded.model->plan,      loaded.model->plan.cache,
                                 loaded.model->allocator, loaded.model->executor};
    EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
              loadPrefixFile(path_.c_str(), target, said.log(), room.get()).code());
    EXPECT_TRUE(said.says(what)) << said.errors();
  }
}

/// Keeps the written data and its addresses.
class KeepingExecutor final : public ForwardingExecutor {
 public:
  using ForwardingExecutor::ForwardingExecutor;

  Status beginWrite(uint64_t bytes, void** piece) override {
    piece_.resize(bytes);
    *piece = piece_.data();
    return kOk;
  }
  Status endWrite(const BufferRef& to, uint64_t offset_bytes, uint64_t bytes) override {
    const uint64_t begin = to.offset_bytes + offset_bytes;
    EXPECT_LE(begin + bytes, 4 * arena.size());
    std::memcpy(reinterpret_cast<uint8_t*>(arena.data()) + begin, piece_.data(), bytes);
    written += bytes;
    return kOk;
  }
  Status finishWrites() override { return kOk; }

  std::vector<uint32_t> arena;
  uint64_t written = 0;

 private:
  std::vector<uint8_t> piece_;
};

TEST_F(PrefixFile, goes_to_the_sinks_of_one_session_among_several) {
  CapturedLog log;
  const Behind behind(kRandom, optionsOf(&log), 24);
  ASSERT_TRUE(behind.loaded.session);
  ASSERT_EQ(ORIEL_OK, append(behind.loaded, someIds(24, 512)));
  const GgufWriter file = prefixOf(behind, 20);
  write(file.build());
  const oriel_model& model = behind.model();
  for (const bool shared : {false, true}) {
    SessionWindows sessions;
    sessions.count = 3;
    sessions.share_sinks = shared;
    CacheShape all = model.plan.cache;
    all.sessions = &sessions;
    const CacheShape cache = sessionCache(all, 1);
    KeepingExecutor executor(model.executor);
    uint64_t bytes = 0;
    ASSERT_TRUE(cacheBytes(model.desc, cache, model.plan.formats, &bytes));
    executor.arena.resize(bytes / 4);
    const uint32_t n = 20;
    const PrefixRoom room(n);
    const PrefixTarget target = {model.desc, behind.fingerprint, model.plan,
                                 cache,      model.allocator,    &executor};
    ASSERT_TRUE(loadPrefixFile(path_.c_str(), target, log.log(), room.get()).ok()) << log.errors();
    uint64_t in_file = 0;
    GgufWriter said = file;
    std::vector<GgufWriter::Tensor>::const_iterator tensor = said.tensors().begin();
    forEachPlacedMemory(model.desc, cache, model.plan.formats,
                        [&](const Memory& memory, const BufferRef(&sides)[2]) {
                          const CacheShape& shape = memory.shape;
                          for (uint32_t s = 0; s < 2; ++s, ++tensor) {
                            const KvSide side(memory.formats[s], shape,
                                              executor.arena.data() + sides[s].offset_bytes / 4);
                            const uint8_t* at = tensor->data.data();
                            in_file += tensor->data.size();
                            std::vector<float> values(shape.head_dim);
                            for (uint32_t row = 0; row < shape.n_kv_heads * n; ++row) {
                              side.loadSink(row / n, row % n, values.data());
                              for (const float value : values) {
                                uint16_t bits = 0;
                                std::memcpy(&bits, at, sizeof(bits));
                                at += sizeof(bits);
                                ASSERT_EQ(halfToFloat(bits), value)
                                    << tensor->name << " row " << row;
                              }
                            }
                          }
                        });
    EXPECT_EQ(in_file, executor.written);
  }
}

// ---- Trained -------------------------------------------------------------------------------------

/// Questions about the page: the number of correct answers, and the mean -log probability of the correct answers' tokens
/// in nats.
struct Score {
  uint32_t right = 0;
  double loss = 0;
};

double lossOf(const std::vector<std::vector<float>>& rows, size_t first,
              const std::vector<int32_t>& ids) {
  double loss = 0;
  for (size_t i = first; i < ids.size(); ++i) {
    loss += logSumExp(rows[i - 1]) - static_cast<double>(rows[i - 1][static_cast<size_t>(ids[i])]);
  }
  return loss;
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The session is at a point where a question may follow.
Score scoreOf(const Behind& behind) {
  const uint64_t here = statsOf(behind.loaded).position;
  const auto goBack = [&] { ASSERT_EQ(ORIEL_OK, goBackTo(behind.loaded.session.get(), here)); };
  Score score;
  size_t count = 0;
  for (const nlohmann::json& q : readJson(kQuestions)) {
    const std::string question = q["question"];
    const std::string answer = q["answer"];
    std::vector<int32_t> ids = tokens(
        behind.loaded, rendered(behind.loaded, {{"user", question}}, true), ORIEL_TEXT_SPECIAL);
    const size_t asked = ids.size();
    EXPECT_EQ(ORIEL_OK, append(behind.loaded, ids));
    const Heard heard = listen(oriel_session_generate, behind.loaded, greedyOptions(60));
    score.right += lowered(heard.text).find(lowered(q["right"])) != std::string::npos ? 1 : 0;
    goBack();
    for (const int32_t id : tokens(behind.loaded, answer + "<|im_end|>", ORIEL_TEXT_SPECIAL)) {
      ids.push_back(id);
    }
    score.loss += lossOf(evaluate(behind.loaded, ids), asked, ids);
    count += ids.size() - asked;
    goBack();
  }
  score.loss /= static_cast<double>(count);
  return score;
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, that_was_trained_answers_better_than_as_many_tokens_of_its_page) {
  CapturedLog log;
  uint32_t n = 0;
  ASSERT_TRUE(countPrefixFile(kTrainedPrefix, defaultAllocator(), log.log(), &n).ok());
  Behind behind(kTrained, optionsOf(&log), n);
  ASSERT_TRUE(behind.loaded.session);
  const std::vector<uint8_t> bytes = readBytes(kPage);
  const std::string page(bytes.begin(), bytes.end() - 1);  // without its line feed
  const std::vector<int32_t> ids = tokens(
      behind.loaded,
      rendered(behind.loaded, {{"user", page}, {"assistant", "I will remember that."}}, false),
      ORIEL_TEXT_SPECIAL);
  ASSERT_GT(ids.size(), 6 * n);
  const auto behindText = [&](const std::vector<int32_t>& text) {
    behind.standAlone();
    EXPECT_EQ(ORIEL_OK, append(behind.loaded, text));
    return scoreOf(behind);
  };
  behind.stand(kTrainedPrefix);
  const Score trained = scoreOf(behind);
  const Score whole = behindText(ids);
  const Score beginning = behindText({ids.begin(), ids.begin() + n});
  std::printf(
      "%zu tokens of text in %u: %u answers right, loss %.3f; the whole text: %u, %.3f; its "
      "first %u tokens: %u, %.3f\n",
      ids.size(), n, trained.right, trained.loss, whole.right, whole.loss, n, beginning.right,
      beginning.loss);
  EXPECT_GE(trained.right, 4 * beginning.right);
  EXPECT_GE(10 * trained.right, 8 * whole.right);
  EXPECT_LT(trained.loss, 0.5 * beginning.loss);
  EXPECT_EQ("", log.errors());
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, is_followed_by_a_message_like_any_turn) {
  CapturedLog log;
  Behind behind(kTrained, optionsOf(&log), 32);
  ASSERT_TRUE(behind.loaded.session);
  const nlohmann::json question = readJson(kQuestions)[0];
  const std::string text = question["question"];
  behind.stand(kTrainedPrefix);
  ASSERT_EQ(ORIEL_OK, add(behind.loaded, "user", text));
  const Heard heard = listen(oriel_chat_reply, behind.loaded, greedyOptions(60));
  EXPECT_NE(std::string::npos, heard.text.find(question["right"])) << heard.text;
  EXPECT_EQ(32 + tokens(behind.loaded, rendered(behind.loaded, {{"user", text}}, true),
                        ORIEL_TEXT_SPECIAL)
                     .size(),
            statsOf(behind.loaded).position - heard.ids.size());
  // A second question after the answer, and the same after the prefix alone.
  ASSERT_EQ(ORIEL_OK, add(behind.loaded, "user", text));
  EXPECT_EQ(heard.text, listen(oriel_chat_reply, behind.loaded, greedyOptions(60)).text);
  ASSERT_EQ(ORIEL_OK, goBackTo(behind.loaded.session.get(), 32));
  ASSERT_EQ(ORIEL_OK, add(behind.loaded, "user", text));
  EXPECT_EQ(heard.ids, listen(oriel_chat_reply, behind.loaded, greedyOptions(60)).ids);
  EXPECT_EQ("", log.errors());
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, fits_a_model_however_its_matrices_are_quantised) {
  const std::string trained_in_q4_0 = ORIEL_TEST_Q4_0;
  if (trained_in_q4_0.empty()) {
    GTEST_SKIP() << "CMake found no python3, which makes the model in Q4_0";
  }
  const uint64_t fingerprint = fingerprintOf(kTrained);
  EXPECT_EQ(fingerprint, fingerprintOf(trained_in_q4_0));
  EXPECT_NE(fingerprint, fingerprintOf(kRandom));
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, has_tokens_whose_ids_nobody_knows_and_that_stay) {
  CapturedLog log;
  Behind behind(kTrained, optionsOf(&log), 32);
  ASSERT_TRUE(behind.loaded.session);
  behind.stand(kTrainedPrefix);
  int32_t ids[32];
  size_t n = 0;
  ASSERT_EQ(ORIEL_OK, oriel_session_get_tokens(behind.loaded.session.get(), 0, ids, 32, &n));
  EXPECT_EQ(std::vector<int32_t>(32, TokenIds::kUnknown), std::vector<int32_t>(ids, ids + n));
  ASSERT_EQ(ORIEL_OK, append(behind.loaded, someIds(5, 512)));
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, goBackTo(behind.loaded.session.get(), 31));
  EXPECT_EQ(ORIEL_OK, goBackTo(behind.loaded.session.get(), 32));
}

RUNS_ON(kCpu);
TEST_F(PrefixFile, is_there_for_all_sessions_and_after_a_reset) {
  CapturedLog log;
  Options options = optionsOf(&log);
  options.sessions = 2;
  Behind behind(kTrained, options, 32);
  const nlohmann::json question = readJson(kQuestions)[0];
  const std::string text = question["question"];
  behind.stand(kTrainedPrefix);
  Loaded other;
  oriel_session* second = nullptr;
  ASSERT_EQ(ORIEL_OK, oriel_session_create(&behind.model(), nullptr, &second));
  other.session.reset(second);
  const auto answer = [&](const Loaded& loaded) {
    EXPECT_EQ(32u, statsOf(loaded).position);
    EXPECT_EQ(ORIEL_OK, add(loaded, "user", text));
    return listen(oriel_chat_reply, loaded, greedyOptions(60)).text;
  };
  const std::string first = answer(behind.loaded);
  EXPECT_NE(std::string::npos, first.find(question["right"])) << first;
  EXPECT_EQ(first, answer(other));
  ASSERT_EQ(ORIEL_OK, oriel_session_reset(behind.loaded.session.get()));
  EXPECT_EQ(first, answer(behind.loaded));
  Json prefix = describe(&behind.model())["prefix"];
  EXPECT_EQ(true, prefix["trained"]);
  EXPECT_EQ(32u, prefix["tokens"]);
  EXPECT_EQ("", log.errors());
}

}  // namespace
}  // namespace oriel_internal::test::test_prefix_file

namespace oriel_internal::test::test_prefix_calls {

// oriel_prefix_set(model, NULL) concurrent with other calls, and on a lost device.

namespace {

uint32_t prefixTokensOf(const ModelPtr& model) { return describe(model)["prefix"]["tokens"]; }

class PrefixCalls : public testing::TestWithParam<uint32_t> {
 protected:
  Options options() {
    Options options = recoveryOptions(&log);
    options.sessions = GetParam();
    options.system_prompt = "You are a pirate.";
    return options;
  }
  CapturedLog log;
};

/// Tries to make a session while its model's memory is overwritten.
class Creating final : public ForwardingExecutor {
 public:
  explicit Creating(oriel_model* model) : ForwardingExecutor(model->executor), model_(model) {}
  Status forget() override {
    std::thread other([this] { status = oriel_session_create(model_, nullptr, &made); });
    other.join();
    return ForwardingExecutor::forget();
  }
  oriel_status status = ORIEL_OK;
  oriel_session* made = nullptr;

 private:
  oriel_model* model_;
};

TEST_P(PrefixCalls, no_session_begins_behind_a_prefix_that_is_being_cleared) {
  if (GetParam() > 1) {
    return;  // at that point a session waits for the device
  }
  const Options with = options();
  const ModelPtr model = loadModel(kTrained, with);
  ASSERT_LT(0u, prefixTokensOf(model));
  Executor* const executor = model->executor;
  Creating creating(model.get());
  model->executor = &creating;
  EXPECT_EQ(ORIEL_OK, oriel_prefix_set(model.get(), nullptr));
  model->executor = executor;
  EXPECT_EQ(ORIEL_ERROR_STATE, creating.status);
  const SessionPtr too_early(creating.made);
  EXPECT_EQ(nullptr, too_early);
  EXPECT_EQ(0u, prefixTokensOf(model));
  const SessionPtr session = newSession(model);
  EXPECT_EQ(0u, positionOf(session));
}

RUNS_ON(kCpu);
TEST_P(PrefixCalls, a_device_that_is_lost_in_a_clear_leaves_the_prefix_to_be_recovered) {
  LosableModel losing(kTrained, options());
  ASSERT_NE(nullptr, losing.model) << log.errors();
  const uint32_t tokens = prefixTokensOf(losing.model);
  ASSERT_LT(0u, tokens);
  SessionPtr session = newSession(losing.model);
  ASSERT_EQ(ORIEL_OK, say(session, "Who are you?"));
  const std::vector<float> before = logitsOf(session);
  session.reset();
  losing.lose(Work::kForget, 1);
  EXPECT_EQ(ORIEL_ERROR_DEVICE, oriel_prefix_set(losing.model.get(), nullptr));
  EXPECT_EQ(tokens, prefixTokensOf(losing.model));
  session = newSession(losing.model);
  (void)recoveredOf(session.get());
  EXPECT_EQ(tokens, positionOf(session));
  ASSERT_EQ(ORIEL_OK, say(session, "Who are you?"));
  EXPECT_EQ(before, logitsOf(session));
  session.reset();
  EXPECT_EQ(ORIEL_OK, oriel_prefix_set(losing.model.get(), nullptr));
  EXPECT_EQ(0u, prefixTokensOf(losing.model));
}

INSTANTIATE_TEST_SUITE_P(, PrefixCalls, testing::Values(1u, 3u));

}  // namespace
}  // namespace oriel_internal::test::test_prefix_calls
