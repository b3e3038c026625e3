// Reports the values of a JSON text during generation, so that an app can show a field as it grows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

enum class JsonEvent : uint8_t {
  kString,   ///< a piece of a string, escapes decoded
  kLiteral,  ///< a whole number, true, false or null
  kEnded,    ///< a string, an object or an array is complete
};

/// Fixed memory. Joined, the pieces of a string do not depend on how the text was cut. Invalid JSON, and the text after
/// it, is not reported.
class JsonValues {
 public:
  static constexpr uint32_t kMostDepth = 32;  ///< deeper values are reported up to this depth
  static constexpr uint32_t kMostPath = 256;  ///< values with a longer path are left out

  /// `path` is a JSON Pointer (RFC 6901) that ends in NUL; "" is the whole text. Pieces are whole UTF-8 characters.
  using OnEvent = void (*)(JsonEvent event, const char* path, const char* text, size_t bytes,
                           void* user);

  void start(OnEvent on_event, void* user);
  /// More of the text: whole UTF-8 characters.
  void push(const char* text, size_t bytes);
  /// Ends the text: reports a number at its end.
  void finish();
  /// Overwrites its contents.
  void forget();

 private:
  enum class At : uint8_t {
    kValue,
    kFirstValue,  ///< of an array, which may be empty
    kFirstKey,    ///< of an object, which may be empty
    kKey,
    kColon,
    kInKey,
    kInString,
    kInLiteral,
    kNext,  ///< after a value
    kOver,  ///< the rest is not reported
  };
  struct Level {
    uint32_t index = 0;  ///< of an array: index of the next value
    uint32_t path = 0;   ///< bytes of the path of the array or object itself
    bool is_array = false;
  };
  static constexpr uint32_t kMostPiece = 128;

  void step(char c);
  void beginValue(char c);
  void open(bool is_array);
  void close();
  void afterValue();
  void endLiteral();
  void element();
  void stringByte(char c);
  void escaped(char c);
  void endString();
  void dropSurrogate();
  void putCodePoint(uint32_t code_point);
  void put(char c);
  void putPath(char c);
  void flush();
  void tell(JsonEvent event, const char* text, size_t bytes);

  OnEvent on_event_ = nullptr;
  void* user_ = nullptr;
  At at_ = At::kOver;
  uint32_t depth_ = 0;
  uint32_t path_bytes_ = 0;  ///< more than kMostPath: the path does not fit
  uint32_t piece_bytes_ = 0;
  uint32_t escape_ =
      0;  ///< 0: none; 1: after a backslash; 2 to 5: before 1 to 4 hexadecimal digits
  uint32_t code_unit_ = 0;  ///< digits so far
  uint32_t high_surrogate_ = 0;
  Level levels_[kMostDepth];
  char path_[kMostPath + 1] = {};
  char piece_[kMostPiece] = {};
};

}  // namespace oriel_internal
