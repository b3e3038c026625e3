// oriel_file_describe for runnable and other files.
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#if !defined(_WIN32)
#include <fcntl.h>
#endif

#include "base/arena.h"
#include "base/hash.h"
#include "gguf/gguf.h"
#include "support/allocators.h"
#include "support/captured_log.h"
#include "support/describe.h"
#include "support/files.h"
#include "support/gguf_writer.h"
#include "support/tokenizer_case.h"

namespace oriel_internal::test::test_inspect {
namespace {

const char* const kModel = ORIEL_TEST_DATA "/models/llama-q8_0.gguf";

struct Inspected {
  oriel_status status = ORIEL_OK;
  Json info;
  CapturedLog log;
};

Inspected inspectFile(const std::string& path) {
  Inspected result;
  Options options;
  options.log = result.log.log().callback;
  options.log_user = result.log.log().user;
  size_t needed = 0;
  result.status = oriel_file_describe(path.c_str(), &options, nullptr, 0, &needed);
  if (result.status == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    result.status = ORIEL_OK;
    result.info = describeFile(path, options);
  }
  return result;
}

Inspected inspectBytes(const std::vector<uint8_t>& bytes) {
  const std::string path =
      testing::TempDir() + "oriel-inspect-" + std::to_string(getpid()) + ".gguf";
  {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  Inspected result = inspectFile(path);
  std::remove(path.c_str());
  return result;
}

// A model without weights keeps its shape, too.
TEST(Inspect, memory_that_is_refused_says_nothing_of_a_model) {
  std::string told;
  for (const bool load : {false, true}) {
    for (uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE((load ? "load, allocation " : "inspect, allocation ") + std::to_string(nth));
      Ledger ledger;
      ledger.refuse_nth = nth;
      CapturedLog log;
      Options options;
      options.log = log.log().callback;
      options.log_user = log.log().user;
      options.allocator = ledger.allocator();
      options.device = "none";
      oriel_model* model = nullptr;
      char text[8192];
      size_t needed = 0;
      const oriel_status status =
          load ? oriel_model_load(kModel, &options, &model)
               : oriel_file_describe(kModel, &options, text, sizeof(text), &needed);
      if (status == ORIEL_OK) {
        EXPECT_EQ(2u, (load ? describe(model) : Json::parse(text)).at("n_layers"));
        EXPECT_EQ("", log.errors());
      } else {
        EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status);
        EXPECT_NE("", log.errors());
        EXPECT_EQ(std::string::npos, log.errors().find('\n')) << log.errors();
        told += log.errors();
      }
      oriel_model_free(model);
      if (ledger.calls < nth) {
        break;
      }
    }
  }
  EXPECT_NE(std::string::npos, told.find("list of tensors")) << told;
}

TEST(Inspect, a_file_that_runs_is_described_in_full) {
  const Inspected got = inspectFile(kModel);
  ASSERT_EQ(ORIEL_OK, got.status);
  const Json& info = got.info;
  EXPECT_EQ("llama", got.info.at("architecture"));
  EXPECT_EQ(true, got.info.at("runs"));
  EXPECT_EQ(0u, got.info.at("missing").size());
  EXPECT_EQ(954656u, got.info.at("file_bytes"));
  EXPECT_EQ(2u, got.info.at("n_layers"));
  EXPECT_EQ(4u, got.info.at("n_heads"));
  EXPECT_EQ(2u, got.info.at("n_kv_heads"));
  EXPECT_EQ(64u, got.info.at("head_dim"));
  EXPECT_EQ(384u, got.info.at("n_vocab"));
  ASSERT_EQ(2u, info.at("tensor_types").size());
  uint64_t parameters = 0;
  for (const auto& [name, type] : info.at("tensor_sizes").items()) {
    EXPECT_EQ(type.at("tensors"), info.at("tensor_types").at(name));
    const uint64_t of_type = type.at("parameters");
    parameters += of_type;
    if (name == "Q8_0") {
      EXPECT_EQ(15u, type.at("tensors"));
      EXPECT_EQ(of_type / 32 * 34, type.at("bytes"));
    }
  }
  EXPECT_EQ(info.at("parameters"), parameters);
  EXPECT_EQ(20u, got.info.at("tensor_count"));
  EXPECT_EQ(false, got.info.at("prediction_block"));
}

TEST(Inspect, a_file_that_does_not_run_is_described_and_what_it_lacks_is_said) {
  Vocabulary v;
  v.add("a");
  v.add("b");
  v.model = "morse";
  GgufWriter file = v.writer();
  file.addString("general.name", "Telegraph");
  file.addString("general.license", "cc0-1.0");
  file.addUint32("llama.block_count", 3);
  file.addUint32("llama.embedding_length", 64);
  file.addUint32("llama.attention.head_count", 4);
  file.addFloat32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const Inspected got = inspectBytes(file.build());
  ASSERT_EQ(ORIEL_OK, got.status) << got.log.errors();
  EXPECT_EQ("Telegraph", got.info.at("name"));
  EXPECT_EQ("cc0-1.0", got.info.at("license"));
  EXPECT_EQ(3u, got.info.at("n_layers"));
  EXPECT_EQ(16u, got.info.at("head_dim"));
  EXPECT_EQ(4u, got.info.at("n_kv_heads"));
  EXPECT_EQ(2u, got.info.at("n_vocab"));
  EXPECT_EQ(false, got.info.at("runs"));
  ASSERT_EQ(2u, got.info.at("missing").size());
  EXPECT_NE(got.info.at("missing").at(0).get<std::string>().find("feed_forward_length"),
            std::string::npos);
  EXPECT_NE(got.info.at("missing").at(1).get<std::string>().find("morse"), std::string::npos);
  EXPECT_EQ("", got.log.errors()) << "what is missing is the answer, not a failure";
}

TEST(Inspect, a_file_that_states_nothing_is_no_failure) {
  const Inspected got = inspectBytes(GgufWriter().build());
  ASSERT_EQ(ORIEL_OK, got.status) << got.log.errors();
  EXPECT_EQ("", got.info.at("architecture"));
  EXPECT_EQ(false, got.info.at("runs"));
  EXPECT_GE(got.info.at("missing").size(), 1u);
}

TEST(Inspect, every_truncation_is_a_failure_with_a_reason) {
  const std::vector<uint8_t> whole = readBytes(kModel);
  for (size_t bytes = 0; bytes < whole.size(); bytes = bytes * 5 / 4 + 97) {
    const Inspected got = inspectBytes({whole.begin(), whole.begin() + static_cast<long>(bytes)});
    EXPECT_NE(ORIEL_OK, got.status) << bytes;
    EXPECT_NE("", got.log.errors()) << bytes;
  }
}

}  // namespace
}  // namespace oriel_internal::test::test_inspect

