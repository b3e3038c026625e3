#include "widgets.h"

#include <algorithm>
#include <cmath>

#include "output.h"
#include "system.h"
#include "visual_line.h"

namespace desktop {
namespace {

// 0xRRGGBB
constexpr ImU32 rgb(unsigned value) {
  return IM_COL32(value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff, 255);
}

Theme current;
float scale = 1;

Theme darkTheme() {
  return {
      true,
      rgb(0x15181d),
      rgb(0x1b1f26),
      rgb(0x252b34),
      rgb(0x323a46),
      rgb(0xe7eaee),
      rgb(0x98a2b0),
      rgb(0x4f9cf9),
      rgb(0x0b1420),
      rgb(0x22384f),
      rgb(0x2f5f96),
      rgb(0xf0716b),
      rgb(0x58c48b),
      {rgb(0x4f9cf9), rgb(0x58c48b), rgb(0xe5b454), rgb(0xc586e0), rgb(0x7f8b9b)},
      {rgb(0x4f9cf9), rgb(0x58c48b), rgb(0xe5b454), rgb(0xc586e0), rgb(0x4cc3cf), rgb(0xec8d6a)}};
}

Theme lightTheme() {
  return {
      false,
      rgb(0xffffff),
      rgb(0xf5f7f9),
      rgb(0xe9edf2),
      rgb(0xd3dae2),
      rgb(0x1c232c),
      rgb(0x5d6875),
      rgb(0x1f6fd6),
      rgb(0xffffff),
      rgb(0xe0edfc),
      rgb(0xb4d3f7),
      rgb(0xc23b34),
      rgb(0x1f8a55),
      {rgb(0x3b82dd), rgb(0x35a56c), rgb(0xd29a2b), rgb(0xa45fc4), rgb(0x8a94a1)},
      {rgb(0x3b82dd), rgb(0x35a56c), rgb(0xd29a2b), rgb(0xa45fc4), rgb(0x259aa8), rgb(0xd9693f)}};
}

void setColors(ImGuiStyle* style) {
  ImVec4* colors = style->Colors;
  const Theme& t = current;
  current.dark ? ImGui::StyleColorsDark(style) : ImGui::StyleColorsLight(style);
  colors[ImGuiCol_Text] = asVec(t.text);
  colors[ImGuiCol_TextDisabled] = asVec(t.dim);
  colors[ImGuiCol_WindowBg] = asVec(t.background);
  colors[ImGuiCol_ChildBg] = asVec(faded(t.background, 0));
  colors[ImGuiCol_PopupBg] = asVec(t.panel);
  colors[ImGuiCol_Border] = asVec(t.border);
  colors[ImGuiCol_FrameBg] = asVec(t.raised);
  colors[ImGuiCol_FrameBgHovered] = asVec(t.border);
  colors[ImGuiCol_FrameBgActive] = asVec(t.border);
  colors[ImGuiCol_Button] = asVec(t.raised);
  colors[ImGuiCol_ButtonHovered] = asVec(t.border);
  colors[ImGuiCol_ButtonActive] = asVec(t.selection);
  colors[ImGuiCol_Header] = asVec(t.raised);
  colors[ImGuiCol_HeaderHovered] = asVec(t.border);
  colors[ImGuiCol_HeaderActive] = asVec(t.selection);
  colors[ImGuiCol_SliderGrab] = asVec(t.accent);
  colors[ImGuiCol_SliderGrabActive] = asVec(t.accent);
  colors[ImGuiCol_CheckMark] = asVec(t.accent);
  colors[ImGuiCol_TitleBg] = colors[ImGuiCol_TitleBgActive] = asVec(t.raised);
  colors[ImGuiCol_ScrollbarBg] = asVec(faded(t.background, 0));
  colors[ImGuiCol_ScrollbarGrab] = asVec(t.border);
  colors[ImGuiCol_TextSelectedBg] = asVec(t.selection);
  colors[ImGuiCol_NavHighlight] = asVec(t.accent);
  colors[ImGuiCol_ModalWindowDimBg] = ImVec4(0, 0, 0, t.dark ? 0.55f : 0.3f);
  colors[ImGuiCol_Separator] = asVec(t.border);
}

}  // namespace

const Theme& theme() { return current; }

void useTheme(bool dark, float pixel_scale) {
  scale = pixel_scale;
  current = dark ? darkTheme() : lightTheme();
  ImGuiStyle style;
  setColors(&style);
  style.WindowPadding = ImVec2(14, 12);
  style.FramePadding = ImVec2(10, 6);
  style.ItemSpacing = ImVec2(8, 8);
  style.ItemInnerSpacing = ImVec2(6, 6);
  style.FrameRounding = 6;
  style.GrabRounding = 6;
  style.GrabMinSize = 14;
  style.PopupRounding = 8;
  style.WindowRounding = 8;
  style.ScrollbarRounding = 6;
  style.ScrollbarSize = 11;
  style.WindowBorderSize = 0;
  style.PopupBorderSize = 1;
  style.ScaleAllSizes(scale);
  ImGui::GetStyle() = style;
}

float px(float design_pixels) {
  return static_cast<float>(static_cast<int>(design_pixels * scale + 0.5f));
}

ImVec4 asVec(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

ImU32 faded(ImU32 color, float share) {
  ImVec4 vec = asVec(color);
  vec.w *= share;
  return ImGui::ColorConvertFloat4ToU32(vec);
}

bool button(const Context& context, const char* widget, const std::string& label, bool enabled,
            bool strong, float width) {
  context.frame->fonts().want(label);
  ImGui::BeginDisabled(!enabled);
  if (strong) {
    ImGui::PushStyleColor(ImGuiCol_Button, theme().accent);
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, faded(theme().accent, 0.85f));
    ImGui::PushStyleColor(ImGuiCol_Text, theme().on_accent);
  }
  const bool pressed = ImGui::Button((label + "##" + widget).c_str(), ImVec2(width, 0));
  if (strong) {
    ImGui::PopStyleColor(3);
  }
  ImGui::EndDisabled();
  context.name(widget);
  return pressed;
}

void dimText(const std::string& text) {
  ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(text.c_str(), text.c_str() + text.size());
  ImGui::PopTextWrapPos();
  ImGui::PopStyleColor();
}

void heading(const Context& context, const char* text) {
  ImGui::PushFont(context.frame->fonts().strong());
  ImGui::TextUnformatted(text);
  ImGui::PopFont();
}

std::string fitted(const std::string& text, float width) {
  std::string shown = text;
  while (!shown.empty() && ImGui::CalcTextSize(shown.c_str()).x > width) {
    const size_t end = shown.size() - (shown.size() < text.size() ? 3 : 0);
    shown = text.substr(0, utf8::previous(text, end)) + "...";
    if (end == 0) {
      return "";
    }
  }
  return shown;
}

void rightText(const std::string& text, ImU32 color) {
  ImGui::SameLine();
  const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(room, 0.0f));
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopStyleColor();
}

