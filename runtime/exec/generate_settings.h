// The settings of a reply.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "exec/drafts.h"
#include "exec/sampler.h"

namespace oriel_internal {

/// Resolved and checked. Only max_tokens has a special zero.
struct GenerateSettings {
  SamplerOptions sampling;
  uint32_t max_tokens = 0;  ///< 0: no limit
  uint32_t min_tokens = 0;  ///< minimum before stop tokens and stop texts count; at most max_tokens
  bool ignore_stop = false;
  /// Copied when the reply begins. UTF-8, as in StopTexts.
  const char* const* stop = nullptr;
  size_t n_stop = 0;
  bool logprobs = false;
  uint32_t top_logprobs = 0;        ///< at most Logprobs::kMostTop
  oriel_part_fn on_part = nullptr;  ///< null: the app does not need the reply's parts
  void* part_user = nullptr;
  bool value_parts = false;  ///< also for the values of a JSON answer
  oriel_step_logits_fn on_logits = nullptr;
  void* logits_user = nullptr;
  uint32_t max_thought_tokens = UINT32_MAX;  ///< as in ThoughtCap::start()
  float* step_logits =
      nullptr;  ///< room for the logits that on_logits changes, [n_vocab]; null without it
  bool reads_calls = true;  ///< false: text that looks like a call is plain text
  /// The reply must match the grammar compiled by Session::constrained(), after the trigger if there is one.
  bool constrained = false;
  const char* trigger = nullptr;  ///< copied when the reply begins
  size_t trigger_bytes = 0;       ///< at most kMostTriggerBytes
  bool trigger_again = false;     ///< as in ConstrainedStart::again
  DraftUse drafts = DraftUse::kAsItPays;
};

}  // namespace oriel_internal
