// Converts argument values as models write them to JSON, byte by byte: JSON, Python literals, and Gemma's notation.
// Also accepts common deviations: single quotes, True, False and None, raw line ends and quotes in strings, bare keys
// and words, a trailing comma.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Receives converted bytes.
struct ByteSink {
  void (*write)(char byte, void* user) = nullptr;
  void* user = nullptr;

  void put(char byte) const {
    if (write != nullptr) {
      write(byte, user);
    }
  }
  void put(const char* text) const;
};

/// One byte inside a JSON string.
void putJsonByte(char byte, const ByteSink& to);

/// The type of a whole text read as one JSON value: "None" is null, "True" and "False" are booleans.
enum class WordKind : uint8_t { kNone, kNull, kBool, kNumber };
WordKind kindOfWord(const char* text, size_t bytes);

enum class ValueStep : uint8_t {
  kMore,
  kEnded,        ///< the value ended with this byte
  kEndedBefore,  ///< the value ended before this byte, which is not consumed
  kWrong,
};

enum class ValueNotation : uint8_t {
  kLoose,
  kPython,  ///< the same, with Python's escapes in every string
  kGemma,   ///< the same, with strings between two <|"|>
  kStrict,  ///< JSON with Python's constants; anything else is an error
  kPlain,   ///< a string, written without quotes and escapes
};

/// Reads one value. Fixed memory: nesting that is too deep is an error, and a word over kMostWord bytes is a string.
class ValueReader {
 public:
  static constexpr uint32_t kMostDepth = 63;
  static constexpr uint32_t kMostWord = 128;

  void start(ValueNotation notation);
  ValueStep push(char c, const ByteSink& out);
  /// True if the value has ended, followed only by white space.
  bool complete() const { return state_ == State::kCommaOrEnd && depth_ == 0; }

 private:
  enum class State : uint8_t {
    kValue,       ///< a value must follow
    kValueOrEnd,  ///< in a list
    kKeyOrEnd,    ///< in an object
    kColon,
    kCommaOrEnd,
    kString,
    kMaybeEnd,    ///< after a quote: it ends the string if it is not part of the text
    kMaybeEmpty,  ///< after two quotes: a third one starts a long string
    kEscape,
    kHex,
    kGemmaOpen,
    kWord,
    kLongWord,  ///< already shown as a string
  };

  ValueStep pushValue(char c, const ByteSink& out);
  ValueStep pushString(char c, const ByteSink& out);
  ValueStep pushLongString(char c, const ByteSink& out);
  ValueStep pushGemmaQuote(char c, const ByteSink& out);
  ValueStep pushEscape(char c, const ByteSink& out);
  ValueStep pushHex(char c, const ByteSink& out);
  void putUnreadEscape(const ByteSink& out);
  ValueStep pushWord(char c, const ByteSink& out);
  ValueStep close(char c, const ByteSink& out);
  ValueStep afterValue(ValueStep at_the_end);
  void beginString(char quote, const ByteSink& out);
  ValueStep endString(const ByteSink& out, ValueStep at_the_end);
  bool endWord(const ByteSink& out);
  void putSeparator(const ByteSink& out);
  void putText(char c, const ByteSink& out) const;
  void putCodePoint(uint32_t code, const ByteSink& out) const;
  void putLoneHalf(const ByteSink& out);
  bool inObject() const { return depth_ != 0 && (objects_ >> (depth_ - 1) & 1) != 0; }
  void open(bool object);
  bool loose() const {
    return notation_ == ValueNotation::kLoose || notation_ == ValueNotation::kPython;
  }
  /// Python's escapes apply in Python calls and between single quotes, which JSON lacks.
  bool hasPythonEscapes() const { return notation_ == ValueNotation::kPython || quote_ == '\''; }

  ValueNotation notation_ = ValueNotation::kLoose;
  State state_ = State::kValue;
  bool is_key_ = false;
  bool comma_ = false;   ///< write a comma before the next element
  bool wanted_ = false;  ///< a comma was read last
  bool raw_ = false;     ///< escapes do not apply in this string
  bool long_ = false;    ///< it ends with three quotes
  char quote_ = 0;
  uint8_t n_quotes_ = 0;  ///< quotes of its end read so far
  uint8_t n_hex_ = 0;     ///< remaining hex digits
  uint8_t n_word_ = 0;    ///< bytes of word_
  uint8_t depth_ = 0;
  uint32_t code_ = 0;
  uint32_t high_half_ = 0;     ///< first half of a pair of \u escapes
  uint64_t objects_ = 0;       ///< one bit per level: 1 for an object, 0 for a list
  char word_[kMostWord] = {};  ///< a word, or the current escape without its backslash
};

}  // namespace oriel_internal