void stackedBar(const std::vector<Share>& shares, uint64_t total, float height) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(low, ImVec2(low.x + width, low.y + height), theme().raised, px(4));
  double before = 0;
  for (const Share& share : shares) {
    const auto place = [&](double bytes) {
      return low.x + width * static_cast<float>(std::min(1.0, bytes / static_cast<double>(total)));
    };
    const double after = before + static_cast<double>(share.bytes);
    if (total > 0 && place(after) - place(before) >= 0.5f) {
      list.AddRectFilled(ImVec2(place(before), low.y), ImVec2(place(after), low.y + height),
                         share.color, px(3));
    }
    before = after;
  }
  ImGui::Dummy(ImVec2(width, height));
}

namespace {

/// The shown text, and the value of the option.
struct Choice {
  const char* name;
  const char* value;
};
constexpr Choice kFormats[] = {
    {"Automatic", "auto"}, {"f16", "f16"}, {"k8v8", "k8v8"}, {"k8v4", "k8v4"}, {"k4v4", "k4v4"}};
constexpr Choice kDevices[] = {{"Automatic", "auto"}, {"Vulkan", "vulkan"}, {"CPU", "cpu"}};

template <size_t kCount>
void combo(const char* id, const Choice (&choices)[kCount], std::string* value) {
  const auto now = std::find_if(std::begin(choices), std::end(choices),
                                [&](const Choice& choice) { return *value == choice.value; });
  if (ImGui::BeginCombo(id, now == std::end(choices) ? value->c_str() : now->name)) {
    for (const Choice& choice : choices) {
      if (ImGui::Selectable(choice.name)) {
        *value = choice.value;
      }
    }
    ImGui::EndCombo();
  }
}

std::vector<Share> sharesOf(const oriel_plan& plan) {
  return {{"weights", plan.weights_bytes, theme().kinds[0]},
          {"cache", plan.kv_bytes, theme().kinds[1]},
          {"activations", plan.activation_bytes, theme().kinds[2]},
          {"staging", plan.staging_bytes, theme().kinds[3]},
          {"host", plan.host_bytes, theme().kinds[4]}};
}

}  // namespace

void MemoryPanel::setPrompt(const std::string& prompt) { wanted_.system_prompt = prompt; }

void MemoryPanel::apply(const Context& context) { context.engine->load(wanted_); }

void MemoryPanel::load(const Context& context, const std::string& model_path) {
  // The panel shows the model after loading. A failed load changes nothing.
  PlanSettings other = wanted_;
  other.model_path = model_path;
  other.memory_bytes = 0;
  other.mmproj.clear();  // these belong to the other model
  other.adapters.clear();
  context.engine->load(other);
}

void MemoryPanel::see(const Context& context, const std::string& mmproj) {
  PlanSettings other = wanted_;
  other.mmproj = mmproj;
  context.engine->load(other);
}

