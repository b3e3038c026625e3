// What a reply has to be like.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "exec/drafts.h"
#include "exec/sampler.h"

namespace oriel_internal {

/// Resolved and checked: no zeros that mean something else, but for max_tokens.
struct GenerateSettings {
  SamplerOptions sampling;
  uint32_t max_tokens = 0;  ///< 0: until it ends by itself
  uint32_t min_tokens = 0;  ///< no stop token and no stop text before; at most max_tokens
  bool ignore_stop = false;
  /// Copied when the reply begins; as StopTexts has them, UTF-8.
  const char* const* stop = nullptr;
  size_t n_stop = 0;
  bool logprobs = false;
  uint32_t top_logprobs = 0;        ///< at most Logprobs::kMostTop
  oriel_part_fn on_part = nullptr;  ///< null: nobody asks what the reply means
  void* part_user = nullptr;
  bool value_parts = false;  ///< also of the values of an answer in JSON
  oriel_step_logits_fn on_logits = nullptr;
  void* logits_user = nullptr;
  uint32_t max_thought_tokens = UINT32_MAX;  ///< as ThoughtCap::start() has it
  float* step_logits =
      nullptr;  ///< room for the logits that on_logits changes, [n_vocab]; null without it
  bool reads_calls = true;  ///< false: what looks like a call is text
  /// The reply has to match what Session::constrained() has compiled, from behind the trigger where there is one.
  bool constrained = false;
  const char* trigger = nullptr;  ///< copied when the reply begins
  size_t trigger_bytes = 0;       ///< at most kMostTriggerBytes
  bool trigger_again = false;     ///< as ConstrainedStart::again
  DraftUse drafts = DraftUse::kAsItPays;
};

}  // namespace oriel_internal
