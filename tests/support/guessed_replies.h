// Replies written with drafts: their output, and that they allocate nothing.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "device/count_mallocs.h"
#include "support/reply.h"

namespace oriel_internal::test {

/// A reply, token by token.
struct Written {
  std::vector<int32_t> ids;
  std::string text;
  oriel_generation result = {};
  oriel_status status = ORIEL_OK;
  oriel_session* cancels = nullptr;  ///< at token `cancels_at`
  size_t cancels_at = 0;
};

inline Written generate(oriel_session* session, ReplyOptions options, const char* draft,
                        size_t cancels_at = 0) {
  Written written;
  written.result.struct_size = sizeof(written.result);
  written.cancels = cancels_at != 0 ? session : nullptr;
  written.cancels_at = cancels_at;
  options.set("draft", draft);
  written.status = oriel_session_generate(
      session, &options,
      [](const oriel_token_event* event, void* user) {
        Written& w = *static_cast<Written*>(user);
        w.ids.push_back(event->id);
        w.text.append(event->text, event->text_bytes);
        if (w.cancels != nullptr && w.ids.size() == w.cancels_at) {
          oriel_session_cancel(w.cancels);
        }
        return 0;
      },
      &written, &written.result);
  // An incomplete character at the end is reported once more with the last token.
  written.ids.resize(std::min<size_t>(written.ids.size(), written.result.tokens));
  return written;
}
inline Written generate(const Loaded& loaded, const ReplyOptions& options, const char* draft,
                        size_t cancels_at = 0) {
  return generate(loaded.session.get(), options, draft, cancels_at);
}

/// Random weights do not repeat text. With four tokens they do, and the drafts are seldom right.

inline ReplyOptions few(uint64_t seed, uint32_t tokens, bool of_four = true) {
  ReplyOptions options;
  options.max_tokens = tokens;
  options.set("ignore_stop", true);
  options.seed = seed;
  options.temperature = 0.6f;
  if (of_four) {
    addBiases(&options, {{70, 60}, {71, 60}, {72, 60}, {73, 60}});
  }
  return options;
}

/// A reply of 100 tokens with drafts, by a session that wrote one before, allocates nothing.
inline void expectNothingAllocated(const Loaded& loaded) {
  (void)generate(loaded, few(1, 20), "always");
  ReplyOptions sampling = few(2, 100);
  sampling.set("draft", "always");
  oriel_generation result = ORIEL_INIT(oriel_generation);
  const MallocCount count;
  struct Calls {
    const MallocCount* count;
    uint64_t first = 0, last = 0;
  } calls = {&count};
  ASSERT_EQ(ORIEL_OK, oriel_session_generate(
                          loaded.session.get(), &sampling,
                          [](const oriel_token_event*, void* user) {
                            Calls& c = *static_cast<Calls*>(user);
                            c.last = c.count->calls();
                            c.first = c.first == 0 ? c.last + 1 : c.first;
                            return 0;
                          },
                          &calls, &result));
  EXPECT_LT(0u, result.tokens_drafted);
  if (!onVulkan()) {  // a driver's allocations are not the library's
    EXPECT_EQ(calls.first - 1, calls.last);
  }
}

}  // namespace oriel_internal::test
