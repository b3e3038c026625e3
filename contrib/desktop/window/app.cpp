#include "app.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>

#include "files.h"
#include "models/catalogue.h"
#include "output.h"
#include "system.h"
#include "widgets.h"

namespace desktop {
namespace {

constexpr int kSettlingFrames = 3;      // widgets answer a click some frames later
constexpr int kLettersWaitMs = 50;      // between checks for a rebuild of the fonts
constexpr uint32_t kLeastFrameMs = 33;  // replies need not be drawn more often
constexpr float kPanelWidth = 330;
constexpr float kAdapterWidth = 150;
constexpr float kNarrow = 760;
constexpr size_t kMostOffers = 50;

}  // namespace

App::App(const AppOptions& options)
    : options_(options),
      frame_(options.frame),
      planner_([this] { frame_.wake(); }),
      engine_([this] { frame_.wake(); }, options.keeps),
      look_([this] { frame_.wake(); }) {
  memory_.begin(options.settings);
  prompt_[options.settings.system_prompt.copy(prompt_, sizeof(prompt_) - 1)] = '\0';
  reopenChats();
  look_.ask();
  if (!options_.settings.model_path.empty()) {
    engine_.load(options_.settings);
  }
}

void App::run() {
  int settling = kSettlingFrames;
  for (bool open = true; open;) {
    Input input = frame_.wait(settling > 0 ? 0 : frame_.fonts().waits() ? kLettersWaitMs : -1);
    const uint32_t began = SDL_GetTicks();
    settling = input.anything ? kSettlingFrames : std::max(settling - 1, 0);
    open = !input.quit;
    if (input.focused) {
      look_.ask();
    }
    drawFrame(&input);
    const uint32_t took = SDL_GetTicks() - began;
    if (took < kLeastFrameMs) {
      SDL_Delay(kLeastFrameMs - took);
    }
  }
}

void App::drawFrame(Input* input) {
  useTheme(isDark(), frame_.scale());
  frame_.begin();
  ImGui::PushFont(frame_.fonts().body());
  widgets_.clear();
  const Context context{&engine_, &planner_, &frame_, input, engine_.state(), &widgets_};
  chooseChat(context.state);
  shortcuts(context);
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  if (narrow_ != (screen.x < px(kNarrow))) {
    narrow_ = !narrow_;
    panel_wish_.reset();
  }
  ImGui::SetNextWindowPos(ImVec2(0, 0));
  ImGui::SetNextWindowSize(screen);
  constexpr int kFlags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                         ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus;
  ImGui::Begin("all", nullptr, kFlags);
  drawTop(context);
  drawErrors(context);
  const float status = ImGui::GetFontSize() + px(14);
  const float height = ImGui::GetContentRegionAvail().y - status;
  const float width = ImGui::GetContentRegionAvail().x;
  const float panel = !showsPanel() ? 0 : narrow_ ? width : px(kPanelWidth);
  if (panel < width) {
    drawChat(context, width - (panel > 0 ? panel + px(14) : 0), height);
  }
  if (panel > 0) {
    if (panel < width) {
      ImGui::SameLine(0, px(14));
    }
    drawSide(context, panel, height);
  }
  drawStatus(context);
  useFile(context);
  ImGui::End();
  ImGui::PopFont();
  frame_.end(theme().background);
  frames_++;
  rememberChats(context.state);
  writeState(context.state);
}

void App::drawChat(const Context& context, float width, float height) {
  ImGui::BeginChild("left", ImVec2(width, height));
  drawTabs(context);
  if (const ChatState* chat = context.state.chat(active_)) {
    panes_[active_].draw(context, *chat, reply_);
    if (panes_[active_].wantsPicture()) {
      askForFile(FileBrowser::Purpose::kPicture, context.state);
    }
  } else {
    ImGui::Dummy(ImVec2(1, px(30)));
    heading(context, context.state.model.phase == ModelPhase::kLoading ? "Loading the model ..."
                                                                       : "No chat is open");
    dimText("Ctrl+T opens one. Drop a GGUF file here to load it.");
  }
  ImGui::EndChild();
}

void App::drawSide(const Context& context, float width, float height) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, px(8));
  ImGui::BeginChild("panel", ImVec2(width, height), false, ImGuiWindowFlags_AlwaysUseWindowPadding);
  drawPanel(context);
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

