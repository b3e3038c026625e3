// The system's fonts. Characters are added on first use.
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
  /// Adds the text's characters within the next frames.
  void want(const std::string& text);
  /// Maps a Unicode character to a 16-bit character of the fonts.
  unsigned short glyph(uint32_t character) const;
  /// Maps a text to glyphs in display order, for Dear ImGui's widgets.
  std::string shown(const std::string& text) const;
  /// Rebuilds the fonts after a change. True: they were rebuilt. New characters wait, so that rebuilding
  /// takes at most a quarter of the time.
  bool build();
  /// For a result that exceeds the texture limit: rebuilds with half the characters, which is the limit until
  /// the scale changes. False: only the first characters are left.
  bool buildFewer();
  /// True while characters wait.
  bool waits() const { return dirty_; }
  /// The body font's file.
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
  std::string far_file_;  ///< fallback for other characters; looked up on first use
  bool far_looked_up_ = false;
  bool far_wanted_ = false;
  float scale_ = 1;
  bool dirty_ = true;
  std::chrono::steady_clock::time_point next_build_;
  std::map<std::string, std::string> files_;  ///< bytes by path
  std::set<uint32_t> wanted_;
  /// Characters beyond U+FFFF, mapped to private-use characters.
  std::map<uint32_t, unsigned short> emoji_;
  std::string emoji_file_;  ///< fallback for emoji; looked up on first use
  bool emoji_looked_up_ = false;
  struct Outline;
  std::vector<Outline> outlines_;          ///< emoji of the current build
  size_t first_count_ = 0;                 ///< number of characters at the start
  size_t most_ = static_cast<size_t>(-1);  ///< limit on characters, by the texture
  std::vector<unsigned short> ranges_;     ///< character ranges of the current build
  ImFont* body_ = nullptr;
  ImFont* strong_ = nullptr;
  ImFont* small_ = nullptr;
  ImFont* mono_ = nullptr;
};

}  // namespace desktop
