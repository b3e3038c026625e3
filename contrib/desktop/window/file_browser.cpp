#include "file_browser.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sizes.h"
#include "widgets.h"

namespace desktop {
namespace {

const char* titleOf(FileBrowser::Purpose purpose) {
  switch (purpose) {
    case FileBrowser::Purpose::kOpenModel:
      return "Open a model (GGUF)";
    case FileBrowser::Purpose::kRestore:
      return "Restore a conversation";
    default:
      return "Save this conversation";
  }
}

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
  const bool models = purpose_ == Purpose::kOpenModel;
  entries_ = listFolder(folder_, models ? ".gguf" : ".oriel", &error_);
}

FileBrowser::Purpose FileBrowser::draw(const Context& context, std::string* path) {
  const char* const title = titleOf(purpose_);
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
      ImGui::InputText("##path", path_, sizeof(path_), ImGuiInputTextFlags_EnterReturnsTrue);
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
