// Files of trained prefixes (exec/snapshot.h): loaded with their model, which then continues after them.
#include <memory>

#include "exec/snapshot.h"
#include "fuzz/fuzz.h"
#include "fuzz/use_model.h"
#include "gguf/gguf.h"
#include "oriel/advanced.h"
#include "support/describe.h"
#include "support/random_llama.h"

namespace oriel_internal::fuzz::fuzz_prefix {
namespace {

constexpr uint32_t kRoom = 6;  // tokens
constexpr uint64_t kMemory = 16 << 20;

test::RandomLlama model() {
  test::RandomLlama llama;
  llama.n_embd = 32;
  llama.n_heads = 2;
  llama.n_kv_heads = 1;
  llama.n_ff = 32;
  return llama;
}

/// The model's file, written once.
struct ModelOnDisk {
  ModelOnDisk() : path("model"), bytes(model().bytes()) {
    path.write(bytes);
    const auto file = std::make_unique<ModelFile>();
    GgufTensor norm;
    EXPECT_TRUE(file->open(path.c_str(), defaultAllocator(), Log()).ok());
    EXPECT_TRUE(file->gguf().findTensor("output_norm.weight", &norm));
    EXPECT_TRUE(prefixFingerprint(file->gguf(), norm, Log(), &fingerprint).ok());
  }
  static const ModelOnDisk& get() {
    static const ModelOnDisk one;
    return one;
  }
  InputPath path;
  const std::vector<uint8_t> bytes;
  uint64_t fingerprint = 0;
};

GgufParts prefixOf(uint32_t tokens) {
  const test::RandomLlama llama = model();
  test::GgufWriter file;
  file.addString("general.architecture", "oriel-prefix");
  file.addUint32("oriel.prefix.version", 1);
  file.addUint32("oriel.prefix.tokens", tokens);
  file.addUint32("oriel.prefix.layers", llama.n_layers);
  file.addUint32("oriel.prefix.vocab_size", llama.n_vocab);
  file.addString("oriel.prefix.model_architecture", llama.architecture);
  file.addString("oriel.prefix.model_name", "Somebody");
  file.addUint64("oriel.prefix.fingerprint", ModelOnDisk::get().fingerprint);
  for (uint32_t layer = 0; layer < llama.n_layers; ++layer) {
    for (const char* side : {"prefix.k.", "prefix.v."}) {
      file.addTensor(side + std::to_string(layer), 1, {llama.head_dim, tokens, llama.n_kv_heads},
                     {});
    }
  }
  const std::vector<uint8_t> bytes = file.build();
  return takeGgufApart(bytes.data(), bytes.size());
}

using test::Options;
using test::ReplyOptions;

/// Loads the model with the prefix and generates after it.
class Behind {
 public:
  Behind(const char* prefix, uint64_t prefix_bytes) : prefix_bytes_(prefix_bytes) {
    options_.device = "cpu";
    options_.threads = 1;
    options_.memory_bytes = kMemory;
    options_.window_tokens = 16;
    options_.set("prefix_file", prefix);
    const Log log = watch_.log();
    options_.log = log.callback;
    options_.log_user = log.user;
    options_.allocator = watch_.allocator();
  }
  ~Behind() {
    EXPECT_EQ(0u, watch_.ledger().live_bytes);
    watch_.expectPeakBelow(kMemory + 2 * (ModelOnDisk::get().bytes.size() + prefix_bytes_));
  }

  /// 0 tokens: refused.
  uint32_t tokens() {
    oriel_model* loaded = nullptr;
    const oriel_status status =
        watch_.ended(oriel_model_load(ModelOnDisk::get().path.c_str(), &options_, &loaded));
    const test::ModelPtr behind(loaded);
    EXPECT_EQ(status == ORIEL_OK, loaded != nullptr);
    if (!behind) {
      return 0;
    }
    const test::Json prefix = test::describe(behind)["prefix"];
    EXPECT_EQ(true, prefix.at("trained"));
    oriel_session* made = nullptr;
    EXPECT_EQ(ORIEL_OK, watch_.ended(oriel_session_create(behind.get(), nullptr, &made)));
    const test::SessionPtr session(made);
    const ReplyOptions three = test::greedyOptions(3);
    std::vector<int32_t> ids;
    (void)watch_.ended(oriel_session_append_text(session.get(), "a ball", 6, 0));
    (void)watch_.ended(oriel_session_generate(session.get(), &three, test::keepId, &ids, nullptr));
    return prefix.at("tokens");
  }

 private:
  const uint64_t prefix_bytes_;
  Watch watch_;
  Options options_;
};

// Shapes that the model accepts.
void expectShapes(const std::vector<uint8_t>& file, uint32_t tokens) {
  const test::RandomLlama llama = model();
  const GgufParts parts = takeGgufApart(file.data(), file.size());
  size_t sides = 0;
  for (const GgufParts::Tensor& tensor : parts.tensors) {
    if (tensor.name == "prefix.k.0" || tensor.name == "prefix.v.0" || tensor.name == "prefix.k.1" ||
        tensor.name == "prefix.v.1") {
      ++sides;
      const std::vector<uint64_t> dims = {llama.head_dim, tokens, llama.n_kv_heads};
      EXPECT_EQ(dims, tensor.dims) << tensor.name;
      EXPECT_EQ(1u, tensor.type) << tensor.name;
    }
  }
  EXPECT_EQ(2 * llama.n_layers, sides);
}

}  // namespace

ORIEL_FUZZ(prefix) {
  const ModelInput input(data, size);
  const std::vector<uint8_t> bytes = input.file();
  const InputPath path("prefix");
  path.write(bytes);
  const uint32_t tokens = Behind(path.c_str(), bytes.size()).tokens();
  Watch watch;
  uint32_t counted = 0;
  const oriel_status status =
      watch.ended(countPrefixFile(path.c_str(), *watch.allocator(), watch.log(), &counted).code());
  if (tokens != 0) {
    pastFirstCheck();
    EXPECT_EQ(ORIEL_OK, status);
    EXPECT_EQ(counted, tokens);
    expectShapes(bytes, tokens);
  }
}

ORIEL_FUZZ_SEEDS(prefix) {
  for (const uint32_t tokens : {1u, 3u, kRoom, 15u}) {
    seeds->push_back(modelInput(0, prefixOf(tokens)));
  }
  GgufParts values = prefixOf(2);
  (void)values.layOut();
  values.data.resize(values.tensors.back().offset + tensorBytes(values.tensors.back()), 0x3c);
  std::string whole = modelInput(0, prefixOf(2));
  whole.replace(0, 4, 4, '\0');
  const std::vector<uint8_t> bytes = putTogether(values);
  seeds->push_back(whole.substr(0, kModelHead) + std::string(bytes.begin(), bytes.end()));
}

ORIEL_FUZZ_MUTATE(prefix) { return mutateModel(data, size, max_size, seed, Care::kPrefix); }

}  // namespace oriel_internal::fuzz::fuzz_prefix
