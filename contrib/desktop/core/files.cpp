#include "files.h"

#include <algorithm>
#include <filesystem>

#include "system.h"

namespace desktop {

namespace fs = std::filesystem;

std::vector<FileEntry> listFolder(const std::string& folder, const std::string& ending,
                                  std::string* error) {
  std::vector<FileEntry> list;
  std::error_code code;
  const auto options = fs::directory_options::skip_permission_denied;
  fs::directory_iterator entries(fs::u8path(folder), options, code);
  *error = code ? folder + " cannot be read: " + code.message() : "";
  for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
    std::error_code unknown;
    const FileEntry entry{entries->path().filename().u8string(), entries->is_directory(unknown),
                          entries->is_regular_file(unknown) ? entries->file_size(unknown) : 0};
    const size_t tail = ending.size();
    const bool wanted =
        entry.folder || (entry.name.size() >= tail &&
                         entry.name.compare(entry.name.size() - tail, tail, ending) == 0);
    if (wanted && entry.name[0] != '.') {
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
