// Chooses a file from folders or by its path.
#pragma once

#include <string>
#include <vector>

#include "context.h"
#include "files.h"

namespace desktop {

class FileBrowser {
 public:
  enum class Purpose { kNone, kOpenModel, kRestore, kSave };

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

}  // namespace desktop
