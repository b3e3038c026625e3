#include "fuzz/use_model.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "oriel/advanced.h"
#include "support/options.h"
#include "support/random_families.h"

namespace oriel_internal::fuzz {

ModelInput::ModelInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  weight_bytes = std::min(input.number(4), kMostWeightBytes);
  choices = static_cast<uint32_t>(input.number(4));
  header.assign(input.rest(), input.rest() + input.left());
}

std::vector<uint8_t> ModelInput::file() const {
  std::vector<uint8_t> bytes(header.size() + static_cast<size_t>(weight_bytes));
  std::copy(header.begin(), header.end(), bytes.begin());
  makeWeights(bytes.data() + header.size(), bytes.size() - header.size());
  return bytes;
}

void makeWeights(uint8_t* bytes, size_t count) {
  uint32_t state = 12345;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    // The sign and the exponent of float16, bfloat16 and float32: about 0.01 to 1.2.
    bytes[i] = static_cast<uint8_t>(i % 2 == 0 ? state >> 24 : 0x3c | (state >> 24 & 0x80));
  }
}

std::string modelInput(uint32_t choices, GgufParts parts) {
  const uint64_t bytes = std::min<uint64_t>(parts.layOut(), UINT32_MAX);
  parts.data.clear();
  test::ByteWriter out;
  out.put(static_cast<uint32_t>(bytes));
  out.put(choices);
  out.append(putTogether(parts));
  return {out.bytes.begin(), out.bytes.end()};
}

std::vector<GgufParts> familyHeaders() {
  constexpr uint32_t kTypes[] = {0, 1, 30, 8, 2,
                                 3, 6, 7,  20};  // row lengths are multiples of their blocks
  std::vector<GgufParts> headers;
  for (const test::RandomFamily& family : test::randomFamilies()) {
    const std::vector<uint8_t> bytes = family.model.bytes();
    GgufParts parts = takeGgufApart(bytes.data(), bytes.size());
    const uint32_t type = kTypes[headers.size() % std::size(kTypes)];
    for (GgufParts::Tensor& tensor : parts.tensors) {
      if (tensor.dims.size() > 1 && tensor.dims[0] % 32 == 0) {
        tensor.type = type;
      }
    }
    parts.data.clear();
    headers.push_back(std::move(parts));
  }
  return headers;
}

size_t mutateModel(uint8_t* data, size_t size, size_t max_size, uint64_t seed, Care care) {
  Chance chance(seed);
  if (size < kModelHead + 24 || chance.once(12)) {
    return mutateBytes(data, size, max_size, chance());
  }
  if (chance.once(16)) {
    data[4 + chance.below(4)] = static_cast<uint8_t>(chance());
    return size;
  }
  GgufParts parts = takeGgufApart(data + kModelHead, size - kModelHead);
  for (uint64_t n = 1 + chance.below(3) * chance.below(2); n != 0; --n) {
    mutateGguf(&parts, care, &chance);
  }
  uint64_t end = 0;
  for (const GgufParts::Tensor& tensor : parts.tensors) {
    const uint64_t bytes = tensorBytes(tensor);
    end = std::max(end, bytes > UINT64_MAX - tensor.offset ? UINT64_MAX : tensor.offset + bytes);
  }
  const uint32_t weights = static_cast<uint32_t>(std::min<uint64_t>(end, UINT32_MAX));
  if (!chance.once(16)) {
    std::memcpy(data, &weights, sizeof(weights));
  }
  const std::vector<uint8_t> made = putTogether(parts);
  return kModelHead + put(made, data + kModelHead, max_size - kModelHead);
}

InputPath::InputPath(const char* kind)
    : path_(testing::TempDir() + "/oriel-fuzz-" + std::to_string(getpid()) + "." + kind) {}

InputPath::~InputPath() { std::remove(path_.c_str()); }

