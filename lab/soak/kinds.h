// The models of the soak in order, with their options.
#pragma once

#include "support/options.h"

namespace oriel_internal::test {

struct SoakKind {
  const char* name;
  const char* model;  ///< a file in the source tree, or a family of random models
  void (*set)(Options*);
  bool constrained = false;  ///< replies may be constrained
  bool forgets = false;      ///< evicted text may be forgotten
};

inline constexpr char kSoakPrompt[] = "You are a kind assistant. Tell the truth.";
inline constexpr char kBundled[] = "models/oriel-tiny/oriel-tiny-q8_0.gguf";

inline constexpr SoakKind kSoakKinds[] = {
    {"plain", kBundled, [](Options*) {}},
    {"low-bit", kBundled, [](Options* options) { options->set("kv", "k8v4"); }},
    {"recall", kBundled, [](Options* options) { options->set("retrieval", 512u << 10); }},
    {"prefix", kBundled, [](Options* options) { options->system_prompt = kSoakPrompt; }},
    {"guesses", kBundled,
     [](Options* options) {
       options->sessions = 1;
       options->set("speculate", 4);
     }},
    {"sliding", "tests/data/models/gemma3.gguf", [](Options*) {}},
    {"sliding-shared", "gemma4", [](Options*) {}},
    {"convolutions", "tests/data/models/lfm2-q4_0.gguf", [](Options*) {}, false, true},
    {"states", "qwen35", [](Options* options) { options->set("checkpoints", 2); }, false, true},
    {"states-in-int8", "falcon-h1",
     [](Options* options) {
       options->set("checkpoints", 1);
       options->set("state", "int8");
     },
     false, true},
    {"latents", "deepseek2", [](Options*) {}},
    {"experts-on-file", "tests/data/models/lfm2moe-q4_0.gguf",
     [](Options* options) { options->set("offload", "all"); }, false, true},
    {"forms", "tests/data/models/granite-nope.gguf",
     [](Options* options) { options->set("constraints", true); }, true},
};

}  // namespace oriel_internal::test
