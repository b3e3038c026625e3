// Letters from the system's fonts. Characters are added when a text first has them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

struct ImFont;

namespace desktop {

class Fonts {
 public:
  Fonts();
  ~Fonts();

  ImFont* body() const { return body_; }
  ImFont* strong() const { return strong_; }
  ImFont* small() const { return small_; }
  ImFont* mono() const { return mono_; }

  void setScale(float scale);
  /// The text's characters will be there in one of the next frames.
  void want(const std::string& text);
  /// Maps a Unicode character to a 16-bit character of the fonts.
  unsigned short glyph(uint32_t character) const;
  /// The text in those characters and in display order, for Dear ImGui's widgets.
  std::string shown(const std::string& text) const;
  /// Makes the fonts anew if something changed; true: it did. New characters wait, so that this takes a quarter of the time
  /// at most.
  bool build();
  /// What was built is too large for a texture: makes half as many, and no more until the scale changes. False: only those
  /// of the beginning are left.
  bool buildFewer();
  /// Characters are still to come.
  bool waits() const { return dirty_; }
  /// Files that letters come from.
  const std::string& regularFile() const { return regular_file_; }

 private:
  void buildNow();
  ImFont* add(const std::string& file, float pixels);
  std::string* bytesOf(const std::string& file);
  void want(uint32_t character);
  float sizeOf(float pixels) const;
  void addEmoji();
  void drawEmoji();

  std::string regular_file_;
  std::string strong_file_;
  std::string mono_file_;
  std::string far_file_;  ///< for characters that the others lack; looked up when one comes
  bool far_looked_up_ = false;
  bool far_wanted_ = false;
  float scale_ = 1;
  bool dirty_ = true;
  std::chrono::steady_clock::time_point next_build_;
  std::map<std::string, std::string> files_;  ///< that were read, and their bytes
  std::set<uint32_t> wanted_;
  /// Characters beyond U+FFFF, mapped to private-use characters.
  std::map<uint32_t, unsigned short> emoji_;
  std::string emoji_file_;  ///< fallback for emoji; looked up on first use
  bool emoji_looked_up_ = false;
  struct Outline;
  std::vector<Outline> outlines_;          ///< emoji of the current build
  size_t first_count_ = 0;                 ///< of characters that are there from the beginning
  size_t most_ = static_cast<size_t>(-1);  ///< characters that a texture holds, as far as is known
  std::vector<unsigned short> ranges_;     ///< of them, as the fonts were built with
  ImFont* body_ = nullptr;
  ImFont* strong_ = nullptr;
  ImFont* small_ = nullptr;
  ImFont* mono_ = nullptr;
};

}  // namespace desktop
