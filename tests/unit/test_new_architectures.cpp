// Architectures of 2026: their special keys, and refused values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "gguf/model_file.h"
#include "model/architecture.h"
#include "tests/support/captured_log.h"
#include "tests/support/described.h"
#include "tests/support/model_mutants.h"

namespace oriel_internal::test_new_architectures {
namespace {

using test::CapturedLog;
using test::Described;
using test::GgufWriter;
using test::ValueType;

std::vector<uint8_t> bytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
std::string modelPath(const std::string& name) {
  return std::string(ORIEL_TEST_DATA "/models/") + name + ".gguf";
}
GgufWriter fileOf(const std::string& name) { return test::takeApart(bytesOf(modelPath(name))); }

void expectRefused(const std::string& name, const std::vector<std::string>& words,
                   const std::function<void(GgufWriter*)>& change) {
  GgufWriter writer = fileOf(name);
  change(&writer);
  const Described described(writer);
  EXPECT_NE(described.status, ORIEL_OK) << name << " " << words[0];
  for (const std::string& word : words) {
    EXPECT_TRUE(described.log.says(word)) << "\"" << word << "\" in: " << described.log.errors();
  }
}

void resize(GgufWriter* writer, const std::string& name, std::vector<uint64_t> dims) {
  uint64_t values = 1;
  for (const uint64_t dim : dims) {
    values *= dim;
  }
  writer->removeTensor(name);
  writer->addTensor(name, 0, dims, std::vector<uint8_t>(static_cast<size_t>(values) * 4));
}

TEST(NewArchitectures, there_are_more_than_seventy_that_write_text) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < architectureCount(); ++i) {
    const Traits& traits = architectureAt(i).traits;
    count += traits.drafts || traits.encoder ? 0 : 1;
  }
  EXPECT_GE(count, 70u);
}

TEST(NewArchitectures, counts_by_layer_have_one_for_each) {
  expectRefused("nemotron_h_moe-latent", {"feed_forward_length"}, [](GgufWriter* w) {
    w->addInt32s("nemotron_h_moe.feed_forward_length", {0, 32, 0});
  });
  expectRefused("lfm3", {"head_count_kv"}, [](GgufWriter* w) {
    w->addInt32s("lfm3.attention.head_count_kv", {0, 0, 2});
  });
  expectRefused("lfm3", {"sliding_window_pattern"}, [](GgufWriter* w) {
    w->addBools("lfm3.attention.sliding_window_pattern", {0, 1});
  });
}

TEST(NewArchitectures, experts_are_as_many_as_their_tensors_hold) {
  for (const uint32_t count : {0u, 7u, 4000u}) {
    expectRefused("gpt-oss-mxfp4", {count == 7 ? "ffn_gate_inp" : "expert_count"},
                  [&](GgufWriter* w) { w->addUint32("gpt-oss.expert_count", count); });
  }
  expectRefused("nemotron_h_moe-latent", {"expert_group"}, [](GgufWriter* w) {
    w->addUint32("nemotron_h_moe.expert_group_count", 4);
    w->addUint32("nemotron_h_moe.expert_group_used_count", 1);
  });
}

TEST(NewArchitectures, tensors_beside_matrices_fit_them) {
  expectRefused("gpt-oss-mxfp4", {"blk.1.attn_sinks.weight"},
                [](GgufWriter* w) { resize(w, "blk.1.attn_sinks.weight", {5}); });
  expectRefused("gpt-oss-mxfp4", {"blk.0.attn_sinks.weight", "missing"},
                [](GgufWriter* w) { w->removeTensor("blk.0.attn_sinks.weight"); });
  expectRefused("lfm3", {"blk.4.attn_gate.weight"}, [](GgufWriter* w) {
    resize(w, "blk.4.attn_gate.weight", {40, 3});
  });
  expectRefused("lfm3", {"post_ffw_norm.weight", "missing"}, [](GgufWriter* w) {
    for (int layer = 0; layer < 10; ++layer) {
      w->removeTensor("blk." + std::to_string(layer) + ".post_ffw_norm.weight");
    }
  });
  expectRefused("gemma4-moe-fused", {"ffn_down_exps.scale"},
                [](GgufWriter* w) { resize(w, "blk.0.ffn_down_exps.scale", {5}); });
  expectRefused("llama-q1_0", {"attn_q.scale"},
                [](GgufWriter* w) { resize(w, "blk.0.attn_q.scale", {2}); });
}

