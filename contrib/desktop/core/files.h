// The state as JSON, for tests that drive the window from outside.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner.h"
#include "state.h"

namespace desktop {

struct StateExtras {
  int active = 0;
  bool dark = false;
  float zoom = 1;
  uint64_t frames = 0;
  std::string draft;
  std::vector<std::string> attached;  ///< pictures of the draft
  PlanPreview preview;
  std::map<std::string, std::array<float, 4>> widgets;  ///< x, y, width, height
};

std::string stateJson(const AppState& state, const StateExtras& extras);
/// Appears whole or not at all.
void writeStateFile(const std::string& path, const AppState& state, const StateExtras& extras);

// Lists folders for the file browser and finds the bundled model.

struct FileEntry {
  std::string name;
  bool folder = false;
  uint64_t bytes = 0;
};

/// Sorted folders, then sorted files with these endings. Hidden entries are left out.
/// If the folder cannot be read, the list is empty and *error gives the reason.
std::vector<FileEntry> listFolder(const std::string& folder,
                                  const std::vector<std::string>& endings, std::string* error);
/// Endings of pictures.
extern const std::vector<std::string> kPictureEndings;

/// By the ending, and the header of a GGUF file.
enum class FileKind { kModel, kEncoder, kAdapter, kPicture };
FileKind kindOf(const std::string& path);
/// Adapters in this folder, sorted.
std::vector<std::string> adaptersIn(const std::string& folder);
/// The file's name without ".gguf".
std::string stemOf(const std::string& path);
bool fileIsThere(const std::string& path);
std::string parentOf(const std::string& folder);
std::string joinPath(const std::string& folder, const std::string& name);
std::string homeFolder();
/// The small model that comes with the program; "" if it is missing.
std::string bundledModel();

}  // namespace desktop