namespace oriel_internal::test_model_file {

// Files that are read, not mapped: their parts in memory, and the effects of changes.

namespace {

namespace fs = std::filesystem;
using test::CapturedLog;
using test::GgufWriter;
using test::Ledger;

class ModelFiles : public testing::Test {
 protected:
  ModelFiles() : folder_(fs::temp_directory_path() / ("oriel-files-" + std::to_string(entropy()))) {
    fs::create_directories(folder_);
    path_ = (folder_ / "model.gguf").string();
  }
  ~ModelFiles() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void write(const std::vector<uint8_t>& bytes) const {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  void overwrite(uint64_t offset, const std::string& text) const {
    std::fstream out(path_, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(offset));
    out << text;
  }
  /// File clocks tick every few milliseconds: a rewrite right after a write looks unchanged.
  void makeOld() const {
    fs::last_write_time(path_, fs::last_write_time(path_) - std::chrono::hours(1));
  }
  static void expectChanged(const Status& status, const CapturedLog& log) {
    EXPECT_EQ(ORIEL_ERROR_IO, status.code());
    EXPECT_EQ(1u, log.lines.size());
    EXPECT_TRUE(log.says("was changed while it was being read: ")) << log.errors();
  }

  fs::path folder_;
  std::string path_;
};

/// `n_words` of a dozen letters each, and a tensor.
GgufWriter wordy(size_t n_words) {
  GgufWriter writer;
  std::vector<std::string> words;
  for (size_t i = 0; i < n_words; ++i) {
    words.push_back("word " + std::to_string(1000000 + i));
  }
  writer.addStrings("words", words);
  writer.addString("last", "key");
  writer.addTensorF32("numbers", {4}, {1, 2, 3, 4});
  return writer;
}

TEST_F(ModelFiles, a_header_of_any_length_is_read_whole_and_borrows_twice_its_bytes_at_most) {
  for (const size_t n_words : {0, 10, 13000, 13107, 30000, 200000}) {
    SCOPED_TRACE(n_words);
    write(wordy(n_words).build());
    Ledger ledger;
    CapturedLog log;
    {
      ModelFile file;
      ASSERT_TRUE(file.open(path_.c_str(), *ledger.allocator(), log.log()).ok()) << log.errors();
      EXPECT_EQ(fs::file_size(path_), file.bytes());
      EXPECT_EQ(fs::file_size(path_), file.gguf().bytes());
      EXPECT_LE(ledger.peak_bytes, std::max<uint64_t>(256 << 10, 2 * file.gguf().headerBytes()));
      GgufString last;
      EXPECT_TRUE(file.gguf().getString("last", &last) && last.equals("key"));
      GgufArray words;
      ASSERT_TRUE(file.gguf().getArray("words", &words));
      GgufString word;
      size_t count = 0;
      for (GgufArrayReader reader(words); reader.nextString(&word); ++count) {
      }
      EXPECT_EQ(n_words, count);
      GgufTensor tensor;
      ASSERT_TRUE(file.gguf().findTensor("numbers", &tensor));
      file.dropHeader();
      EXPECT_EQ(0u, ledger.live_bytes);
      float room[4] = {};
      const uint8_t* data = nullptr;
      ASSERT_TRUE(file.gguf().read(tensor.offset, tensor.bytes, room, log.log(), &data).ok());
      EXPECT_EQ(reinterpret_cast<const uint8_t*>(room), data);
      EXPECT_EQ(3.0f, room[2]);
      EXPECT_TRUE(file.expectUnchanged(log.log()).ok());
    }
    EXPECT_EQ("", log.errors());
  }
}

TEST_F(ModelFiles, tensors_are_not_in_memory) {
  GgufWriter writer = wordy(10);
  writer.addTensor("large", 0, {1 << 20, 1 << 8}, {});
  writer.pad_last = false;
  write(writer.build());
  const uint64_t begin = fs::file_size(path_);
  fs::resize_file(path_, begin + (uint64_t{1} << 30));  // takes no room on the disk
  Ledger ledger;
  CapturedLog log;
  ModelFile file;
  ASSERT_TRUE(file.open(path_.c_str(), *ledger.allocator(), log.log()).ok()) << log.errors();
  EXPECT_LE(ledger.peak_bytes, 256u << 10);
}

TEST_F(ModelFiles, a_header_that_claims_the_memory_of_a_machine_gets_none) {
  GgufWriter writer;
  test::ByteWriter endless;
  endless.put<uint64_t>(uint64_t{900} << 20);
  writer.addRaw("endless", 8, endless.bytes);
  write(writer.build());
  fs::resize_file(path_, uint64_t{1} << 30);
  Ledger ledger;
  CapturedLog log;
  ModelFile file;
  EXPECT_EQ(ORIEL_ERROR_UNSUPPORTED,
            file.open(path_.c_str(), *ledger.allocator(), log.log()).code());
  EXPECT_TRUE(log.says("128 MiB")) << log.errors();
  EXPECT_LE(ledger.peak_bytes, 256u << 10);
}

TEST_F(ModelFiles, memory_that_is_refused_is_an_error) {
  write(wordy(100000).build());
  for (uint64_t n = 1;; ++n) {
    Ledger ledger;
    ledger.refuse_nth = n;
    CapturedLog log;
    ModelFile file;
    const Status status = file.open(path_.c_str(), *ledger.allocator(), log.log());
    if (status.ok()) {
      EXPECT_GT(n, 3u);
      break;
    }
    EXPECT_EQ(ORIEL_ERROR_OUT_OF_MEMORY, status.code());
    EXPECT_EQ(1u, log.lines.size());
    EXPECT_EQ(0u, ledger.live_bytes);
  }
}

TEST_F(ModelFiles, what_was_checked_stays_what_it_was) {
#if defined(_WIN32)
  GTEST_SKIP() << "nobody may write to a file that is open for reading here";
#endif
  const std::vector<uint8_t> bytes = wordy(100).build();
  write(bytes);
  makeOld();
  CapturedLog log;
  ModelFile file;
  ASSERT_TRUE(file.open(path_.c_str(), defaultAllocator(), log.log()).ok());
  overwrite(0, std::string(bytes.size(), '\xff'));
  GgufString last;
  EXPECT_TRUE(file.gguf().getString("last", &last) && last.equals("key"));
  expectChanged(file.expectUnchanged(log.log()), log);
}

TEST_F(ModelFiles, a_file_that_was_cut_off_has_no_such_bytes) {
#if defined(_WIN32)
  GTEST_SKIP() << "nobody may write to a file that is open for reading here";
#endif
  write(wordy(100).build());
  CapturedLog log;
  ModelFile file;
  ASSERT_TRUE(file.open(path_.c_str(), defaultAllocator(), log.log()).ok());
  GgufTensor tensor;
  ASSERT_TRUE(file.gguf().findTensor("numbers", &tensor));
  fs::resize_file(path_, tensor.offset + 8);
  float room[4] = {};
  const uint8_t* data = nullptr;
  expectChanged(file.gguf().read(tensor.offset, tensor.bytes, room, log.log(), &data), log);
}

TEST_F(ModelFiles, every_change_of_a_file_shows) {
#if defined(_WIN32)
  GTEST_SKIP() << "nobody may write to a file that is open for reading here";
#endif
  const std::vector<uint8_t> bytes = wordy(100).build();
  const std::string other = (folder_ / "other").string();
  const struct {
    const char* name;
    bool shows;
    std::function<void()> act;
  } changes[] = {
      {"nothing", false, [] {}},
      {"removed", false, [&] { fs::remove(path_); }},
      {"another name", false, [&] { fs::create_hard_link(path_, other); }},
      {"replaced", false,
       [&] {
         std::ofstream(other) << "x";
         fs::rename(other, path_);
       }},
      {"a byte", true, [&] { overwrite(bytes.size() - 1, "x"); }},
      {"grown", true, [&] { fs::resize_file(path_, bytes.size() + 1); }},
      {"cut off", true, [&] { fs::resize_file(path_, bytes.size() - 1); }},
      {"a byte, and its time put back", true,
       [&] {
         std::this_thread::sleep_for(std::chrono::milliseconds(30));
         const auto time = fs::last_write_time(path_);
         overwrite(bytes.size() - 1, "x");
         fs::last_write_time(path_, time);
       }},
  };
  for (const auto& change : changes) {
    SCOPED_TRACE(change.name);
    std::error_code ignored;
    fs::remove(other, ignored);
    fs::remove(path_, ignored);
    write(bytes);
    makeOld();
    CapturedLog log;
    InputFile file;
    ASSERT_TRUE(file.open(path_.c_str(), log.log()).ok()) << log.errors();
    change.act();
    const Status status = file.expectUnchanged(log.log());
    if (change.shows) {
      expectChanged(status, log);
    } else {
      EXPECT_TRUE(status.ok()) << log.errors();
      std::vector<uint8_t> again(bytes.size());
      ASSERT_TRUE(file.read(0, again.data(), again.size(), log.log()).ok());
      EXPECT_EQ(bytes, again);
    }
  }
}

TEST_F(ModelFiles, what_cannot_be_read_is_refused_with_a_reason) {
  const auto expectRefused = [](const std::string& path, const std::string& word) {
    CapturedLog log;
    InputFile file;
    EXPECT_EQ(ORIEL_ERROR_IO, file.open(path.c_str(), log.log()).code());
    EXPECT_EQ(1u, log.lines.size());
    EXPECT_TRUE(log.says(word)) << log.errors();
  };
  expectRefused(path_, "it is not there");
  expectRefused(path_, path_);
  expectRefused(folder_.string(), "it is a folder");
  expectRefused(std::string(5000, 'x'), "path is too long");
  write({});
  expectRefused(path_, "is empty");
#if !defined(_WIN32)
  expectRefused("/dev/null", "it is a device or a pipe");
#endif
}

#if !defined(_WIN32)
TEST_F(ModelFiles, a_descriptor_is_read_without_moving_it) {
  const std::vector<uint8_t> bytes = wordy(100).build();
  write(bytes);
  const int fd = ::open(path_.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(17, ::lseek(fd, 17, SEEK_SET));
  fs::remove(path_);
  for (const std::string folder : {"/dev/fd/", "/proc/self/fd/"}) {
    CapturedLog log;
    ModelFile file;
    EXPECT_TRUE(
        file.open((folder + std::to_string(fd)).c_str(), defaultAllocator(), log.log()).ok())
        << log.errors();
    EXPECT_EQ(17, ::lseek(fd, 0, SEEK_CUR));
  }
  EXPECT_EQ(0, ::close(fd));
}
#endif

// --- The hash of weights -------------------------------------------------------------------------

uint64_t hashInParts(const std::vector<uint8_t>& bytes, uint64_t seed, std::mt19937* random) {
  StreamHash hash(seed);
  for (size_t at = 0; at < bytes.size();) {
    const size_t part =
        random == nullptr ? bytes.size() : std::min<size_t>((*random)() % 200, bytes.size() - at);
    hash.add(bytes.data() + at, part);
    at += part;
  }
  return hash.finish();
}

TEST(StreamHash, does_not_depend_on_the_parts) {
  std::mt19937 random(3);
  for (size_t n = 0; n < 600; n += 7) {
    std::vector<uint8_t> bytes(n);
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random());
    }
    const uint64_t whole = hashInParts(bytes, 5, nullptr);
    for (int round = 0; round < 20; ++round) {
      EXPECT_EQ(whole, hashInParts(bytes, 5, &random));
    }
  }
}

TEST(StreamHash, every_bit_the_length_and_the_seed_count) {
  std::set<uint64_t> seen;
  size_t count = 0;
  for (size_t n = 0; n < 300; n += 3) {
    seen.insert(hashInParts(std::vector<uint8_t>(n), 0, nullptr));  // zeros, ever more
    ++count;
  }
  std::vector<uint8_t> bytes(300);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    seen.insert(hashInParts(bytes, 0, nullptr));
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    ++count;
  }
  for (uint64_t seed = 1; seed < 100; ++seed) {
    seen.insert(hashInParts(bytes, seed, nullptr));
    ++count;
  }
  EXPECT_EQ(count, seen.size());
}

}  // namespace
}  // namespace oriel_internal::test_model_file