void InputPath::write(const std::vector<uint8_t>& bytes, uint64_t file_bytes) const {
  {
    std::ofstream out(path_, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  if (file_bytes != bytes.size()) {
    std::error_code failed;
    std::filesystem::resize_file(path_, file_bytes, failed);
    EXPECT_FALSE(failed) << failed.message();
  }
}

using test::Options;
using test::ReplyOptions;
namespace {

constexpr uint32_t kTokens = 3;
constexpr char kText[] = "a\xc3\xa4 <|im_end|> 12";

/// Takes bits of a number, one choice after another.
class Choices {
 public:
  explicit Choices(uint32_t bits) : bits_(bits) {}
  uint32_t below(uint32_t end) {
    const uint32_t value = bits_ % end;
    bits_ /= end;
    return value;
  }

 private:
  uint32_t bits_;
};

class App {
 public:
  App(const char* path, uint64_t file_bytes, uint32_t bits) : path_(path), file_bytes_(file_bytes) {
    Choices choices(bits);
    constexpr uint64_t kMemory[] = {64 << 20, 8 << 20, 1 << 20, 200000};
    constexpr uint32_t kWindows[] = {48, 0, 7, 300};
    options_.device = "cpu";
    options_.threads = 1;
    with_weights_ = !withoutWeights(choices.below(4));
    options_.memory_bytes = kMemory[choices.below(4)];
    options_.window_tokens = kWindows[choices.below(4)];
    constexpr const char* kFormats[] = {"auto", "f16", "k8v8", "k4v16"};
    constexpr const char* kOffload[] = {"auto", "none", "rows", "all"};
    constexpr const char* kStates[] = {"auto", "f32", "f16", "int8"};
    options_.set("kv", kFormats[choices.below(4)]);
    options_.set("prefill_batch", (choices.below(4) + 2) % 4 * 8);
    options_.set("offload", kOffload[choices.below(4)]);
    options_.set("state", kStates[choices.below(4)]);
    options_.set("constraints", choices.below(2));
    options_.sessions = choices.below(3);
    options_.set("checkpoints", choices.below(3));
    options_.set("transcript", (1 + choices.below(2)) * 4096);
    if (!with_weights_) {
      options_.device = "none";
    }
    const Log log = watch_.log();
    options_.log = log.callback;
    options_.log_user = log.user;
    options_.allocator = watch_.allocator();
  }
  ~App() {
    EXPECT_EQ(0u, watch_.ledger().live_bytes);
    watch_.expectPeakBelow(options_.memory_bytes + 2 * file_bytes_);
  }

  oriel_status plan(bool* fits) {
    options_.device = "cpu";  // there is nothing to plan for without one
    oriel_plan plan = ORIEL_PLAN_INIT;
    const oriel_status status = watch_.ended(oriel_plan_file(path_, &options_, &plan));
    if (status == ORIEL_OK) {
      EXPECT_EQ(plan.total_bytes, plan.weights_bytes + plan.kv_bytes + plan.activation_bytes +
                                      plan.staging_bytes + plan.host_bytes);
      EXPECT_EQ(plan.fits != 0, plan.total_bytes <= options_.memory_bytes);
      EXPECT_TRUE(plan.fits == 0 || plan.minimum_bytes <= options_.memory_bytes);
    }
    *fits = plan.fits != 0;
    return status;
  }

  oriel_status use() {
    oriel_model* loaded = nullptr;
    const oriel_status status = watch_.ended(oriel_model_load(path_, &options_, &loaded));
    EXPECT_EQ(status == ORIEL_OK, loaded != nullptr);
    const test::ModelPtr model(loaded);
    if (model) {
      tokenize(*model);
      if (with_weights_) {
        talk(model.get());
      }
    }
    return status;
  }

 private:
  void tokenize(const oriel_model& model) {
    size_t needed = 0;
    const size_t bytes = sizeof(kText) - 1;
    std::vector<int32_t> ids(2 * bytes + 8);
    if (watch_.ended(oriel_tokenize(&model, kText, bytes, ORIEL_TEXT_SPECIAL, ids.data(),
                                    ids.size(), &needed)) == ORIEL_OK) {
      ASSERT_LE(needed, ids.size());
      std::vector<char> text(needed * 1024 + 1);
      size_t length = 0;
      (void)watch_.ended(oriel_detokenize(&model, ids.data(), needed, ORIEL_TEXT_SPECIAL,
                                          text.data(), text.size(), &length));
    }
  }

  void talk(oriel_model* model) {
    oriel_session* made = nullptr;
    (void)watch_.ended(oriel_session_create(model, nullptr, &made));
    const test::SessionPtr session(made);
    if (!session) {
      return;
    }
    const size_t bytes = sizeof(kText) - 1;
    const uint32_t flags = ORIEL_TEXT_SPECIAL | ORIEL_TEXT_BOS;
    if (watch_.ended(oriel_session_append_text(session.get(), kText, bytes, flags)) == ORIEL_OK) {
      ReplyOptions drawn = test::greedyOptions(kTokens);
      drawn.greedy = 0;
      drawn.seed = 1;
      for (const ReplyOptions& options : {test::greedyOptions(kTokens), drawn}) {
        std::vector<int32_t> ids;
        if (watch_.ended(oriel_session_generate(session.get(), &options, test::keepId, &ids,
                                                nullptr)) != ORIEL_OK) {
          break;
        }
      }
    }
    if (watch_.ended(oriel_chat_add(session.get(), "user", kText, bytes)) == ORIEL_OK) {
      const ReplyOptions reply = test::greedyOptions(kTokens);
      std::vector<int32_t> ids;
      (void)watch_.ended(oriel_chat_reply(session.get(), &reply, test::keepId, &ids, nullptr));
    }
  }

  const char* const path_;
  const uint64_t file_bytes_;
  Watch watch_;
  Options options_;
  bool with_weights_ = true;
};

}  // namespace

oriel_status useModel(const char* path, uint64_t file_bytes, uint32_t choices) {
  return App(path, file_bytes, choices).use();
}

bool withoutWeights(uint32_t choices) { return choices % 4 == 3; }

oriel_status planModel(const char* path, uint64_t file_bytes, uint32_t choices, bool* fits) {
  return App(path, file_bytes, choices).plan(fits);
}

}  // namespace oriel_internal::fuzz
