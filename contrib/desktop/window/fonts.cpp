#include "fonts.h"

#include <imgui.h>
#include <stb_truetype.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "visual_line.h"

namespace desktop {
namespace {

constexpr float kBodyPixels = 16;
constexpr float kSmallPixels = 13;
constexpr float kMonoPixels = 14.5f;
constexpr uint32_t kLastCharacter = 0xffff;  // of this build of Dear ImGui
constexpr uint32_t kFirstPrivate = 0xe000;
constexpr uint32_t kLastPrivate = 0xf8ff;
constexpr unsigned short kReplacement = 0xfffd;
constexpr uint32_t kFirstFar = 0x2e80;  // East Asian scripts begin here

/// The font file that fontconfig finds for a pattern; "" on failure.
std::string askFontconfig(const char* pattern) {
#ifdef _WIN32
  (void)pattern;
  return "";
#else
  const std::string command = std::string("fc-match -f '%{file}' '") + pattern + "' 2>/dev/null";
  std::string file;
  if (std::FILE* pipe = popen(command.c_str(), "r")) {
    char buffer[1024];
    const size_t bytes = std::fread(buffer, 1, sizeof(buffer), pipe);
    file.assign(buffer, bytes);
    pclose(pipe);
  }
  return file;
#endif
}

/// The first readable outline font.
std::string firstFont(std::initializer_list<std::string> files) {
  for (const std::string& file : files) {
    std::error_code code;
    const std::string ending = std::filesystem::u8path(file).extension().u8string();
    if ((ending == ".ttf" || ending == ".otf" || ending == ".ttc") &&
        std::filesystem::is_regular_file(std::filesystem::u8path(file), code)) {
      return file;
    }
  }
  return "";
}

std::vector<ImWchar> rangesOf(const std::set<uint32_t>& characters) {
  std::vector<ImWchar> ranges;
  for (const uint32_t c : characters) {
    const auto character = static_cast<ImWchar>(c);
    if (!ranges.empty() && ranges.back() + 1 == character) {
      ranges.back() = character;
    } else {
      ranges.insert(ranges.end(), {character, character});
    }
  }
  ranges.push_back(0);
  return ranges;
}

}  // namespace

Fonts::Fonts()
    : regular_file_(firstFont(
          {"/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
           "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", askFontconfig("sans:style=Regular"),
           "/System/Library/Fonts/Helvetica.ttc", "C:/Windows/Fonts/segoeui.ttf"})),
      strong_file_(
          firstFont({"/usr/share/fonts/truetype/noto/NotoSans-Bold.ttf",
                     "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
                     askFontconfig("sans:bold"), "C:/Windows/Fonts/segoeuib.ttf", regular_file_})),
      mono_file_(firstFont({"/usr/share/fonts/truetype/noto/NotoSansMono-Regular.ttf",
                            "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
                            askFontconfig("monospace"), "/System/Library/Fonts/Menlo.ttc",
                            "C:/Windows/Fonts/consola.ttf", regular_file_})) {
  for (uint32_t c = 0x20; c < 0x17f; c++) {
    if (c < 0x7f || c >= 0xa0) {
      wanted_.insert(c);
    }
  }
  wanted_.insert({0x2013, 0x2014, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2026, 0x20ac, 0xfffd});
  first_count_ = wanted_.size();
}

void Fonts::setScale(float scale) {
  if (scale != scale_) {
    scale_ = scale;
    dirty_ = true;
    next_build_ = {};
    most_ = static_cast<size_t>(-1);
  }
}

void Fonts::want(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    want(utf8::decode(text, at, &at));
  }
  for (size_t begin = 0; begin < text.size();) {
    const Line line = {begin, std::min(text.find('\n', begin), text.size())};
    if (hasLeftwards(text, line)) {
      for (const VisualCharacter& one : visualLine(text, line).characters) {
        want(one.character);  // joined forms
      }
    }
    begin = line.end + 1;
  }
}

void Fonts::want(uint32_t character) {
  if (showsNothing(character)) {
    return;
  }
  if (character > kLastCharacter) {
    const auto place = static_cast<unsigned short>(kFirstPrivate + emoji_.size());
    dirty_ = (place <= kLastPrivate && emoji_.emplace(character, place).second) || dirty_;
  } else if (character >= 0x20 && wanted_.size() < most_ && wanted_.insert(character).second) {
    dirty_ = true;
    far_wanted_ = far_wanted_ || character >= kFirstFar;
  }
}

unsigned short Fonts::glyph(uint32_t character) const {
  if (character <= kLastCharacter) {
    const bool is_private = character >= kFirstPrivate && character <= kLastPrivate;
    return static_cast<unsigned short>(is_private ? kReplacement : character);
  }
  const auto found = emoji_.find(character);
  return found == emoji_.end() ? kReplacement : found->second;
}

std::string Fonts::shown(const std::string& text) const {
  std::string shown;
  for (const VisualCharacter& one : visualLine(text, {0, text.size()}).characters) {
    shown += utf8::encode(glyph(one.character));
  }
  return shown;
}

bool Fonts::build() {
  const auto began = std::chrono::steady_clock::now();
  if (!dirty_ || began < next_build_) {
    return false;
  }
  dirty_ = false;
  buildNow();
  const auto ended = std::chrono::steady_clock::now();
  next_build_ = ended + 3 * (ended - began);
  return true;
}

bool Fonts::buildFewer() {
  if (wanted_.size() <= first_count_) {
    return false;
  }
  most_ = std::max(wanted_.size() / 2, first_count_);
  wanted_.erase(std::next(wanted_.begin(), static_cast<std::ptrdiff_t>(most_)), wanted_.end());
  buildNow();
  return true;
}