bool App::isDark() const { return options_.dark.value_or(look_.dark().value_or(true)); }

void App::reopenChats() {
  if (!options_.keeps) {
    return;
  }
  remembered_ = rememberedWindow();
  PlanSettings& settings = options_.settings;
  if (settings.model_path == remembered_.model) {
    if (settings.mmproj.empty() && fileIsThere(remembered_.mmproj)) {
      settings.mmproj = remembered_.mmproj;
    }
    for (const auto& [file, adapter] : remembered_.adapters) {
      auto& all = settings.adapters;
      if (fileIsThere(adapter) && std::find(all.begin(), all.end(), adapter) == all.end()) {
        all.push_back(adapter);
      }
    }
    memory_.begin(settings);
  }
  const std::vector<KeptChat> kept = keptChats();
  std::vector<KeptChat> open;
  for (const std::string& file : remembered_.open) {
    const auto found = std::find_if(kept.begin(), kept.end(),
                                    [&](const KeptChat& chat) { return chat.file == file; });
    if (found != kept.end()) {
      open.push_back(*found);
      const auto adapter = remembered_.adapters.find(file);
      open.back().adapter = adapter != remembered_.adapters.end() ? adapter->second : "";
    }
  }
  front_at_start_ = remembered_.front;
  engine_.reopen(open);
}

void App::rememberChats(const AppState& state) {
  if (!options_.keeps || state.model.phase != ModelPhase::kReady) {
    return;
  }
  WindowMemory now;
  now.model = state.model.settings.model_path;
  now.mmproj = state.model.settings.mmproj;
  for (const ChatState& chat : state.chats) {
    if (!chat.file.empty()) {
      now.open.push_back(chat.file);
      now.front = chat.id == active_ ? chat.file : now.front;
      if (!chat.adapter.empty()) {
        now.adapters[chat.file] = chat.adapter;
      }
    }
  }
  if (!(now == remembered_)) {
    remembered_ = now;
    rememberWindow(now);
  }
}

void App::chooseChat(const AppState& state) {
  for (const ChatState& chat : state.chats) {
    if (chat.id > newest_) {
      active_ = newest_ = chat.id;  // a new chat comes to the front
    }
  }
  for (const ChatState& chat : state.chats) {
    if (!front_at_start_.empty() && chat.file == front_at_start_) {
      active_ = chat.id;
      front_at_start_.clear();
    }
  }
  if (state.chat(active_) == nullptr) {
    active_ = state.chats.empty() ? 0 : state.chats.back().id;
  }
}

void App::shortcuts(const Context& context) {
  if (!context.input->dropped_file.empty()) {
    takeFile(context, context.input->dropped_file);
  }
  if (browser_.isOpen()) {
    return;
  }
  auto& typed = context.input->typed;
  typed.erase(std::remove_if(typed.begin(), typed.end(),
                             [&](const Typed& one) { return command(context, one); }),
              typed.end());
  const ChatState* chat = context.state.chat(active_);
  const bool seen = !(narrow_ && showsPanel());
  if (chat != nullptr && seen && !ImGui::GetIO().WantTextInput) {
    panes_[active_].type(context, *chat, reply_);
  }
}

/// A file that was dropped on the window.
void App::takeFile(const Context& context, const std::string& path) {
  const FileKind kind = kindOf(path);
  if (kind == FileKind::kPicture) {
    attach(context, path);
  } else if (kind == FileKind::kEncoder) {
    memory_.see(context, path);
  } else if (kind == FileKind::kAdapter) {
    engine_.useAdapter(active_, path);
  } else {
    memory_.load(context, path);
  }
}

