#include "state_file.h"

#include <nlohmann/json.hpp>

#include "failure.h"
#include "result_file.h"
#include "system.h"

namespace desktop {
namespace {

using Json = nlohmann::json;

Json planJson(const oriel_plan& plan) {
  return {{"fits", plan.fits != 0},
          {"memory_bytes", plan.memory_bytes},
          {"total_bytes", plan.total_bytes},
          {"minimum_bytes", plan.minimum_bytes},
          {"window_tokens", plan.window_tokens},
          {"format", formatName(plan.k_format, plan.v_format)},
          {"loss_nats", plan.loss_nats},
          {"sessions", plan.sessions}};
}

Json chatJson(const ChatState& chat) {
  constexpr const char* kPhases[] = {"idle", "reading", "replying", "moving"};
  Json messages = Json::array();
  for (const Message& message : chat.messages) {
    messages.push_back({{"from_user", message.from_user}, {"text", message.text}});
  }
  return {{"id", chat.id},
          {"title", chat.title},
          {"phase", kPhases[static_cast<int>(chat.phase)]},
          {"messages", messages},
          {"note", chat.note},
          {"saved_as", chat.saved_as},
          {"file", chat.file},
          {"refused_tokens", chat.refused.tokens},
          {"tokens_per_s", chat.tokens_per_s},
          {"position", chat.cache.position},
          {"evicted", chat.cache.evicted},
          {"window_used", chat.cache.window_used},
          {"turns", chat.cache.turns.size()}};
}

}  // namespace

std::string stateJson(const AppState& state, const StateExtras& extras) {
  constexpr const char* kPhases[] = {"none", "loading", "ready"};
  Json chats = Json::array();
  for (const ChatState& chat : state.chats) {
    chats.push_back(chatJson(chat));
  }
  Json plan = planJson(state.model.plan);
  plan["prefix_tokens"] = state.model.prefix_tokens;
  const Json json = {{"version", state.version},
                     {"frames", extras.frames},
                     {"phase", kPhases[static_cast<int>(state.model.phase)]},
                     {"model", state.model.name},
                     {"device", state.model.device},
                     {"plan", plan},
                     {"allocated_bytes", state.model.allocated_bytes},
                     {"resident_bytes", cli::residentBytes()},
                     {"preview", planJson(extras.preview.plan)},
                     {"error", state.error},
                     {"notice", state.notice},
                     {"active", extras.active},
                     {"dark", extras.dark},
                     {"zoom", extras.zoom},
                     {"draft", extras.draft},
                     {"chats", chats},
                     {"widgets", extras.widgets}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

void writeStateFile(const std::string& path, const AppState& state, const StateExtras& extras) {
  try {
    cli::writeResultFile(path, stateJson(state, extras));
  } catch (const cli::Failure&) {
    // The next frame writes it again.
  }
}

}  // namespace desktop
