// Letters from the system's fonts. Characters are added when a text first has them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

struct ImFont;

namespace desktop {

class Fonts {
 public:
  Fonts();

  ImFont* body() const { return body_; }
  ImFont* strong() const { return strong_; }
  ImFont* small() const { return small_; }

  void setScale(float scale);
  /// The text's characters will be there in the next frame.
  void want(const std::string& text);
  /// Makes the fonts anew if something changed; true: it did.
  bool build();
  /// Files that letters come from.
  const std::string& regularFile() const { return regular_file_; }

 private:
  ImFont* add(const std::string& file, float pixels);

  std::string regular_file_;
  std::string strong_file_;
  std::string far_file_;  ///< for characters that the others lack; looked up when one comes
  bool far_looked_up_ = false;
  bool far_wanted_ = false;
  float scale_ = 1;
  bool dirty_ = true;
  std::set<uint32_t> wanted_;
  std::vector<unsigned short> ranges_;  ///< of them, as the fonts were built with
  ImFont* body_ = nullptr;
  ImFont* strong_ = nullptr;
  ImFont* small_ = nullptr;
};

}  // namespace desktop