void App::attach(const Context& context, const std::string& path) {
  last_picture_ = path;
  if (context.state.model.settings.mmproj.empty()) {
    engine_.fail(
        "this model has no eyes: drop the mmproj file of a model that has some on the window");
  } else if (context.state.chat(active_) == nullptr) {
    engine_.fail("no chat is open: Ctrl+T opens one");
  } else if (frame_.picture(path).texture == nullptr) {
    engine_.fail(frame_.picture(path).error);
  } else {
    panes_[active_].attach(path);
  }
}

/// Runs a keyboard shortcut. False: the key has no shortcut.
bool App::command(const Context& context, const Typed& typed) {
  if (typed.key == SDL_SCANCODE_ESCAPE) {
    engine_.stop(active_);
    return true;
  }
  const struct {
    SDL_Scancode key;
    std::function<void()> run;
  } commands[] = {
      {SDL_SCANCODE_T, [&] { engine_.newChat(); }},
      {SDL_SCANCODE_W, [&] { engine_.closeChat(active_); }},
      {SDL_SCANCODE_S, [&] { askForFile(FileBrowser::Purpose::kSave, context.state); }},
      {SDL_SCANCODE_O, [&] { askForFile(FileBrowser::Purpose::kOpenModel, context.state); }},
      {SDL_SCANCODE_R, [&] { askForFile(FileBrowser::Purpose::kRestore, context.state); }},
      {SDL_SCANCODE_P, [&] { panel_wish_ = !showsPanel(); }},
      {SDL_SCANCODE_TAB, [&] { stepTab(context.state, typed.shift ? -1 : 1); }},
      {SDL_SCANCODE_PAGEUP, [&] { stepTab(context.state, -1); }},
      {SDL_SCANCODE_PAGEDOWN, [&] { stepTab(context.state, 1); }},
      {SDL_SCANCODE_EQUALS, [&] { frame_.setZoom(frame_.zoom() * 1.1f); }},
      {SDL_SCANCODE_KP_PLUS, [&] { frame_.setZoom(frame_.zoom() * 1.1f); }},
      {SDL_SCANCODE_MINUS, [&] { frame_.setZoom(frame_.zoom() / 1.1f); }},
      {SDL_SCANCODE_KP_MINUS, [&] { frame_.setZoom(frame_.zoom() / 1.1f); }},
      {SDL_SCANCODE_0, [&] { frame_.setZoom(1); }},
  };
  for (const auto& one : commands) {
    if (typed.control && typed.key == one.key) {
      one.run();
      return true;
    }
  }
  return false;
}

void App::stepTab(const AppState& state, int step) {
  const int count = static_cast<int>(state.chats.size());
  for (int i = 0; i < count; i++) {
    if (state.chats[static_cast<size_t>(i)].id == active_) {
      active_ = state.chats[static_cast<size_t>((i + step + count) % count)].id;
      return;
    }
  }
}

