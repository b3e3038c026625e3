// Reads a reply as it is written: parts, tool calls, and JSON fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grammar/expression.h"
#include "json/json.h"
#include "reply/forms.h"
#include "reply/parameter.h"

namespace oriel_internal {

// Reports the values of a JSON text during generation, so that an app can show a field as it grows.

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

// Texts that end at a mark, as expressions.

/// Any text up to the first occurrence of `mark` (ASCII), including the mark.
ExprId textUpTo(Grammar* grammar, const char* mark);

// Characters shared by several reply formats.

constexpr char kGemmaQuote[] = "<|\"|>";

inline bool isSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
inline bool isDigit(char c) { return c >= '0' && c <= '9'; }

// Separates thought, answer and tool calls while a reply streams. Supported forms: docs/structured-output.md.

enum class PartKind : uint8_t { kText, kThought, kCallBegun, kCallArguments, kCallEnded };

struct ReplyPart {
  PartKind kind = PartKind::kText;
  uint32_t call = 0;  ///< index of the call in the reply
  const char* text = nullptr;
  size_t bytes = 0;
};

struct ReplySettings {
  ReplyForms forms = 0;           ///< for calls and thoughts; <think> is always recognised
  bool calls = true;              ///< false: calls are shown as text
  bool inside_thought = false;    ///< the template opened a thought
  const Mark* thought = nullptr;  ///< the mark of that thought; null: unknown
  /// Tools in the OpenAI form; null: unknown. Types the arguments where a form does not. Must outlive the reader.
  const JsonValue* tools = nullptr;
};

/// Fixed memory for any input. The concatenated parts do not depend on how the reply was split.
//
/// - White space around a thought, between calls and around a bare call is dropped. All other text is shown unchanged.
/// - Text that may still become a mark or a call is held back. It is shown as text once it cannot, or when it exceeds
///   kMostHeld bytes: a call's name and the text before it, and arguments before the name.
/// - A thought mark in the middle of an answer, or after a backtick, is text, and so is the mark that closes it.
/// - A call begins when its name and the start of its arguments are known. Its arguments are complete when it ends. A
///   malformed call never ends, and the rest is text.
class ReplyReader {
 public:
  static constexpr uint32_t kMostHeld = 4096;
  static constexpr uint32_t kMostName = 256;  ///< longer names are invalid
  static constexpr uint32_t kMostKey = 128;   ///< of a parameter in tags or of a Python call
  static constexpr uint32_t kMostSpace = 512;

  using OnPart = void (*)(const ReplyPart& part, void* user);

  void start(const ReplySettings& settings, OnPart on_part, void* user);
  /// Takes the next part of the reply: whole UTF-8 characters, split anywhere; control tokens as text.
  void push(const char* text, size_t bytes);
  /// Ends the reply: shows everything held back.
  void finish();
  /// Overwrites its buffers.
  void forget();

  /// True if the reply closed a thought that it had not opened, so it began inside one.
  bool closedUnopened() const { return closed_unopened_; }
  bool inThought() const { return mode_ == Mode::kThought; }
  /// The mark that closes the thought.
  const char* thoughtEnd() const { return endOfThought(thought_mark_); }
  /// Bytes of that mark at the end of the reply so far.
  uint32_t thoughtEndBegun() const;

 private:
  enum class Mode : uint8_t { kText, kThought, kCall };
  /// Position in or between calls.
  enum class At : uint8_t {
    kStart,       ///< after a section's mark
    kListItem,    ///< in a list of calls
    kName,        ///< possible part of a name
    kMarkedName,  ///< until its mark's name_end
    kNameRest,    ///< until its mark's open_end
    kSkipped,     ///< the same for skipped text
    kAfterName,
    kSeparated,  ///< after a mark that is followed by arguments or the real name
    kId,
    kFence,
    kItem,  ///< in {"name": ..., "arguments": ...}
    kItemKey,
    kItemColon,
    kItemValue,
    kItemInside,
    kItemNext,
    kArguments,  ///< one object, whose end ends the call
    kParameters,
    kParameterKey,
    kParameterRest,
    kParameterValue,
    kParameterTail,
    kPythonArgument,
    kPythonKey,
    kPythonEquals,
    kPythonValue,
    kPythonNext,
    kBetween,  ///< after a call
    kAgain,    ///< after a separator of calls
  };
  /// The meaning of an item's key.
  enum class ItemPart : uint8_t { kOther, kName, kArguments, kArgumentsText };
  static constexpr uint32_t kNoMark = UINT32_MAX;
  static constexpr uint8_t kNoRow = UINT8_MAX;

  void pushByte(char c);
  size_t pushRun(const char* text, size_t bytes);
  void pushAgain(uint32_t from);

  // Showing: reader.cpp.
  void put(PartKind kind, char c);
  void putHeld(PartKind kind, uint32_t from, uint32_t to);
  void flush();
  void tell(PartKind kind, const char* text, size_t bytes);
  static void putArgument(char c, void* user);
  static void putName(char c, void* user);
  static void putKey(char c, void* user);
  static void putInner(char c, void* user);
  ByteSink argumentSink() { return {putArgument, this}; }

  // Marks: reader.cpp.
  bool hold(char c);
  void activate(uint8_t row);
  bool beginsMark(char c);
  bool markHere(char c, int kinds);
  bool eligible(const Mark& mark) const;
  /// Extends the mark by the last held byte. False: not a mark.
  bool stepMark();
  void takeMark(uint8_t row, uint32_t bytes);
  void text(char c);
  void textByte(char c);
  void thought(char c);
  void takeTextMark(uint8_t row);
  bool takeThoughtMark(const Mark& mark, uint32_t from);
  /// True if the mark, after `from` held bytes, follows a backtick.
  bool isQuoted(uint32_t from) const { return from == 0 && last_shown_ == '`'; }
  bool closesThought(const Mark& mark) const;
  void showHeldByte();

