// Lists folders for the file browser and finds the bundled model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace desktop {

struct FileEntry {
  std::string name;
  bool folder = false;
  uint64_t bytes = 0;
};

/// Sorted folders, then sorted files with names ending in `ending` ("": all). Hidden entries are left out.
/// If the folder cannot be read, the list is empty and *error gives the reason.
std::vector<FileEntry> listFolder(const std::string& folder, const std::string& ending,
                                  std::string* error);
std::string parentOf(const std::string& folder);
std::string joinPath(const std::string& folder, const std::string& name);
std::string homeFolder();
/// The small model that comes with the program; "" if it is missing.
std::string bundledModel();

}  // namespace desktop