void App::drawTop(const Context& context) {
  const ModelState& model = context.state.model;
  const float buttons = px(408) + ImGui::GetStyle().WindowPadding.x;
  const float room = ImGui::GetWindowWidth() - buttons - px(28);
  ImGui::AlignTextToFramePadding();
  context.frame->fonts().want(model.name);
  ImGui::PushFont(context.frame->fonts().strong());
  const std::string name = fitted(model.name.empty() ? "Oriel" : model.name, room);
  const float left = room - ImGui::CalcTextSize(name.c_str()).x - px(8);
  ImGui::TextUnformatted(name.c_str());
  ImGui::PopFont();
  if (ImGui::CalcTextSize(model.device.c_str()).x < left) {
    ImGui::SameLine();
    ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
    ImGui::TextUnformatted(model.device.c_str());
    ImGui::PopStyleColor();
  }
  ImGui::SameLine(std::max(ImGui::GetWindowWidth() - buttons, px(60)));
  if (button(context, "open", "Open model", true, false, px(110))) {
    askForFile(FileBrowser::Purpose::kOpenModel, context.state);
  }
  ImGui::SameLine();
  if (button(context, "restore", "Restore", model.phase == ModelPhase::kReady, false, px(82))) {
    askForFile(FileBrowser::Purpose::kRestore, context.state);
  }
  ImGui::SameLine();
  if (button(context, "save", "Save", active_ != 0, false, px(60))) {
    askForFile(FileBrowser::Purpose::kSave, context.state);
  }
  ImGui::SameLine();
  if (button(context, "theme", isDark() ? "Light" : "Dark", true, false, px(60))) {
    options_.dark = !isDark();
  }
  ImGui::SameLine();
  if (button(context, "panel", "Panel", true, false, px(64))) {
    panel_wish_ = !showsPanel();
  }
}

void App::drawTabs(const Context& context) {
  const auto count = static_cast<float>(std::max<size_t>(context.state.chats.size(), 1));
  const float room = ImGui::GetContentRegionAvail().x - px(126 + kAdapterWidth);
  const float width = std::clamp(room / count - px(6), px(60), px(190));
  for (const ChatState& chat : context.state.chats) {
    if (drawTab(context, chat, width)) {
      active_ = chat.id;
    }
    ImGui::SameLine(0, px(6));
  }
  const bool ready = context.state.model.phase == ModelPhase::kReady;
  if (button(context, "new", "+", ready, false, px(34))) {
    engine_.newChat();
  }
  ImGui::SameLine(0, px(6));
  const ChatState* chat = context.state.chat(active_);
  const bool idle = chat != nullptr && chat->phase == ChatPhase::kIdle && ready;
  if (button(context, "fork", "Fork", idle, false, px(60))) {
    engine_.fork(active_);
  }
  if (idle) {
    ImGui::SameLine(0, px(6));
    drawAdapters(context, *chat);
  }
  ImGui::Dummy(ImVec2(1, px(2)));
}

/// The LoRA adapter of the front chat.
void App::drawAdapters(const Context& context, const ChatState& chat) {
  const auto nameOf = [](const std::string& path) {
    return path.empty() ? "No adapter" : stemOf(path);
  };
  context.frame->fonts().want(nameOf(chat.adapter));
  ImGui::SetNextItemWidth(px(kAdapterWidth));
  const bool open = ImGui::BeginCombo("##adapter", fitted(nameOf(chat.adapter), px(110)).c_str());
  context.name("adapter");
  if (!open) {
    return;
  }
  std::vector<std::string> choices = {""};
  choices.insert(choices.end(), context.state.model.adapters.begin(),
                 context.state.model.adapters.end());
  for (const std::string& path : choices) {
    context.frame->fonts().want(nameOf(path));
    const std::string label = nameOf(path) + "##" + path;
    if (ImGui::Selectable(label.c_str(), path == chat.adapter) && path != chat.adapter) {
      engine_.useAdapter(chat.id, path);
    }
    context.name("adapter " + nameOf(path));
  }
  if (ImGui::Selectable("A file ...")) {
    askForFile(FileBrowser::Purpose::kAdapter, context.state);
  }
  context.name("adapter file");
  ImGui::EndCombo();
}