void MemoryPanel::draw(const Context& context) {
  if (in_force_ != context.state.model.settings) {
    in_force_ = wanted_ = context.state.model.settings;
  }
  heading(context, "Memory");
  if (wanted_.model_path.empty()) {
    dimText("no model is open");
    return;
  }
  if (asked_ != wanted_) {
    asked_ = wanted_;
    context.planner->request(wanted_);
  }
  const PlanPreview preview = context.planner->preview();
  drawSlider(context, preview);
  drawOutcome(context, preview);
  drawChoices(context);
  const bool differs =
      wanted_ != context.state.model.settings &&
      !(wanted_.memory_bytes == 0 && context.state.model.phase == ModelPhase::kNone);
  const bool loading = context.state.model.phase == ModelPhase::kLoading;
  if (button(context, "apply", loading ? "Loading ..." : "Apply", differs && !loading, differs,
             ImGui::GetContentRegionAvail().x)) {
    apply(context);
  }
  ImGui::PushFont(context.frame->fonts().small());
  dimText("Applying loads the model into the new memory. Chats are carried over.");
  ImGui::PopFont();
}

void MemoryPanel::drawSlider(const Context& context, const PlanPreview& preview) {
  // Logarithmic. It begins slightly below the minimum, so that the panel can say what the minimum is.
  const double low = std::log(std::max<double>(1, 0.9 * static_cast<double>(preview.least_bytes)));
  const double high = std::log(std::max<double>(2, 1.02 * static_cast<double>(preview.most_bytes)));
  const uint64_t shown =
      wanted_.memory_bytes != 0 ? wanted_.memory_bytes : preview.plan.memory_bytes;
  const double place = (std::log(std::max<double>(1, static_cast<double>(shown))) - low) /
                       std::max(high - low, 1e-9);
  auto part = static_cast<float>(std::clamp(place, 0.0, 1.0));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  const std::string label = wanted_.memory_bytes == 0
                                ? "half of the free memory: " + cli::formatSize(shown)
                                : cli::formatSize(shown);
  if (ImGui::SliderFloat("##memory", &part, 0, 1, label.c_str())) {
    wanted_.memory_bytes =
        static_cast<uint64_t>(std::exp(low + (high - low) * static_cast<double>(part)));
  }
  context.name("memory");
}

void MemoryPanel::drawOutcome(const Context& context, const PlanPreview& preview) {
  if (!preview.known) {
    dimText(preview.error.empty() ? "planning ..." : preview.error);
    return;
  }
  const oriel_plan& plan = preview.plan;
  const std::vector<Share> shares = sharesOf(plan);
  stackedBar(shares, std::max(plan.total_bytes, std::min(plan.memory_bytes, preview.most_bytes)),
             px(14));
  ImGui::PushFont(context.frame->fonts().small());
  if (plan.fits == 0) {
    ImGui::PushStyleColor(ImGuiCol_Text, theme().bad);
    ImGui::TextWrapped("Does not fit: %s would do.", cli::suggestSize(plan.minimum_bytes).c_str());
    ImGui::PopStyleColor();
  }
  for (const Share& share : shares) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddRectFilled(
        ImVec2(at.x, at.y + px(3)), ImVec2(at.x + px(9), at.y + px(12)), share.color, px(2));
    ImGui::SetCursorScreenPos(ImVec2(at.x + px(15), at.y));
    ImGui::TextUnformatted(share.label.c_str());
    rightText(cli::formatSize(share.bytes), theme().dim);
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(4));
  }
  ImGui::PopFont();
  ImGui::TextUnformatted("Total");
  rightText(cli::formatSize(plan.total_bytes), theme().text);
  ImGui::TextUnformatted("Context");
  rightText(cli::grouped(plan.window_tokens) + " tokens", theme().text);
  ImGui::TextUnformatted("Cache format");
  rightText(formatName(plan.k_format, plan.v_format), theme().text);
  ImGui::TextUnformatted("Expected loss");
  rightText(cli::formatted("%.4f nats", plan.loss_nats), theme().text);
}

void MemoryPanel::drawChoices(const Context& context) {
  const float width = ImGui::GetContentRegionAvail().x * 0.62f;
  const float column = ImGui::GetContentRegionAvail().x - width;
  const auto label = [&](const char* text) {
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(text);
    ImGui::SameLine(column + ImGui::GetStyle().WindowPadding.x);
    ImGui::SetNextItemWidth(width);
  };
  label("Chats");
  int chats = static_cast<int>(wanted_.chats);
  if (ImGui::InputInt("##chats", &chats)) {
    wanted_.chats = static_cast<uint32_t>(std::clamp(chats, 1, 64));
  }
  context.name("chats");
  label("Context");
  int window = static_cast<int>(wanted_.window_tokens);
  const int step = 64, fast = 512;
  if (ImGui::InputScalar("##window", ImGuiDataType_S32, &window, &step, &fast,
                         window == 0 ? "Automatic" : "%d")) {
    wanted_.window_tokens = static_cast<uint32_t>(std::clamp(window, 0, 4194304));
  }
  context.name("window");
  if (ImGui::IsItemHovered()) {
    ImGui::SetTooltip("tokens; 0 is automatic: the largest that fits");
  }
  label("Cache");
  combo("##format", kFormats, &wanted_.kv);
  label("Device");
  combo("##device", kDevices, &wanted_.device);
}

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
