// Chooses a file from folders or by its path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chat_pane.h"
#include "conversation.h"
#include "files.h"
#include "planner.h"
#include "widgets.h"

namespace desktop {

class FileBrowser {
 public:
  enum class Purpose { kNone, kOpenModel, kRestore, kSave, kPicture, kAdapter };

  /// A file listed above the folder's files.
  struct Offer {
    std::string name;
    std::string path;
    std::string note;
  };

  void open(Purpose purpose, const std::string& path, std::vector<Offer> offers = {});
  bool isOpen() const { return purpose_ != Purpose::kNone; }
  /// The purpose and the path after the user has chosen; otherwise kNone.
  Purpose draw(const Context& context, std::string* path);
  const std::string& error() const { return error_; }

 private:
  void list();
  bool drawEntries(const Context& context);
  bool drawOffers(const Context& context);
  void choose(const std::string& path) { path_[path.copy(path_, sizeof(path_) - 1)] = '\0'; }

  Purpose purpose_ = Purpose::kNone;
  bool opening_ = false;
  std::vector<Offer> offers_;
  std::string folder_;
  char path_[2048] = "";
  std::string error_;
  std::vector<FileEntry> entries_;
};

// The whole window: tabs, front chat, panel, top and bottom lines.

struct AppOptions {
  PlanSettings settings;
  std::optional<bool> dark;  ///< empty: follow the desktop
  bool keeps = true;         ///< save chats, and reopen them at the next start
  std::string state_file;    ///< written after every change; "": none
  FrameOptions frame;
};

class App {
 public:
  explicit App(const AppOptions& options);
  /// Runs until the window is closed.
  void run();

 private:
  void drawFrame(Input* input);
  void shortcuts(const Context& context);
  bool command(const Context& context, const Typed& typed);
  void takeFile(const Context& context, const std::string& path);
  void attach(const Context& context, const std::string& path);
  void stepTab(const AppState& state, int step);
  bool isDark() const;
  bool showsPanel() const { return panel_wish_.value_or(!narrow_); }
  void reopenChats();
  void rememberChats(const AppState& state);
  std::vector<FileBrowser::Offer> offersFor(FileBrowser::Purpose purpose) const;
  void drawTop(const Context& context);
  void drawChat(const Context& context, float width, float height);
  void drawSide(const Context& context, float width, float height);
  void drawTabs(const Context& context);
  bool drawTab(const Context& context, const ChatState& chat, float width);
  void drawAdapters(const Context& context, const ChatState& chat);
  void drawErrors(const Context& context);
  void drawPanel(const Context& context);
  void drawReplySettings(const Context& context);
  void drawPrompt(const Context& context);
  void drawStatus(const Context& context);
  void askForFile(FileBrowser::Purpose purpose, const AppState& state);
  void useFile(const Context& context);
  void chooseChat(const AppState& state);
  void openChat(const AppState& state, const std::string& path);
  void writeState(const AppState& state);

  AppOptions options_;
  Frame frame_;
  Planner planner_;
  Engine engine_;  // calls frame_, so it is destroyed first
  std::map<std::string, Rectangle> widgets_;
  std::map<int, ChatPane> panes_;
  MemoryPanel memory_;
  FileBrowser browser_;
  ReplySettings reply_;
  char prompt_[8192] = "";
  int active_ = 0;
  int newest_ = 0;
  bool narrow_ = false;             ///< too narrow for chat and panel together
  std::optional<bool> panel_wish_;  ///< empty: show the panel unless narrow_
  SystemLook look_;
  std::string last_picture_;
  std::string front_at_start_;  ///< file name of the chat to bring to the front
  WindowMemory remembered_;
  std::string written_;
  uint64_t frames_ = 0;
};

}  // namespace desktop
