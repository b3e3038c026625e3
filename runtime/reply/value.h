// Values of arguments as models write them, turned into JSON byte by byte: JSON itself, Python literals, and Gemma's
// own notation. What is read wider than JSON has it, since models write it so: single quotes, True, False and None,
// raw line ends and quotes in strings, bare keys and words, a comma too many.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Where converted bytes go.
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

/// One byte of a JSON string, between its quotes.
void putJsonByte(char byte, const ByteSink& to);

/// What a whole text is, read as one JSON value: "None" counts as null, "True" and "False" as booleans.
enum class WordKind : uint8_t { kNone, kNull, kBool, kNumber };
WordKind kindOfWord(const char* text, size_t bytes);

enum class ValueStep : uint8_t {
  kMore,
  kEnded,        ///< the value ended with this byte
  kEndedBefore,  ///< the value had ended before this byte, which belongs to what follows
  kWrong,
};

enum class ValueNotation : uint8_t {
  kLoose,
  kPython,  ///< the same, with Python's escapes in every string
  kGemma,   ///< the same, with strings between two <|"|>
  kStrict,  ///< JSON with Python's words: what is anything else is wrong
  kPlain,   ///< a string, whose text is written without quotes and escapes
};

/// Reads one value. Fixed memory: what is too deep is wrong, and a word of more than kMostWord bytes is a string.
class ValueReader {
 public:
  static constexpr uint32_t kMostDepth = 63;
  static constexpr uint32_t kMostWord = 128;

  void start(ValueNotation notation);
  ValueStep push(char c, const ByteSink& out);
  /// The value has ended, and nothing but white space came behind it.
  bool complete() const { return state_ == State::kCommaOrEnd && depth_ == 0; }

 private:
  enum class State : uint8_t {
    kValue,       ///< one has to come
    kValueOrEnd,  ///< in a list
    kKeyOrEnd,    ///< in an object
    kColon,
    kCommaOrEnd,
    kString,
    kMaybeEnd,    ///< behind a quote: it ends the string if nothing of a text follows
    kMaybeEmpty,  ///< behind two quotes: a third one begins a long string
    kEscape,
    kHex,
    kGemmaOpen,
    kWord,
    kLongWord,  ///< one that has been shown as a string
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
  /// Python's escapes count: in Python calls, and between single quotes, which JSON lacks.
  bool hasPythonEscapes() const { return notation_ == ValueNotation::kPython || quote_ == '\''; }

  ValueNotation notation_ = ValueNotation::kLoose;
  State state_ = State::kValue;
  bool is_key_ = false;
  bool comma_ = false;   ///< due before what comes next
  bool wanted_ = false;  ///< a comma was read, and nothing since
  bool raw_ = false;     ///< no escapes count in this string
  bool long_ = false;    ///< it ends with three quotes
  char quote_ = 0;
  uint8_t n_quotes_ = 0;  ///< of its end that were read
  uint8_t n_hex_ = 0;     ///< digits still to come
  uint8_t n_word_ = 0;    ///< bytes of word_
  uint8_t depth_ = 0;
  uint32_t code_ = 0;
  uint32_t high_half_ = 0;     ///< of a pair of \u escapes
  uint64_t objects_ = 0;       ///< a bit for each level: an object, not a list
  char word_[kMostWord] = {};  ///< a word, or the escape that is being read, without its backslash
};

}  // namespace oriel_internal
