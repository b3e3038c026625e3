// A prefix of keys and values from a file: what it does to a session, and which files are refused.
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cctype>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "api/api.h"
#include "base/half.h"
#include "exec/prefix_file.h"
#include "kv/kv_side.h"
#include "support/distances.h"
#include "support/files.h"
#include "support/forwarding_executor.h"
#include "support/gguf_writer.h"
#include "support/ledger.h"
#include "support/sessions.h"

namespace oriel::test {
namespace {

const char* const kPage = ORIEL_TEST_DATA "/prefix/page.txt";
const char* const kQuestions = ORIEL_TEST_DATA "/prefix/test.json";
const char* const kTrainedPrefix = ORIEL_TEST_DATA "/prefix/page.gguf";
constexpr uint32_t kF16 = 1;

oriel_options optionsWithSinks(CapturedLog* log, uint32_t sinks) {
  oriel_options options = sessionOptions(log, 512, 16);
  options.sink_tokens = sinks;
  return options;
}

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

/// A session that may stand behind a prefix.
struct Behind {
  Behind(const std::string& path, const oriel_options& options)
      : loaded(load(path, options)), fingerprint(fingerprintOf(path)) {}

  oriel_model& model() const { return *loaded.model; }
  Session* session() const { return loaded.session->session; }

  Status loadPrefix(const std::string& path, CapturedLog* log, const oriel_allocator& allocator,
                    uint32_t* tokens) const {
    return loadPrefixFile(
        path.c_str(),
        {model().desc, fingerprint, model().plan, model().plan.cache, allocator, model().executor},
        log->log(), tokens);
  }
  /// Begins anew behind it.
  void stand(const std::string& path) const {
    CapturedLog log;
    uint32_t tokens = 0;
    ASSERT_TRUE(session()->reset().ok());
    ASSERT_TRUE(loadPrefix(path, &log, model().allocator, &tokens).ok()) << log.errors();
    ASSERT_TRUE(session()->standBehindPrefix(tokens).ok());
  }

