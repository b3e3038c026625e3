// What a folder holds, for the file browser; and where programs find the bundled model.
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

/// Folders, then files whose names end in `ending` ("": all); each in order, hidden ones left out. Empty, with *error in
/// words, for a folder that cannot be read.
std::vector<FileEntry> listFolder(const std::string& folder, const std::string& ending,
                                  std::string* error);
std::string parentOf(const std::string& folder);
std::string joinPath(const std::string& folder, const std::string& name);
std::string homeFolder();
/// The small model that comes with the program; "" where it is not beside it.
std::string bundledModel();

}  // namespace desktop