bool App::drawTab(const Context& context, const ChatState& chat, float width) {
  context.frame->fonts().want(chat.title);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = ImGui::GetFrameHeight();
  const std::string id = "tab" + std::to_string(chat.id);
  ImGui::PushID(chat.id);
  ImGui::SetNextItemWidth(width);
  const bool pressed = ImGui::InvisibleButton("tab", ImVec2(width - px(24), height));
  context.name(id);
  const bool hovered = ImGui::IsItemHovered();
  ImGui::SameLine(0, 0);
  const bool closed = ImGui::InvisibleButton("close", ImVec2(px(24), height));
  context.name("close" + std::to_string(chat.id));
  const bool close_hovered = ImGui::IsItemHovered();
  ImGui::PopID();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 high(low.x + width, low.y + height);
  const bool front = chat.id == active_;
  list.AddRectFilled(low, high,
                     front     ? theme().raised
                     : hovered ? theme().panel
                               : theme().background,
                     px(6));
  list.AddRect(low, high, front ? theme().accent : theme().border, px(6));
  const float x = high.x - px(13), y = (low.y + high.y) / 2, d = px(3.5f);
  const ImU32 cross = close_hovered ? theme().bad : theme().dim;
  list.AddLine(ImVec2(x - d, y - d), ImVec2(x + d, y + d), cross, px(1.5f));
  list.AddLine(ImVec2(x - d, y + d), ImVec2(x + d, y - d), cross, px(1.5f));
  float text_x = low.x + px(10);
  if (chat.phase != ChatPhase::kIdle) {
    list.AddCircleFilled(ImVec2(low.x + px(13), y), px(4), theme().good);
    text_x += px(12);
  }
  list.PushClipRect(low, ImVec2(high.x - px(24), high.y), true);
  list.AddText(ImVec2(text_x, low.y + px(6)), front ? theme().text : theme().dim,
               context.frame->fonts().shown(chat.title).c_str());
  list.PopClipRect();
  if (closed) {
    engine_.closeChat(chat.id);
  }
  return pressed;
}

