// Finds stop texts in a stream of bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Finds the text that ends first, and the longest of several texts that end at the same byte. Therefore the result
/// does not depend on the division of the stream. (Knuth, Morris, Pratt 1977, for each of the texts.)
class StopTexts {
 public:
  static constexpr uint32_t kMost = 16;
  static constexpr uint32_t kMostBytes = 256;

  /// Copies `count` NUL-terminated texts of 1 to kMostBytes bytes, and begins a stream.
  void start(const char* const* texts, size_t count);
  /// Overwrites the texts.
  void forget();
  /// Begins another stream.
  void restart();
  bool any() const { return count_ != 0; }
  /// Adds a byte. Returns the length of the text that ends with it; 0: none.
  uint32_t accept(char byte);
  /// Number of latest bytes that are the beginning of a text.
  uint32_t begun() const;

 private:
  struct Text {
    uint32_t bytes = 0;
    uint32_t begun = 0;  ///< number of latest bytes that match its beginning, not the whole text
    char text[kMostBytes] = {};
    /// Index i: length of the longest proper suffix of its first i + 1 bytes that is also its beginning.
    uint8_t border[kMostBytes] = {};

    void set(const char* from);
    uint32_t after(uint32_t begun_before, char byte) const;
  };

  Text texts_[kMost];
  uint32_t count_ = 0;
};

}  // namespace oriel_internal
