// The bytes of a draft model for a valid target: load, and a reply with its drafts.
#include <memory>

#include "fuzz/fuzz.h"
#include "fuzz/use_model.h"
#include "oriel/advanced.h"
#include "support/options.h"
#include "support/random_families.h"

namespace oriel_internal::fuzz::fuzz_draft {
namespace {

constexpr uint64_t kMemory = 64 << 20;
constexpr uint32_t kTokens = 6;

test::RandomLlama target() {
  test::RandomLlama model = test::randomFamily("gemma4");
  model.rope_freqs.clear();  // random weights are not valid divisors
  return model;
}

const std::vector<uint8_t>& targetBytes() {
  static const std::vector<uint8_t> bytes = target().bytes();
  return bytes;
}

using test::Options;
using test::ReplyOptions;

Options optionsOf(uint32_t choices, const char* draft, Watch* watch) {
  Options options;
  options.device = "cpu";
  options.threads = 1;
  options.memory_bytes = (choices & 1) != 0 ? kMemory : 2 << 20;
  options.window_tokens = (choices & 2) != 0 ? 24 : 100;
  test::setFormats(&options, static_cast<oriel_kv_format>((choices >> 2) % 4),
                   static_cast<oriel_kv_format>((choices >> 4) % 4));
  options.set("speculate", (choices >> 6) % 4);
  if (draft != nullptr) {
    options.set("draft_model", draft);
  }
  const Log log = watch->log();
  options.log = log.callback;
  options.log_user = log.user;
  options.allocator = watch->allocator();
  return options;
}

// Greedy, so drafts change nothing.
std::vector<int32_t> reply(oriel_model* model, Watch* watch) {
  oriel_session* made = nullptr;
  if (watch->ended(oriel_session_create(model, nullptr, &made)) != ORIEL_OK) {
    return {};
  }
  const test::SessionPtr session(made);
  const int32_t prompt[] = {5, 9, 40, 41, 9, 5};
  EXPECT_EQ(ORIEL_OK,
            watch->ended(oriel_session_append(made, prompt, std::size(prompt), nullptr, nullptr)));
  ReplyOptions options = test::greedyOptions(kTokens);
  options.set("ignore_stop", true);
  options.set("draft", "always");
  std::vector<int32_t> ids;
  (void)watch->ended(oriel_session_generate(made, &options, test::keepId, &ids, nullptr));
  return ids;
}

}  // namespace

ORIEL_FUZZ(draft) {
  const ModelInput input(data, size);
  const std::vector<uint8_t> bytes = input.file();
  const InputPath draft("draft");
  const InputPath model("target");
  draft.write(bytes);
  model.write(targetBytes());
  std::vector<int32_t> written[2];
  for (const bool guesses : {false, true}) {
    Watch watch;
    {
      Options options = optionsOf(input.choices, guesses ? draft.c_str() : nullptr, &watch);
      oriel_plan plan = ORIEL_PLAN_INIT;
      const oriel_status planned = watch.ended(oriel_plan_file(model.c_str(), &options, &plan));
      oriel_model* loaded = nullptr;
      const oriel_status status = watch.ended(oriel_model_load(model.c_str(), &options, &loaded));
      EXPECT_EQ(status == ORIEL_OK, loaded != nullptr);
      EXPECT_TRUE(status != ORIEL_OK || (planned == ORIEL_OK && plan.fits != 0)) << planned;
      const test::ModelPtr owner(loaded);
      if (owner) {
        written[guesses] = reply(owner.get(), &watch);
      }
    }
    EXPECT_EQ(0u, watch.ledger().live_bytes);
    watch.expectPeakBelow(kMemory + 2 * bytes.size());
  }
  // With little memory the cache may differ.
  if (!written[1].empty()) {
    pastFirstCheck();
  }
  if ((input.choices & 1) != 0 && !written[1].empty()) {
    EXPECT_EQ(written[0], written[1]);
  }
}

ORIEL_FUZZ_SEEDS(draft) {
  uint32_t choices = 1;
  test::RandomDraft draft(target());
  for (const std::vector<uint8_t>& slides :
       {std::vector<uint8_t>{1, 1, 0}, {1}, {0}, {1, 0, 1, 0, 1, 0}}) {
    draft.slides = slides;
    const std::vector<uint8_t> bytes = draft.writer().build();
    GgufParts parts = takeGgufApart(bytes.data(), bytes.size());
    for (const uint32_t type : {0u, 1u, 30u}) {
      for (GgufParts::Tensor& tensor : parts.tensors) {
        tensor.type = tensor.dims.size() > 1 ? type : 0;
      }
      seeds->push_back(modelInput(choices, parts));
      choices += 0x2b;
    }
  }
  seeds->push_back(modelInput(1, GgufParts()));
}

ORIEL_FUZZ_MUTATE(draft) { return mutateModel(data, size, max_size, seed, Care::kModel); }

}  // namespace oriel_internal::fuzz::fuzz_draft