  // Calls: calls.cpp.
  void beginCall(uint8_t row);
  void beginBareCall();
  void call(char c);
  void takeCallMark(uint8_t row);
  void callByte(char c);
  bool callStart(char c);
  bool listItem(char c);
  bool name(char c);
  bool goesOnAsGemmaName(char c) const;
  bool markedName(char c);
  bool nameRest(char c);
  bool skipped(char c);
  bool afterName(char c);
  bool separated(char c);
  bool fence(char c);
  bool between(char c);
  bool beginArguments(char c);
  bool beginArgumentsText(char c);
  bool arguments(char c);
  bool commit();
  void fixName();
  void endCall();
  void fail();
  void leave();

  // JSON items: call_items.cpp.
  void beginItem();
  bool item(char c);
  bool itemKey(char c);
  bool itemValue(char c);
  bool itemInside(char c);
  bool endItemValue();
  bool itemNext(char c);
  bool endItem();
  bool keyIs(const char* word) const;
  bool replayArguments();
  void startInner();
  void pushInner(char c);

  // Tags and Python calls: call_parameters.cpp.
  bool beginParameter(uint8_t row);
  bool parameters(char c);
  bool parameterKey(char c);
  bool parameterRest(char c);
  bool parameterValue(char c);
  bool parameterTail(char c);
  bool python(char c);
  bool pythonArgument(char c);
  bool pythonPositional(char c);
  bool pythonNext(char c);
  bool beginMember();

  ReplySettings settings_;
  OnPart on_part_ = nullptr;
  void* user_ = nullptr;

  Mode mode_ = Mode::kText;
  At at_ = At::kStart;
  bool at_start_ = true;       ///< no part of the answer was shown
  bool after_call_ = false;    ///< nothing was shown since a call
  bool drop_space_ = false;    ///< white space at this point is dropped
  bool from_thought_ = false;  ///< the possible call began in an open thought
  bool keep_space_ = false;    ///< white space held before a possible call is text
  bool thought_shown_ = false;
  bool thought_opened_ = false;
  bool close_pending_ =
      false;             ///< after a stray end of a thought, text proves that a thought was closed
  bool quoted_ = false;  ///< the latest byte ended a mark that the answer quotes with a backtick
  uint32_t mentions_ = 0;   ///< opening thought marks that the answer only mentions
  char last_shown_ = '\0';  ///< of the answer
  bool closed_unopened_ = false;
  ReplyForms thought_forms_ = 0;        ///< families of the mark that opened it; 0: unknown
  const Mark* thought_mark_ = nullptr;  ///< the mark that opened it, in the reply or before

  uint32_t space_bytes_ = 0;  ///< held before a possible call
  uint32_t mark_from_ = kNoMark;
  uint32_t best_bytes_ = 0;  ///< length of a complete mark that may still become longer
  uint8_t best_row_ = kNoRow;
  uint16_t mark_kinds_ = 0;

  uint32_t calls_ = 0;
  bool committed_ = false;  ///< its name was reported
  bool bare_ = false;
  bool list_ = false;     ///< the list of calls is open
  bool section_ = false;  ///< the section is open
  bool items_ = false;    ///< calls are items, which may follow each other
  uint32_t section_calls_ = 0;
  uint8_t section_row_ = kNoRow;
  uint8_t call_row_ = kNoRow;
  At fence_back_ = At::kStart;
  bool fenced_ = false;
  uint32_t matched_ = 0;  ///< of the searched text
  uint32_t name_bytes_ = 0;
  uint32_t key_bytes_ = 0;
  bool too_long_ = false;  ///< the name or the key exceeds its limit

  ItemPart item_part_ = ItemPart::kOther;
  uint8_t nested_ = 0;       ///< inside of {"function": {...}}
  bool name_known_ = false;  ///< of an item
  bool arguments_known_ = false;
  bool arguments_shown_ = false;  ///< or begun
  bool inner_wrong_ = false;
  bool inner_begun_ = false;  ///< its '{' was read
  uint8_t inner_null_ = 0;    ///< bytes of a null in its place
  ValueStep inner_step_ = ValueStep::kMore;
  uint32_t arguments_from_ = 0;  ///< held until the name is known
  uint32_t arguments_to_ = 0;
  bool arguments_are_text_ = false;

  uint32_t members_ = 0;  ///< arguments of this call
  uint8_t parameter_row_ = kNoRow;
  uint8_t types_ = kTypeAny;
  const JsonValue* properties_ = nullptr;
  ValueReader value_;
  ValueReader inner_;  ///< JSON inside of a JSON string
  TagValue tag_value_;

  // Active marks, grouped by first byte.
  static constexpr uint8_t kMostFirst = 16;
  uint8_t active_count_ = 0;
  uint8_t active_[kMostMarks] = {};
  uint8_t first_[256] = {};  ///< group of marks with this first byte; 0: none
  uint8_t group_end_[kMostFirst] = {};
  bool in_answers_[kMostFirst] = {};
  uint8_t second_[kMostFirst][32] = {};  ///< bit set of second bytes, for marks that count in
                                         ///< answers
  uint8_t open_count_ = 0;
  uint8_t open_[kMostMarks] = {};  ///< marks that the held bytes may become
  PartKind out_kind_ = PartKind::kText;
  uint32_t out_bytes_ = 0;
  uint32_t held_ = 0;
  char out_[256] = {};
  char name_[kMostName] = {};
  char key_[kMostKey] = {};
  char hold_[kMostHeld] = {};
};

}  // namespace oriel_internal
