#include "memory_panel.h"

#include <algorithm>
#include <cmath>

#include "output.h"
#include "sizes.h"
#include "widgets.h"

namespace desktop {
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

}  // namespace desktop
