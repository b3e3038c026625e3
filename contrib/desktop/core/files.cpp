#include "files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "output.h"
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
    messages.push_back(
        {{"from_user", message.from_user}, {"text", message.text}, {"pictures", message.pictures}});
  }
  return {{"id", chat.id},
          {"title", chat.title},
          {"phase", kPhases[static_cast<int>(chat.phase)]},
          {"messages", messages},
          {"note", chat.note},
          {"saved_as", chat.saved_as},
          {"file", chat.file},
          {"adapter", chat.adapter},
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
                     {"attached", extras.attached},
                     {"mmproj", state.model.settings.mmproj},
                     {"adapters", state.model.adapters},
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

namespace fs = std::filesystem;

const std::vector<std::string> kPictureEndings = {".png", ".jpg", ".jpeg", ".PNG", ".JPG", ".JPEG"};

namespace {

bool endsIn(const std::string& name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) {
    return name.size() >= ending.size() &&
           name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
  });
}

/// A text value near the beginning of a GGUF file; "" if it is missing.
std::string headerText(const std::string& head, const std::string& key) {
  const size_t found = head.find(key);
  const size_t at = found + key.size() + 4;  // after the type
  uint64_t bytes = 0;
  if (found == std::string::npos || at + sizeof(bytes) > head.size()) {
    return "";
  }
  std::memcpy(&bytes, &head[at], sizeof(bytes));
  return bytes > 64 ? "" : head.substr(at + sizeof(bytes), static_cast<size_t>(bytes));
}

}  // namespace

FileKind kindOf(const std::string& path) {
  if (endsIn(path, kPictureEndings)) {
    return FileKind::kPicture;
  }
  std::string head(4096, '\0');
  std::ifstream file(fs::u8path(path), std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return headerText(head, "general.type") == "adapter"        ? FileKind::kAdapter
         : headerText(head, "general.architecture") == "clip" ? FileKind::kEncoder
                                                              : FileKind::kModel;
}

std::vector<std::string> adaptersIn(const std::string& folder) {
  std::string error;
  std::vector<std::string> adapters;
  for (const FileEntry& entry : listFolder(folder, {".gguf"}, &error)) {
    const std::string path = joinPath(folder, entry.name);
    if (!entry.folder && kindOf(path) == FileKind::kAdapter) {
      adapters.push_back(path);
    }
  }
  return adapters;
}

std::string stemOf(const std::string& path) { return fs::u8path(path).stem().u8string(); }

bool fileIsThere(const std::string& path) {
  std::error_code code;
  return fs::is_regular_file(fs::u8path(path), code);
}

std::vector<FileEntry> listFolder(const std::string& folder,
                                  const std::vector<std::string>& endings, std::string* error) {
  std::vector<FileEntry> list;
  std::error_code code;
  const auto options = fs::directory_options::skip_permission_denied;
  fs::directory_iterator entries(fs::u8path(folder), options, code);
  *error = code ? folder + " cannot be read: " + code.message() : "";
  for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
    std::error_code unknown;
    const FileEntry entry{entries->path().filename().u8string(), entries->is_directory(unknown),
                          entries->is_regular_file(unknown) ? entries->file_size(unknown) : 0};
    if ((entry.folder || endsIn(entry.name, endings)) && entry.name[0] != '.') {
      list.push_back(entry);
    }
  }
  std::sort(list.begin(), list.end(), [](const FileEntry& a, const FileEntry& b) {
    return a.folder != b.folder ? a.folder : a.name < b.name;
  });
  return list;
}

std::string parentOf(const std::string& folder) {
  return fs::u8path(folder).parent_path().u8string();
}

std::string joinPath(const std::string& folder, const std::string& name) {
  return (fs::u8path(folder) / fs::u8path(name)).u8string();
}

std::string homeFolder() {
  const std::string home = cli::variable("HOME");
  return home.empty() ? "/" : home;
}

std::string bundledModel() {
  const char* const name = "oriel-tiny-q8_0.gguf";
  std::error_code code;
  const fs::path program = cli::executablePath().parent_path();
  const fs::path installed = program / ".." / "share" / "oriel" / "models" / name;
  if (fs::is_regular_file(installed, code)) {
    return installed.lexically_normal().u8string();
  }
  for (fs::path folder = program; !folder.empty() && folder != folder.root_path();
       folder = folder.parent_path()) {
    const fs::path in_sources = folder / "models" / "oriel-tiny" / name;
    if (fs::is_regular_file(in_sources, code)) {
      return in_sources.u8string();
    }
  }
  return "";
}

}  // namespace desktop
