// Finds texts in a stream of bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Of several texts the one that ends first is found, of those that end at the same byte the longest: so what is found
/// does not depend on how the stream is cut. (Knuth, Morris, Pratt 1977, for each of the texts.)
class StopTexts {
 public:
  static constexpr uint32_t kMost = 16;
  static constexpr uint32_t kMostBytes = 256;

  /// Copies `count` texts of 1 to kMostBytes bytes that end in NUL, and begins a stream.
  void start(const char* const* texts, size_t count);
  /// Overwrites the texts.
  void forget();
  /// Begins another stream.
  void restart();
  bool any() const { return count_ != 0; }
  /// The next byte. The length of the text that ends with it; 0: none does.
  uint32_t accept(char byte);
  /// How many of the latest bytes are the beginning of a text.
  uint32_t begun() const;

 private:
  struct Text {
    uint32_t bytes = 0;
    uint32_t begun = 0;  ///< that many of the latest bytes are its beginning, fewer than all
    char text[kMostBytes] = {};
    /// Of its first i + 1 bytes: how many of their last, fewer than all, are its beginning, too.
    uint8_t border[kMostBytes] = {};

    void set(const char* from);
    uint32_t after(uint32_t begun_before, char byte) const;
  };

  Text texts_[kMost];
  uint32_t count_ = 0;
};

}  // namespace oriel_internal