void App::drawErrors(const Context& context) {
  const AppState& state = context.state;
  const bool bad = !state.error.empty();
  if (!bad && state.notice.empty()) {
    return;
  }
  const std::string& line = bad ? state.error : state.notice;
  context.frame->fonts().want(line);
  const float action = bad && (state.device_lost || state.would_do_bytes != 0) ? px(190) : 0;
  const float wrap = ImGui::GetContentRegionAvail().x - px(110) - action;
  const ImVec2 size = ImGui::CalcTextSize(line.c_str(), nullptr, false, wrap);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, faded(bad ? theme().bad : theme().good, 0.18f));
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, px(6));
  ImGui::BeginChild("line", ImVec2(0, size.y + px(20)), false,
                    ImGuiWindowFlags_AlwaysUseWindowPadding | ImGuiWindowFlags_NoScrollbar);
  ImGui::SetCursorPosY(px(10));
  ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + wrap);
  ImGui::TextUnformatted(line.c_str());
  ImGui::PopTextWrapPos();
  ImGui::SameLine(ImGui::GetWindowWidth() - px(86) - action);
  ImGui::SetCursorPosY(px(4));
  if (state.device_lost && button(context, "go_on", "Go on", true, true, px(180))) {
    engine_.goOn();
  } else if (state.would_do_bytes != 0 &&
             button(context, "would_do", "Use " + cli::suggestSize(state.would_do_bytes), true,
                    true, px(180))) {
    // The shown size is rounded up, so that it is enough.
    uint64_t bytes = state.would_do_bytes;
    (void)cli::parseSize(cli::suggestSize(bytes), &bytes);
    memory_.useMemory(bytes);
    memory_.apply(context);
  }
  ImGui::SameLine(ImGui::GetWindowWidth() - px(84));
  ImGui::SetCursorPosY(px(4));
  if (button(context, "dismiss", "Close", true, false, px(74))) {
    bad ? engine_.dismissError() : engine_.dismissNotice();
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

void App::drawPanel(const Context& context) {
  memory_.draw(context);
  ImGui::Separator();
  drawCache(context, context.state.chat(active_));
  ImGui::Separator();
  drawPrompt(context);
  ImGui::Separator();
  drawReplySettings(context);
}

void App::drawPrompt(const Context& context) {
  heading(context, "Shared prompt");
  const float width = ImGui::GetContentRegionAvail().x;
  context.frame->fonts().want(prompt_);
  if (ImGui::InputTextMultiline("##prompt", prompt_, sizeof(prompt_), ImVec2(width, px(64)))) {
    memory_.setPrompt(prompt_);
  }
  context.name("prompt");
  ImGui::PushFont(context.frame->fonts().small());
  const ModelState& model = context.state.model;
  dimText(model.prefix_tokens > 0 ? std::to_string(model.prefix_tokens) + " tokens, held once in " +
                                        cli::formatSize(model.prefix_bytes) + " for all chats."
                                  : "Every chat begins with it. Apply makes it count.");
  ImGui::PopFont();
}

void App::drawReplySettings(const Context& context) {
  heading(context, "Replies");
  ImGui::PushItemWidth(ImGui::GetContentRegionAvail().x * 0.55f);
  ImGui::SliderFloat("Temperature", &reply_.temperature, 0, 2, "%.2f");
  context.name("temperature");
  ImGui::SliderInt("Top k", &reply_.top_k, 0, 200, reply_.top_k == 0 ? "all" : "%d");
  ImGui::SliderFloat("Top p", &reply_.top_p, 0.01f, 1, "%.2f");
  ImGui::SliderFloat("Min p", &reply_.min_p, 0, 0.5f, "%.2f");
  ImGui::SliderFloat("Repeat", &reply_.repeat_penalty, 1, 1.5f, "%.2f");
  ImGui::InputInt("Max tokens", &reply_.max_tokens, 32, 256);
  ImGui::InputInt("Seed", &reply_.seed);
  ImGui::PopItemWidth();
  reply_.max_tokens = std::max(reply_.max_tokens, 0);
  reply_.seed = std::max(reply_.seed, 0);
}

void App::drawStatus(const Context& context) {
  const ModelState& model = context.state.model;
  std::string left;
  if (model.phase == ModelPhase::kLoading) {
    left =
        "loading " + cli::formatSize(model.load_done) + " of " + cli::formatSize(model.load_total);
  } else if (const ChatState* chat = context.state.chat(active_)) {
    if (chat->tokens_per_s > 0) {
      left = cli::formatted("%.1f tokens/s   first token %.0f ms   ", chat->tokens_per_s,
                            chat->first_token_ms);
    }
    left += "context " + cli::grouped(chat->cache.window_used) + " of " +
            cli::grouped(chat->cache.window_capacity);
  }
  ImGui::SetCursorPosY(ImGui::GetWindowHeight() - ImGui::GetFontSize() - px(8));
  ImGui::PushFont(context.frame->fonts().small());
  ImGui::PushStyleColor(ImGuiCol_Text, theme().dim);
  ImGui::TextUnformatted(left.c_str());
  context.name("status");
  ImGui::PopStyleColor();
  // Shows the longest text that fits.
  const std::string process = "process " + cli::formatSize(cli::residentBytes());
  const std::string right = "model " + cli::formatSize(model.plan.total_bytes) + " planned, " +
                            cli::formatSize(model.allocated_bytes) + " allocated   " + process;
  const float room =
      ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(left.c_str()).x - px(20);
  for (const std::string& text : {right, process}) {
    if (ImGui::CalcTextSize(text.c_str()).x <= room) {
      rightText(text, theme().dim);
      break;
    }
  }
  ImGui::PopFont();
}

/// Pulled models, or stored chats.
std::vector<FileBrowser::Offer> App::offersFor(FileBrowser::Purpose purpose) const {
  std::vector<FileBrowser::Offer> offers;
  if (purpose == FileBrowser::Purpose::kOpenModel) {
    for (const cli::StoredModel& model : cli::storedModels()) {
      offers.push_back({model.name, model.path, cli::formatSize(model.bytes)});
    }
  } else if (purpose == FileBrowser::Purpose::kRestore && options_.keeps) {
    for (const KeptChat& chat : keptChats()) {
      if (offers.size() < kMostOffers) {
        offers.push_back({chat.title, chat.file, cli::countOf(chat.messages.size(), "message")});
      }
    }
  }
  return offers;
}

void App::askForFile(FileBrowser::Purpose purpose, const AppState& state) {
  if (purpose == FileBrowser::Purpose::kSave && active_ == 0) {
    return;
  }
  std::string path = joinPath(homeFolder(), "");
  const ChatState* chat = state.chat(active_);
  const bool beside_model =
      purpose == FileBrowser::Purpose::kOpenModel || purpose == FileBrowser::Purpose::kAdapter;
  if (beside_model && !memory_.wanted().model_path.empty()) {
    path = memory_.wanted().model_path;
  } else if (purpose == FileBrowser::Purpose::kPicture && !last_picture_.empty()) {
    path = last_picture_;
  } else if (purpose == FileBrowser::Purpose::kSave && chat != nullptr) {
    path = chat->saved_as.empty()
               ? joinPath(homeFolder(), "chat-" + std::to_string(chat->id) + ".oriel")
               : chat->saved_as;
  }
  browser_.open(purpose, path, offersFor(purpose));
}

void App::useFile(const Context& context) {
  if (!browser_.isOpen()) {
    return;
  }
  std::string path;
  switch (browser_.draw(context, &path)) {
    case FileBrowser::Purpose::kOpenModel:
      memory_.load(context, path);
      break;
    case FileBrowser::Purpose::kRestore:
      openChat(context.state, path);
      break;
    case FileBrowser::Purpose::kSave:
      engine_.save(active_, path);
      break;
    case FileBrowser::Purpose::kPicture:
      attach(context, path);
      break;
    case FileBrowser::Purpose::kAdapter:
      engine_.useAdapter(active_, path);
      break;
    default:
      break;
  }
}

/// `path` is the name of a stored chat, or the path of a snapshot.
void App::openChat(const AppState& state, const std::string& path) {
  for (const ChatState& chat : state.chats) {
    if (chat.file == path) {
      active_ = chat.id;
      return;
    }
  }
  for (const KeptChat& kept : keptChats()) {
    if (kept.file == path) {
      return engine_.reopen({kept});
    }
  }
  engine_.restore(path);
}

void App::writeState(const AppState& state) {
  if (options_.state_file.empty()) {
    return;
  }
  StateExtras extras;
  extras.active = active_;
  extras.dark = isDark();
  extras.zoom = frame_.zoom();
  extras.frames = frames_;
  extras.draft = panes_.count(active_) != 0 ? panes_[active_].draft() : "";
  extras.attached = panes_.count(active_) != 0 ? panes_[active_].attached() : extras.attached;
  extras.preview = planner_.preview();
  for (const auto& entry : widgets_) {
    const Rectangle& r = entry.second;
    extras.widgets[entry.first] = {r.x, r.y, r.width, r.height};
  }
  writeStateFile(options_.state_file, state, extras);
}

namespace {

/// By purpose.
const struct {
  const char* title;
  std::vector<std::string> endings;
} kLists[] = {{"", {}},
              {"Open a model (GGUF)", {".gguf"}},
              {"Restore a conversation", {".oriel"}},
              {"Save this conversation", {".oriel"}},
              {"Show a picture", kPictureEndings},
              {"Use an adapter (GGUF)", {".gguf"}}};

}  // namespace

void FileBrowser::open(Purpose purpose, const std::string& path, std::vector<Offer> offers) {
  purpose_ = purpose;
  offers_ = std::move(offers);
  opening_ = true;
  folder_ = parentOf(path).empty() ? homeFolder() : parentOf(path);
  choose(path);
  list();
}

void FileBrowser::list() {
  entries_ = listFolder(folder_, kLists[static_cast<int>(purpose_)].endings, &error_);
}

FileBrowser::Purpose FileBrowser::draw(const Context& context, std::string* path) {
  const char* const title = kLists[static_cast<int>(purpose_)].title;
  if (opening_) {
    ImGui::OpenPopup(title);
  }
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowSize(
      ImVec2(std::min(px(620), screen.x - px(40)), std::min(px(440), screen.y - px(40))));
  ImGui::SetNextWindowPos(ImVec2(screen.x / 2, screen.y / 2), 0, ImVec2(0.5f, 0.5f));
  Purpose chosen = Purpose::kNone;
  if (!ImGui::BeginPopupModal(title, nullptr,
                              ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove)) {
    return chosen;
  }
  if (opening_) {
    ImGui::SetKeyboardFocusHere();
  }
  opening_ = false;
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  bool accepted =
      ImGui::InputText("##path", path_, sizeof(path_),
                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  context.name("path");
  accepted = drawOffers(context) || accepted;
  accepted = drawEntries(context) || accepted;
  const bool saves = purpose_ == Purpose::kSave;
  accepted = button(context, "accept", saves ? "Save" : "Open", path_[0] != '\0', true, px(110)) ||
             accepted;
  ImGui::SameLine();
  bool closed = button(context, "cancel", "Cancel", true, false, px(110));
  for (const Typed& typed : context.input->typed) {
    closed = closed || typed.key == SDL_SCANCODE_ESCAPE;
  }
  if (accepted && path_[0] != '\0') {
    *path = path_;
    chosen = purpose_;
    closed = true;
  }
  if (closed) {
    purpose_ = Purpose::kNone;
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndPopup();
  return chosen;
}

/// A single click chooses an offer.
bool FileBrowser::drawOffers(const Context& context) {
  if (offers_.empty()) {
    return false;
  }
  bool accepted = false;
  dimText(purpose_ == Purpose::kOpenModel ? "Pulled models" : "Chats that were kept");
  const auto lines = static_cast<float>(std::min<size_t>(offers_.size(), 6));
  ImGui::BeginChild("offers", ImVec2(0, lines * ImGui::GetTextLineHeightWithSpacing() + px(16)),
                    true);
  for (const Offer& offer : offers_) {
    context.frame->fonts().want(offer.name);
    const std::string shown = context.frame->fonts().shown(offer.name);
    if (ImGui::Selectable((shown + "##" + offer.path).c_str(), false,
                          ImGuiSelectableFlags_DontClosePopups)) {
      choose(offer.path);
      accepted = true;
    }
    context.name("offer " + offer.name);
    rightText(offer.note, theme().dim);
  }
  ImGui::EndChild();
  return accepted;
}

bool FileBrowser::drawEntries(const Context& context) {
  bool accepted = false;
  std::string enter;
  dimText(folder_);
  const float height = ImGui::GetContentRegionAvail().y - ImGui::GetFrameHeightWithSpacing();
  ImGui::BeginChild("entries", ImVec2(0, height), true);
  if (ImGui::Selectable("..", false, ImGuiSelectableFlags_DontClosePopups)) {
    enter = parentOf(folder_);
  }
  for (const FileEntry& entry : entries_) {
    context.frame->fonts().want(entry.name);
    const std::string label = entry.folder ? entry.name + "/" : entry.name;
    if (ImGui::Selectable(
            label.c_str(), false,
            ImGuiSelectableFlags_DontClosePopups | ImGuiSelectableFlags_AllowDoubleClick)) {
      const std::string path = joinPath(folder_, entry.name);
      choose(path);
      accepted = !entry.folder && ImGui::IsMouseDoubleClicked(0);
      enter = entry.folder ? path : "";
    }
    if (!entry.folder) {
      rightText(cli::formatSize(entry.bytes), theme().dim);
    }
  }
  if (!error_.empty()) {
    dimText(error_);
  }
  ImGui::EndChild();
  if (!enter.empty()) {
    folder_ = enter;
    list();
  }
  return accepted;
}

}  // namespace desktop
