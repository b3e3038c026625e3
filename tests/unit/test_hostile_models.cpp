// Hostile model files: mutants of valid ones, and files that change while they are loaded. Each must be loaded and
// used, or refused in one line, in short time.
//
// More than the few hundred of every run, best under AddressSanitizer (docs/devices.md):
//
//   ORIEL_MUTANTS=10000 ORIEL_CHANGED=100 ORIEL_SEED=7 oriel_unit_tests --gtest_filter='HostileModels.*'
//
// ORIEL_FIRST=4711 ORIEL_MUTANTS=1 repeats mutant 4711 alone.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "os/os.h"
#include "support/allocators.h"
#include "support/captured_log.h"
#include "support/files.h"
#include "support/model_mutants.h"
#include "support/options.h"
#include "support/random_families.h"
#include "support/target.h"

namespace oriel_internal::test::test_hostile_models {
namespace {

namespace fs = std::filesystem;

constexpr double kSoonMs = 5000;

uint64_t numberIn(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::vector<uint8_t> readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void writeFile(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

std::string dataModel(const std::string& name) { return dataFile("models/" + name); }

/// An app that uses any file.
class Attempt {
 public:
  Attempt(std::string path, uint64_t memory_bytes) : path_(std::move(path)) {
    options_.memory_bytes = memory_bytes;
    options_.window_tokens = 48;
    options_.device = "cpu";
    options_.threads = 1;
    options_.log = log_.log().callback;
    options_.log_user = log_.log().user;
    options_.allocator = ledger_.allocator();
  }

  Options& options() { return options_; }
  /// True if the last call failed with a line that contains this.
  bool saidLast(const std::string& part) const { return said_.find(part) != std::string::npos; }

  /// Loads, and uses the model if that succeeded.
  oriel_status run() {
    const double begin = nowMs();
    const oriel_status status = use();
    EXPECT_LT(nowMs() - begin, kSoonMs);
    EXPECT_EQ(0u, ledger_.live_bytes);
    return status;
  }

 private:
  // A failed call logs one line; a successful call logs none.
  oriel_status expectOneLine(oriel_status status) {
    size_t errors = 0;
    for (const CapturedLog::Line& line : log_.lines) {
      errors += line.level == ORIEL_LOG_ERROR ? 1 : 0;
      EXPECT_EQ(std::string::npos, line.text.find('\n')) << line.text;
      EXPECT_TRUE(line.level != ORIEL_LOG_ERROR || line.text.find(": ") != std::string::npos)
          << line.text;
    }
    EXPECT_EQ(status == ORIEL_OK ? 0u : 1u, errors)
        << oriel_status_text(status) << ": " << log_.errors();
    said_ = log_.errors();
    log_.clear();
    return status;
  }

  oriel_status use() {
    oriel_model* loaded = nullptr;
    const oriel_status status = expectOneLine(oriel_model_load(path_.c_str(), &options_, &loaded));
    EXPECT_EQ(status == ORIEL_OK, loaded != nullptr);
    const ModelPtr model(loaded);
    if (!model || options_.device == std::string("none")) {
      return status;
    }
    oriel_session* made = nullptr;
    (void)expectOneLine(oriel_session_create(model.get(), nullptr, &made));
    const SessionPtr session(made);
    if (!session) {
      return status;
    }
    const std::string text = "Where is the red ball? \xc3\xa4\xe2\x82\xac <|im_end|> 12";
    if (expectOneLine(oriel_session_append_text(session.get(), text.data(), text.size(),
                                                ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS)) == ORIEL_OK) {
      ReplyOptions greedily = greedyOptions(4);
      ReplyOptions drawn = greedyOptions(4);
      drawn.greedy = 0;
      drawn.seed = 1;
      for (const auto& generate : {greedily, drawn}) {
        std::vector<int32_t> ids;
        if (expectOneLine(oriel_session_generate(session.get(), &generate, keepId, &ids,
                                                 nullptr)) != ORIEL_OK) {
          break;
        }
      }
    }
    if (expectOneLine(oriel_chat_add(session.get(), "user", text.data(), text.size())) ==
        ORIEL_OK) {
      const ReplyOptions reply = greedyOptions(3);
      std::vector<int32_t> ids;
      (void)expectOneLine(oriel_chat_reply(session.get(), &reply, keepId, &ids, nullptr));
    }
    return status;
  }

  std::string path_;
  CapturedLog log_;
  Ledger ledger_;
  Options options_ = {};
  std::string said_;
};

class HostileModels : public testing::Test {
 protected:
  HostileModels()
      : folder_(fs::temp_directory_path() / ("oriel-hostile-" + std::to_string(entropy()))) {
    fs::create_directories(folder_);
    path_ = (folder_ / "model.gguf").string();
  }
  ~HostileModels() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  fs::path folder_;
  std::string path_;
};

// --- Mutants -------------------------------------------------------------------------------------

TEST_F(HostileModels, a_mutant_is_used_or_refused_in_one_line) {
  std::vector<GgufWriter> sound;
  for (const char* name :
       {"llama-q2_k", "llama-iq4_nl", "llama-q4_k_m", "llama-q5_1", "llama-q8_0", "gemma3", "qwen3",
        "phi3", "smollm3", "llama3-rope", "granite-nope", "minicpm-nokeys", "olmo3", "lfm2-q8_0",
        "lfm2-q4_0", "bailingmoe3-small"}) {
    if (const std::string path = dataModel(name + std::string(".gguf")); !path.empty()) {
      sound.push_back(takeApart(readFile(path)));
    }
  }
  sound.push_back(takeApart(readFile(ORIEL_SOURCE_DIR "/models/oriel-tiny/oriel-tiny-q8_0.gguf")));
  for (const RandomFamily& family : randomFamilies()) {
    if (family.model.state.heads != 0) {
      sound.push_back(family.model.writer());
    }
  }
  const uint64_t seed = numberIn("ORIEL_SEED", 1);
  const uint64_t first = numberIn("ORIEL_FIRST", 0);
  const uint64_t count = numberIn("ORIEL_MUTANTS", allCases() ? 200 : 100);
  uint64_t used = 0;
  double slowest_ms = 0;
  for (uint64_t i = first; i < first + count; ++i) {
    std::string what;
    ModelMutator mutator(sound[i % sound.size()], seed << 32 | i);
    writeFile(path_, mutator.make(&what));
    SCOPED_TRACE("mutant " + std::to_string(i) + " of seed " + std::to_string(seed) + ": " + what);
    const double begin = nowMs();
    Attempt attempt(path_, i % 5 == 0 ? 1 << 20 : 64 << 20);
    used += attempt.run() == ORIEL_OK ? 1 : 0;
    slowest_ms = std::max(slowest_ms, nowMs() - begin);
    if (count > 1000 && i % 1000 == 999) {
      std::printf("%llu mutants, %llu of them usable, %.0f ms at most\n",
                  static_cast<unsigned long long>(i + 1 - first),
                  static_cast<unsigned long long>(used), slowest_ms);
    }
  }
  EXPECT_TRUE(count < 100 || (used > count / 20 && used < count - count / 20))
      << used << " of " << count << " could be used: the mutants are too mild or too wild";
}

// --- Files that change while they are loaded -----------------------------------------------------

/// Does something to a file on the n-th occasion that a load gives an app.
class Meddler {
 public:
  Meddler(std::string path, uint64_t when) : path_(std::move(path)), when_(when) {}

  /// Occasions: whenever memory is asked for, and whenever weights have arrived.
  void watch(Options* options) {
    inner_ = *options->allocator;
    outer_ = {&Meddler::allocate, &Meddler::release, this};
    options->allocator = &outer_;
    options->progress = &Meddler::progress;
    options->progress_user = this;
  }

  std::function<void(const std::string&)> act;
  uint64_t occasions() const { return occasions_; }

 private:
  void occasion() {
    if (occasions_++ == when_ && act) {
      act(path_);
    }
  }
  static void* allocate(size_t bytes, void* user) {
    Meddler* self = static_cast<Meddler*>(user);
    self->occasion();
    return self->inner_.allocate(bytes, self->inner_.user);
  }
  static void release(void* block, size_t bytes, void* user) {
    Meddler* self = static_cast<Meddler*>(user);
    self->inner_.release(block, bytes, self->inner_.user);
  }
  static int progress(uint64_t, uint64_t, void* user) {
    static_cast<Meddler*>(user)->occasion();
    return 0;
  }

  std::string path_;
  uint64_t when_;
  uint64_t occasions_ = 0;
  oriel_allocator inner_ = {};
  oriel_allocator outer_ = {};
};

void overwrite(const std::string& path, uint64_t offset, const std::vector<uint8_t>& bytes) {
  std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(static_cast<std::streamoff>(offset));
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

struct Change {
  const char* name;
  std::function<void(const std::string&)> act;
};

std::vector<Change> changes(const std::vector<uint8_t>& sound) {
  const uint64_t bytes = sound.size();
  const std::vector<uint8_t> ones(8, 0xff);
  std::vector<uint8_t> longer_tokens = sound;  // what the tokenizer's second walk would read
  for (size_t at = 0; at + 8 < std::min<size_t>(sound.size(), 20000); ++at) {
    uint64_t length = 0;
    std::memcpy(&length, sound.data() + at, 8);
    if (length > 0 && length < 8) {
      longer_tokens[at] = 200;
      at += 8;
    }
  }
  return {
      {"cut off to nothing", [](const std::string& path) { fs::resize_file(path, 0); }},
      {"cut off in the header", [](const std::string& path) { fs::resize_file(path, 3000); }},
      {"cut off in the weights",
       [=](const std::string& path) { fs::resize_file(path, bytes / 2); }},
      {"cut off by a byte", [=](const std::string& path) { fs::resize_file(path, bytes - 1); }},
      {"grown", [=](const std::string& path) { fs::resize_file(path, bytes + 100); }},
      {"another number of tensors", [=](const std::string& path) { overwrite(path, 8, ones); }},
      {"longer tokens", [=](const std::string& path) { overwrite(path, 0, longer_tokens); }},
      {"all ones",
       [=](const std::string& path) { overwrite(path, 0, std::vector<uint8_t>(bytes, 0xff)); }},
      {"another weight", [=](const std::string& path) { overwrite(path, bytes - 100, {1}); }},
      {"another file in its place",
       [=](const std::string& path) { writeFile(path, std::vector<uint8_t>(700, 'x')); }},
  };
}

// A fresh file may have the same time after a rewrite: clocks tick every few milliseconds.
void makeOld(const std::string& path) {
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
}

TEST_F(HostileModels, a_file_that_changes_at_any_moment_of_a_load_is_an_error) {
#if defined(_WIN32)
  GTEST_SKIP() << "nobody may write to a file that is open for reading here";
#endif
  const std::vector<uint8_t> sound = readFile(dataModel("llama-q2_k.gguf"));
  writeFile(path_, sound);
  uint64_t occasions = 0;
  {
    Attempt attempt(path_, 64 << 20);
    Meddler counter(path_, UINT64_MAX);
    counter.watch(&attempt.options());
    ASSERT_EQ(ORIEL_OK, attempt.run());
    occasions = counter.occasions();
  }
  ASSERT_GT(occasions, 8u);
  for (const Change& change : changes(sound)) {
    for (uint64_t when = 0; when < occasions; when += when < 8 ? 1 : 5) {
      SCOPED_TRACE(change.name + std::string(" at occasion ") + std::to_string(when));
      writeFile(path_, sound);
      makeOld(path_);
      Attempt attempt(path_, 64 << 20);
      Meddler meddler(path_, when);
      meddler.act = change.act;
      meddler.watch(&attempt.options());
      const oriel_status status = attempt.run();
      // The memory of the session and of its messages is asked for last, when the file has long been closed.
      EXPECT_TRUE(status == ORIEL_ERROR_IO || (status == ORIEL_OK && when + 12 >= occasions))
          << oriel_status_text(status);
    }
  }
}

TEST_F(HostileModels, any_number_of_loads_end_well_while_another_thread_writes) {
#if defined(_WIN32)
  GTEST_SKIP() << "nobody may write to a file that is open for reading here";
#endif
  const std::vector<uint8_t> sound = readFile(dataModel("llama-q2_k.gguf"));
  writeFile(path_, sound);
  const std::vector<Change> all = changes(sound);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    std::mt19937_64 random(numberIn("ORIEL_SEED", 1));
    while (!done) {
      if (random() % 3 != 0) {
        all[random() % all.size()].act(path_);
      } else {
        overwrite(path_, random() % 30000, {static_cast<uint8_t>(random())});
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
      writeFile(path_, sound);
      // About as long as a load takes: most changes fall into the middle of one.
      std::this_thread::sleep_for(
          std::chrono::microseconds(random() % 4 == 0 ? 20000 : random() % 8000));
    }
  });
  uint64_t loaded = 0;
  uint64_t caught = 0;
  const uint64_t count = numberIn("ORIEL_CHANGED", 25);
  const double end_ms = nowMs() + 500.0 * static_cast<double>(count);
  for (uint64_t i = 0; caught < count && nowMs() < end_ms; ++i) {
    SCOPED_TRACE(i);
    Attempt attempt(path_, 64 << 20);
    attempt.options().device = i % 4 == 0 ? "none" : "cpu";
    const oriel_status status = attempt.run();
    EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_IO || status == ORIEL_ERROR_FORMAT ||
                status == ORIEL_ERROR_UNSUPPORTED)
        << oriel_status_text(status);
    loaded += status == ORIEL_OK ? 1 : 0;
    caught += attempt.saidLast("was changed while") ? 1 : 0;
  }
  done = true;
  writer.join();
  std::printf("%llu files changed in the middle of a load, %llu loads found one at rest\n",
              static_cast<unsigned long long>(caught), static_cast<unsigned long long>(loaded));
  EXPECT_GT(caught, 0u);
}

TEST_F(HostileModels, a_file_that_is_replaced_or_removed_is_loaded_as_it_was) {
#if defined(_WIN32)
  GTEST_SKIP() << "open files keep their names";
#endif
  const std::vector<uint8_t> sound = readFile(dataModel("llama-q2_k.gguf"));
  const std::string other = (folder_ / "other.gguf").string();
  const std::vector<Change> renames = {
      {"removed", [](const std::string& path) { fs::remove(path); }},
      {"renamed", [&](const std::string& path) { fs::rename(path, other); }},
      {"replaced",
       [&](const std::string& path) {
         writeFile(other, {1, 2, 3});
         fs::rename(other, path);
       }},
  };
  for (const Change& change : renames) {
    for (uint64_t when = 0; when < 12; ++when) {
      SCOPED_TRACE(change.name + std::string(" at occasion ") + std::to_string(when));
      writeFile(path_, sound);
      Attempt attempt(path_, 64 << 20);
      Meddler meddler(path_, when);
      meddler.act = change.act;
      meddler.watch(&attempt.options());
      // Renaming looks like any other metadata change.
      const oriel_status status = attempt.run();
      EXPECT_TRUE(status == ORIEL_OK ||
                  (status == ORIEL_ERROR_IO && change.name == renames[1].name))
          << oriel_status_text(status);
    }
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_hostile_models