TEST(NewArchitectures, keys_that_must_be_there_are_named) {
  for (const char* key : {"attention.sliding_window", "attention.sliding_window_pattern"}) {
    expectRefused("lfm3", {key}, [&](GgufWriter* w) { w->removeKey(std::string("lfm3.") + key); });
  }
  expectRefused("phi2", {"layer_norm_epsilon"},
                [](GgufWriter* w) { w->removeKey("phi2.attention.layer_norm_epsilon"); });
  expectRefused("nanbeige-skip", {"num_loops"},
                [](GgufWriter* w) { w->addUint32("nanbeige.num_loops", 1000); });
}

TEST(NewArchitectures, limits_by_layer_that_clamp_experts_are_refused) {
  for (const float limit : {0.0f, 7.0f}) {
    GgufWriter writer = fileOf("gpt-oss-mxfp4");
    writer.addFloat32s("gpt-oss.swiglu_clamp_shexp", {0, 0, limit, 0});
    const Described described(writer);
    EXPECT_EQ(limit == 0, described.status == ORIEL_OK) << described.log.errors();
    EXPECT_EQ(limit != 0, described.log.says("swiglu_clamp_shexp"));
  }
}

TEST(NewArchitectures, delta_attention_has_bounded_gates_and_taps_of_each_matrix) {
  expectRefused("bailingmoe3-small", {"kda.safe_gate", "false"},
                [](GgufWriter* w) { w->addBool("bailingmoe3.kda.safe_gate", false); });
  for (const float bound : {0.0f, 1.0f, NAN}) {
    expectRefused("bailingmoe3-small", {"kda.gate_lower_bound"},
                  [&](GgufWriter* w) { w->addFloat32("bailingmoe3.kda.gate_lower_bound", bound); });
  }
  for (const uint32_t dim : {0u, 11u, 1000u}) {
    expectRefused("bailingmoe3-small", {dim == 11 ? "blk.0.attn_q.weight" : "kda.head_dim"},
                  [&](GgufWriter* w) { w->addUint32("bailingmoe3.kda.head_dim", dim); });
  }
  expectRefused("bailingmoe3-small", {"blk.2.ssm_conv1d_k.weight"}, [](GgufWriter* w) {
    resize(w, "blk.2.ssm_conv1d_k.weight", {3, 24});
  });
  // Without attention there are no latents to read.
  expectRefused("bailingmoe3-small", {"head_count_kv"}, [](GgufWriter* w) {
    w->addInt32s("bailingmoe3.attention.head_count_kv", {0, 0, 0, 0});
  });
}

// ---- Models in several files ---------------------------------------------------------------------