void Fonts::buildNow() {
  if (far_wanted_ && !far_looked_up_) {
    far_looked_up_ = true;
    far_file_ = firstFont({askFontconfig("sans:lang=ja"), askFontconfig("sans:lang=zh-cn")});
  }
  ranges_ = rangesOf(wanted_);
  ImGui::GetIO().Fonts->Clear();
  body_ = add(regular_file_, kBodyPixels);
  strong_ = add(strong_file_, kBodyPixels);
  small_ = add(regular_file_, kSmallPixels);
  mono_ = add(mono_file_, kMonoPixels);
  addEmoji();
  ImGui::GetIO().Fonts->Build();
  drawEmoji();
}

/// A character beyond U+FFFF in one font size: its outline and its place in the texture.
struct Fonts::Outline {
  stbtt_fontinfo font;
  int glyph;
  float scale;
  int rectangle;
};

Fonts::~Fonts() = default;

/// Reserves texture space and glyphs. Dear ImGui itself reads no characters beyond U+FFFF.
void Fonts::addEmoji() {
  outlines_.clear();
  if (emoji_.empty()) {
    return;
  }
  if (!emoji_looked_up_) {
    emoji_looked_up_ = true;
    emoji_file_ = firstFont({askFontconfig("emoji:color=false:scalable=true:charset=1f600"),
                             askFontconfig("sans:color=false:scalable=true:charset=1f600"),
                             "C:/Windows/Fonts/seguiemj.ttf"});
  }
  std::vector<stbtt_fontinfo> fonts;
  for (const std::string& file : {regular_file_, emoji_file_}) {
    stbtt_fontinfo font;
    const auto* const bytes =
        file.empty() ? nullptr : reinterpret_cast<const unsigned char*>(bytesOf(file)->data());
    if (bytes != nullptr && !bytesOf(file)->empty() &&
        stbtt_InitFont(&font, bytes, stbtt_GetFontOffsetForIndex(bytes, 0)) != 0) {
      fonts.push_back(font);
    }
  }
  for (auto& entry : emoji_) {
    const auto found = std::find_if(fonts.begin(), fonts.end(), [&](const stbtt_fontinfo& font) {
      const int glyph = stbtt_FindGlyphIndex(&font, static_cast<int>(entry.first));
      return glyph != 0 && stbtt_IsGlyphEmpty(&font, glyph) == 0;
    });
    if (found == fonts.end()) {
      entry.second = kReplacement;
      continue;
    }
    const int glyph = stbtt_FindGlyphIndex(&*found, static_cast<int>(entry.first));
    for (const auto& [font, pixels] :
         {std::pair(body_, kBodyPixels), std::pair(strong_, kBodyPixels),
          std::pair(small_, kSmallPixels), std::pair(mono_, kMonoPixels)}) {
      const float scale = stbtt_ScaleForPixelHeight(&*found, sizeOf(pixels));
      int left = 0, top = 0, right = 0, bottom = 0, advance = 0, ascent = 0;
      stbtt_GetGlyphBitmapBox(&*found, glyph, scale, scale, &left, &top, &right, &bottom);
      stbtt_GetGlyphHMetrics(&*found, glyph, &advance, nullptr);
      stbtt_GetFontVMetrics(&*found, &ascent, nullptr, nullptr);
      const ImVec2 offset(static_cast<float>(left),
                          static_cast<float>(ascent) * scale + static_cast<float>(top));
      const int rectangle = ImGui::GetIO().Fonts->AddCustomRectFontGlyph(
          font, entry.second, right - left, bottom - top, static_cast<float>(advance) * scale,
          offset);
      outlines_.push_back({*found, glyph, scale, rectangle});
    }
  }
}

void Fonts::drawEmoji() {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  for (const Outline& outline : outlines_) {
    const ImFontAtlasCustomRect& place = *atlas.GetCustomRectByIndex(outline.rectangle);
    if (place.IsPacked()) {
      stbtt_MakeGlyphBitmap(
          &outline.font, atlas.TexPixelsAlpha8 + place.Y * atlas.TexWidth + place.X, place.Width,
          place.Height, atlas.TexWidth, outline.scale, outline.scale, outline.glyph);
    }
  }
}

std::string* Fonts::bytesOf(const std::string& file) {
  const auto found = files_.find(file);
  if (found != files_.end()) {
    return &found->second;
  }
  std::error_code code;
  const auto size = std::filesystem::file_size(std::filesystem::u8path(file), code);
  std::string& bytes = files_[file];
  bytes.resize(code ? 0 : size);
  std::ifstream in(std::filesystem::u8path(file), std::ios::binary);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    bytes.clear();
  }
  return &bytes;
}

float Fonts::sizeOf(float pixels) const {
  return static_cast<float>(static_cast<int>(pixels * scale_ + 0.5f));
}

ImFont* Fonts::add(const std::string& file, float pixels) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  ImFontConfig config;
  config.OversampleH = 2;
  config.OversampleV = 1;
  config.PixelSnapH = false;
  const float size = sizeOf(pixels);
  if (file.empty()) {
    config.SizePixels = size;
    return atlas.AddFontDefault(&config);
  }
  config.FontDataOwnedByAtlas = false;
  const auto addFile = [&](const std::string& from) {
    std::string* const bytes = bytesOf(from);
    return bytes->empty()
               ? nullptr
               : atlas.AddFontFromMemoryTTF(bytes->data(), static_cast<int>(bytes->size()), size,
                                            &config, ranges_.data());
  };
  ImFont* font = addFile(file);
  if (font != nullptr && !far_file_.empty() && far_file_ != file) {
    config.MergeMode = true;
    addFile(far_file_);
  }
  return font != nullptr ? font : atlas.AddFontDefault();
}

}  // namespace desktop