  Loaded loaded;
  uint64_t fingerprint;
};

/// What the session's first tokens left in the sinks, as a prefix.
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
                            ->read(sides[side], uint64_t{head} * shape.sinks * shape.head_dim * 2,
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
  /// In one line that names the file and the culprit, with nothing left behind.
  void expectRefused(const Behind& behind, oriel_status status, const std::string& culprit) const {
    CapturedLog log;
    Ledger ledger;
    uint32_t tokens = 0;
    EXPECT_EQ(status, behind.loadPrefix(path_, &log, *ledger.allocator(), &tokens).code());
    EXPECT_TRUE(log.says(culprit)) << log.errors();
    EXPECT_TRUE(log.says(path_)) << log.errors();
    EXPECT_EQ(std::string::npos, log.errors().find('\n'));
    EXPECT_EQ(0u, ledger.live_bytes);
  }

  const std::string path_;
};

TEST_F(PrefixFile, of_a_texts_own_keys_and_values_is_that_text_to_the_bit) {
  CapturedLog log;
  for (const uint32_t sinks : {40u, 48u}) {  // as many as the prefix has tokens, and more
    // A window of 64: what follows evicts tokens, and sees the prefix as sinks.
    oriel_options options = optionsWithSinks(&log, sinks);
    options.window_tokens = 64;
    options.k_format = ORIEL_KV_INT8;
    options.v_format = ORIEL_KV_INT4;
    const Behind behind(kRandom, options);
    ASSERT_TRUE(behind.loaded.session);
    const std::vector<int32_t> text = someIds(40, 512);
    const std::vector<int32_t> more = someIds(130, 512);
    ASSERT_EQ(ORIEL_OK, append(behind.loaded, text));
    write(prefixOf(behind, 40).build());
    const auto want = evaluate(behind.loaded, more);
    uint32_t tokens = 0;
    ASSERT_TRUE(countPrefixFile(path_.c_str(), behind.model().allocator, log.log(), &tokens).ok());
    EXPECT_EQ(40u, tokens);
    behind.stand(path_);
    EXPECT_EQ(40u, statsOf(behind.loaded).position);
    EXPECT_EQ(want, evaluate(behind.loaded, more));
    EXPECT_EQ("", log.errors());
  }
}

TEST_F(PrefixFile, of_another_model_is_refused_with_what_differs) {
  CapturedLog log;
  const Behind behind(kRandom, optionsWithSinks(&log, 20));
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

TEST_F(PrefixFile, that_is_damaged_is_refused) {
  CapturedLog log;
  const Behind behind(kRandom, optionsWithSinks(&log, 20));
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
  uint32_t tokens = 0;
  for (ledger.refuse_nth = 1; ledger.refuse_nth < 9; ++ledger.refuse_nth) {
    ledger.calls = 0;
    CapturedLog said;
    const Status status = behind.loadPrefix(path_, &said, *ledger.allocator(), &tokens);
    EXPECT_EQ(ledger.calls < ledger.refuse_nth ? ORIEL_OK : ORIEL_ERROR_OUT_OF_MEMORY,
              status.code());
    EXPECT_EQ(status.ok(), said.errors().empty());
    EXPECT_EQ(0u, ledger.live_bytes);
  }
  EXPECT_LT(ledger.calls, 4u);
}

TEST_F(PrefixFile, cannot_stand_for_what_is_no_key_and_no_value) {
  CapturedLog log;
  const Behind behind(kRandom, optionsWithSinks(&log, 20));
  ASSERT_TRUE(behind.loaded.session);
  ASSERT_EQ(ORIEL_OK, append(behind.loaded, someIds(20, 512)));
  write(prefixOf(behind, 20).build());
  const std::pair<const char*, const char*> cases[] = {
      {ORIEL_TEST_DATA "/models/gemma3.gguf", "sliding windows"},
      {ORIEL_TEST_DATA "/models/lfm2-q8_0.gguf", "convolutions"},
  };
  for (const auto& [path, what] : cases) {
    const Loaded loaded = load(path, optionsWithSinks(&log, 20));
    ASSERT_TRUE(loaded.session);
    CapturedLog said;
    uint32_t tokens = 0;
    const PrefixTarget target = {loaded.model->desc,      0,
                                 loaded.model->plan,      loaded.model->plan.cache,
                                 loaded.model->allocator, loaded.model->executor};
    EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
              loadPrefixFile(path_.c_str(), target, said.log(), &tokens).code());
    EXPECT_TRUE(said.says(what)) << said.errors();
  }
}

/// Keeps what is written, where it is written to.
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
  const Behind behind(kRandom, optionsWithSinks(&log, 24));
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
    uint32_t n = 0;
    const PrefixTarget target = {model.desc, behind.fingerprint, model.plan,
                                 cache,      model.allocator,    &executor};
    ASSERT_TRUE(loadPrefixFile(path_.c_str(), target, log.log(), &n).ok()) << log.errors();
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

/// Questions about the page: how many answers hold what is right, and the mean -log probability of the right answers'
/// tokens in nats.
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

// The session stands where a question may follow.
Score scoreOf(const Behind& behind) {
  const uint64_t here = statsOf(behind.loaded).position;
  const auto goBack = [&] {
    ASSERT_EQ(ORIEL_OK, oriel_session_rewind(behind.loaded.session.get(), here));
  };
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

TEST_F(PrefixFile, that_was_trained_answers_better_than_as_many_tokens_of_its_page) {
  CapturedLog log;
  uint32_t n = 0;
  ASSERT_TRUE(countPrefixFile(kTrainedPrefix, defaultAllocator(), log.log(), &n).ok());
  const Behind behind(kTrained, optionsWithSinks(&log, n));
  ASSERT_TRUE(behind.loaded.session);
  const std::vector<uint8_t> bytes = readBytes(kPage);
  const std::string page(bytes.begin(), bytes.end() - 1);  // but its line feed
  const std::vector<int32_t> ids = tokens(
      behind.loaded,
      rendered(behind.loaded, {{"user", page}, {"assistant", "I will remember that."}}, false),
      ORIEL_TEXT_SPECIAL);
  ASSERT_GT(ids.size(), 6 * n);
  const auto behindText = [&](const std::vector<int32_t>& text) {
    EXPECT_TRUE(behind.session()->reset().ok());
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

TEST_F(PrefixFile, is_followed_by_a_message_like_any_turn) {
  CapturedLog log;
  const Behind behind(kTrained, optionsWithSinks(&log, 32));
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
  // Another one behind the answer, and the same again behind the prefix alone.
  ASSERT_EQ(ORIEL_OK, add(behind.loaded, "user", text));
  EXPECT_EQ(heard.text, listen(oriel_chat_reply, behind.loaded, greedyOptions(60)).text);
  ASSERT_EQ(ORIEL_OK, oriel_session_rewind(behind.loaded.session.get(), 32));
  ASSERT_EQ(ORIEL_OK, add(behind.loaded, "user", text));
  EXPECT_EQ(heard.ids, listen(oriel_chat_reply, behind.loaded, greedyOptions(60)).ids);
  EXPECT_EQ("", log.errors());
}

TEST_F(PrefixFile, fits_a_model_however_its_matrices_are_quantised) {
  const std::string folder = ORIEL_SOURCE_DIR "/models/oriel-tiny/";
  const uint64_t fingerprint = fingerprintOf(kTrained);
  EXPECT_EQ(fingerprint, fingerprintOf(folder + "oriel-tiny-f16.gguf"));
  EXPECT_EQ(fingerprint, fingerprintOf(folder + "oriel-tiny-q4_0.gguf"));
  EXPECT_NE(fingerprint, fingerprintOf(kRandom));
}

TEST_F(PrefixFile, needs_room_and_a_session_that_begins_at_position_0) {
  CapturedLog log;
  const Behind behind(kRandom, optionsWithSinks(&log, 8));
  ASSERT_TRUE(behind.loaded.session);
  EXPECT_EQ(ORIEL_ERROR_CONTEXT, behind.session()->standBehindPrefix(9).code());
  EXPECT_TRUE(log.says("9 tokens and there is room for 8")) << log.errors();
  const Loaded later = load(kRandom, optionsWithSinks(&log, 8), 5);
  ASSERT_TRUE(later.session);
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED, later.session->session->standBehindPrefix(8).code());
}

}  // namespace
}  // namespace oriel::test