/// The model's tensors in `count` files.
class Parts {
 public:
  Parts(const std::string& model, uint16_t count)
      : folder_(std::filesystem::temp_directory_path() /
                ("oriel-parts-" + std::to_string(std::random_device()()))),
        count_(count) {
    std::filesystem::create_directories(folder_);
    const GgufWriter whole = fileOf(model);
    for (uint16_t part = 0; part < count; ++part) {
      GgufWriter writer = whole;
      auto& tensors = writer.tensors();
      const size_t all = tensors.size();
      const auto at = [&](size_t index) {
        return tensors.begin() + static_cast<std::ptrdiff_t>(index);
      };
      tensors.erase(at(all * (part + 1u) / count), tensors.end());
      tensors.erase(tensors.begin(), at(all * part / count));
      if (part != 0) {
        writer.keys().clear();
      }
      const auto add = [&](const char* key, ValueType type, auto value) {
        writer.addNumber(key, type, value);
      };
      add("split.no", ValueType::kUint16, part);
      add("split.count", ValueType::kUint16, count);
      add("split.tensors.count", ValueType::kInt32, static_cast<int32_t>(all));
      write(part, writer.build());
    }
  }
  ~Parts() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  std::string path(uint16_t part) const {
    char name[64];
    std::snprintf(name, sizeof(name), "m-%05d-of-%05d.gguf", part + 1, count_);
    return (folder_ / name).string();
  }
  void write(uint16_t part, const std::vector<uint8_t>& bytes) const {
    std::ofstream(path(part), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

 private:
  const std::filesystem::path folder_;
  const int count_;
};

struct Joined {
  explicit Joined(const std::string& path)
      : status(file.open(path.c_str(), allocator, log.log()).code()) {}
  const oriel_allocator allocator = defaultAllocator();
  CapturedLog log;
  ModelFile file;
  oriel_status status;
};

TEST(SplitModels, are_whole_by_the_name_of_any_part) {
  const Parts parts("phi2", 3);
  const std::vector<uint8_t> bytes = bytesOf(modelPath("phi2"));
  GgufFile whole;
  CapturedLog log;
  ASSERT_TRUE(whole.open(bytes.data(), bytes.size(), log.log()).ok());
  for (uint16_t part = 0; part < 3; ++part) {
    Joined joined(parts.path(part));
    ASSERT_EQ(ORIEL_OK, joined.status) << joined.log.errors();
    ASSERT_EQ(whole.tensorCount(), joined.file.gguf().tensorCount());
    GgufTensor want;
    for (uint64_t cursor = 0; whole.nextTensor(&cursor, &want);) {
      const std::string name(want.name.data, want.name.bytes);
      GgufTensor got;
      ASSERT_TRUE(joined.file.gguf().findTensor(name.c_str(), &got));
      ASSERT_EQ(want.bytes, got.bytes);
      std::vector<uint8_t> read(static_cast<size_t>(got.bytes));
      ASSERT_TRUE(joined.file.read(got.offset, read.data(), got.bytes, joined.log.log()).ok());
      EXPECT_EQ(0, std::memcmp(bytes.data() + want.offset, read.data(), read.size())) << name;
    }
  }
}

TEST(SplitModels, that_are_not_whole_are_refused_in_one_line) {
  const auto expect = [](const std::string& path, const std::vector<std::string>& words) {
    const Joined joined(path);
    EXPECT_NE(ORIEL_OK, joined.status);
    for (const std::string& word : words) {
      EXPECT_TRUE(joined.log.says(word)) << word << " in: " << joined.log.errors();
    }
  };
  {
    const Parts parts("phi2", 3);
    std::remove(parts.path(0).c_str());
    std::remove(parts.path(2).c_str());
    expect(parts.path(1), {"2 are missing", "m-00001-of-00003.gguf", "m-00003-of-00003.gguf"});
  }
  {
    const Parts parts("phi2", 2);
    const Parts other("nanbeige-skip", 2);
    parts.write(1, bytesOf(other.path(1)));
    expect(parts.path(0), {"m-00002-of-00002.gguf", "same model"});
    parts.write(1, bytesOf(parts.path(0)));
    expect(parts.path(0), {"m-00002-of-00002.gguf", "same model"});
  }
  {
    const Parts parts("phi2", 2);
    const std::string renamed = parts.path(0) + ".gguf";
    ASSERT_EQ(0, std::rename(parts.path(0).c_str(), renamed.c_str()));
    expect(renamed, {"part 1 of 2", "-00001-of-00002.gguf"});
  }
}

}  // namespace
}  // namespace oriel_internal::test_new_architectures
