#include "chat/lost_device.h"

#include <oriel/sessions.h>

#include <algorithm>

namespace cli {
namespace {

/// From number `first` on, as far as they follow each other, but none from `end` on.
void addTokens(const Session& session, uint64_t first, uint64_t end, std::vector<int32_t>* ids) {
  if (first >= end) {
    return;
  }
  size_t needed = 0;
  (void)oriel_session_get_tokens(session.get(), first, nullptr, 0, &needed);
  std::vector<int32_t> run(needed);
  session.check(oriel_session_get_tokens(session.get(), first, run.data(), run.size(), &needed));
  run.resize(static_cast<size_t>(std::min<uint64_t>(needed, end - first)));
  ids->insert(ids->end(), run.begin(), run.end());
}

/// What of the tokens from `begin` to `end` is held. Where some were forgotten they are missing.
std::vector<int32_t> heldTokens(const Session& session, uint64_t begin, uint64_t end) {
  oriel_view view = {};
  view.struct_size = sizeof(view);
  session.check(oriel_session_get_view(session.get(), &view));
  std::vector<int32_t> ids;
  if (view.first_stored > view.sinks_used) {
    addTokens(session, begin, std::min<uint64_t>(view.sinks_used, end), &ids);
    addTokens(session, std::max<uint64_t>(view.first_stored, begin), end, &ids);
  } else {
    addTokens(session, begin, end, &ids);
  }
  return ids;
}

/// How the format ends a reply: what is the same behind two that differ.
std::vector<int32_t> replyEnd(const Model& model, const ChatFormatOptions& chat) {
  const auto rendered = [&](const char* reply) {
    return model.renderedIds(chat, {{"user", "?"}, {"assistant", reply}}, false, ORIEL_TEXT_BOS);
  };
  const std::vector<int32_t> one = rendered("1");
  const std::vector<int32_t> two = rendered("2");
  const auto differ = std::mismatch(one.rbegin(), one.rend(), two.rbegin(), two.rend());
  return {differ.first.base(), one.end()};
}

bool hasTurnBefore(const Session& session, uint64_t end) {
  uint64_t starts[256] = {};
  size_t count = 0;
  session.check(oriel_session_get_turns(session.get(), starts, 256, &count));
  return count != 0 && starts[0] < end;
}

}  // namespace

bool deviceLost(const Session& session) {
  const oriel_status status = oriel_session_append(session.get(), nullptr, 0);
  return status == ORIEL_ERROR_DEVICE || status == ORIEL_ERROR_TIMEOUT;
}

std::vector<int32_t> tokensToKeep(const Model& model, const ChatFormatOptions& chat,
                                  const Session& session, uint64_t end) {
  oriel_prefix_info prefix = {};
  prefix.struct_size = sizeof(prefix);
  session.check(oriel_prefix_get_info(model.get(), &prefix));
  if (end <= prefix.tokens || !hasTurnBefore(session, end)) {
    return {};
  }
  std::vector<int32_t> ids = heldTokens(session, prefix.tokens, end);
  const std::vector<int32_t> closing = replyEnd(model, chat);
  ids.insert(ids.end(), closing.begin(), closing.end());
  return ids;
}

void loadOnCpu(CommonOptions options, uint32_t pinned_tokens, Model* model) {
  options.device = ORIEL_DEVICE_CPU;
  options.device_number = 0;
  options.min_tokens_per_s = 0;
  options.memory_bytes = model->plan().memory_bytes;
  model->loadAgain(options, pinned_tokens);
}

}  // namespace cli
