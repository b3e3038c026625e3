#include "cache_view.h"

#include <algorithm>

#include "sizes.h"
#include "widgets.h"

namespace desktop {
namespace {

void drawStretch(const CacheStretch& stretch, ImVec2 low, float height, float per_token) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 a(low.x + per_token * static_cast<float>(stretch.begin), low.y);
  const ImVec2 b(low.x + per_token * static_cast<float>(stretch.end), low.y + height);
  const size_t colors = std::size(theme().turns);
  const ImU32 color = stretch.kind == CacheStretch::kSinks ? theme().text
                      : stretch.kind == CacheStretch::kEvicted
                          ? theme().border
                          : theme().turns[stretch.turn % colors];
  list.AddRectFilled(a, ImVec2(std::max(b.x, a.x + 1), b.y), color);
  if (stretch.kind == CacheStretch::kEvicted) {
    for (float x = a.x; x + height < b.x; x += px(7)) {
      list.AddLine(ImVec2(x, b.y), ImVec2(x + height, a.y), theme().panel, px(1));
    }
  }
}

/// The ring as slots, with the visible tokens marked.
void drawRing(const CacheState& cache, ImVec2 low, float width, float height) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const double share = cache.window_capacity == 0
                           ? 0
                           : static_cast<double>(cache.window_used) / cache.window_capacity;
  list.AddRectFilled(low, ImVec2(low.x + width, low.y + height), theme().raised, px(3));
  list.AddRectFilled(
      low, ImVec2(low.x + width * static_cast<float>(std::min(share, 1.0)), low.y + height),
      theme().accent, px(3));
}

}  // namespace

void drawCache(const Context& context, const ChatState* chat) {
  heading(context, "Cache of this chat");
  if (chat == nullptr) {
    dimText("no chat is open");
    return;
  }
  const CacheState& cache = chat->cache;
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = px(26);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled(low, ImVec2(low.x + width, low.y + height),
                                            theme().raised);
  const uint64_t span = std::max<uint64_t>(cache.position, cache.window_capacity);
  for (const CacheStretch& stretch : stretchesOf(cache)) {
    drawStretch(stretch, low, height, span == 0 ? 0 : width / static_cast<float>(span));
  }
  ImGui::Dummy(ImVec2(width, height));
  context.name("cache");
  drawRing(cache, ImGui::GetCursorScreenPos(), width, px(5));
  ImGui::Dummy(ImVec2(width, px(5)));
  ImGui::PushFont(context.frame->fonts().small());
  dimText(cli::grouped(cache.position) + " tokens, " + cli::grouped(cache.evicted) +
          " evicted. The first " + cli::grouped(cache.sinks_used) +
          " always stay. Each colour is a turn.");
  ImGui::PopFont();
}

}  // namespace desktop
