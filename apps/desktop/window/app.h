// The whole window: tabs, the chat in front, the panel beside it, the lines above and below.
#pragma once

#include <map>
#include <string>

#include "chat_pane.h"
#include "context.h"
#include "file_browser.h"
#include "memory_panel.h"

namespace desktop {

struct AppOptions {
  PlanSettings settings;
  bool dark = true;
  std::string state_file;  ///< written after every frame that changed something; "": none
  FrameOptions frame;
};

class App {
 public:
  explicit App(const AppOptions& options);
  /// Until the window is closed.
  void run();

 private:
  void drawFrame(Input* input);
  void shortcuts(const Context& context);
  void drawTop(const Context& context);
  void drawTabs(const Context& context);
  bool drawTab(const Context& context, const ChatState& chat, float width);
  void drawErrors(const Context& context);
  void drawPanel(const Context& context);
  void drawReplySettings(const Context& context);
  void drawPrompt(const Context& context);
  void drawStatus(const Context& context);
  void askForFile(FileBrowser::Purpose purpose, const AppState& state);
  void useFile(const Context& context);
  void chooseChat(const AppState& state);
  void writeState(const AppState& state);

  AppOptions options_;
  Frame frame_;
  Planner planner_;
  Engine engine_;  // calls frame_ and is gone before it
  std::map<std::string, Rectangle> widgets_;
  std::map<int, ChatPane> panes_;
  MemoryPanel memory_;
  FileBrowser browser_;
  ReplySettings reply_;
  char prompt_[8192] = "";
  int active_ = 0;
  int newest_ = 0;
  bool show_panel_ = true;
  std::string written_;
  uint64_t frames_ = 0;
};

}  // namespace desktop
