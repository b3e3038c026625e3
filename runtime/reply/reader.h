// Tells thought, answer and tool calls of a reply apart while it streams. docs/tool-calls.md says what is read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "json/json.h"
#include "reply/forms.h"
#include "reply/tag_value.h"
#include "reply/value.h"

namespace oriel_internal {

enum class PartKind : uint8_t { kText, kThought, kCallBegun, kCallArguments, kCallEnded };

struct ReplyPart {
  PartKind kind = PartKind::kText;
  uint32_t call = 0;  ///< its number in the reply
  const char* text = nullptr;
  size_t bytes = 0;
};

struct ReplySettings {
  ReplyForms forms = 0;         ///< of calls and thoughts; <think> is always known
  bool calls = true;            ///< false: none is read, what looks like one is text
  bool inside_thought = false;  ///< the template has opened a thought
  /// Tools in the OpenAI form; null: not known. Says which arguments are texts where a form does not tell. Has to stay
  /// as long as the reader is used.
  const JsonValue* tools = nullptr;
};

/// Fixed memory, whatever comes. Joined, the parts do not depend on how the reply was cut.
///
/// - White space around a thought, between calls and around a bare call is no part of anything. All other text is shown
///   as it stands.
/// - What may still become a mark or a call is held back, and shown as text once it cannot, or when it has grown to
///   kMostHeld bytes: a call's name and what stands before it, and arguments that come before the name.
/// - A mark of a thought in the middle of an answer, or behind a backtick, is text, and so is the one that closes it.
/// - A call begins once its name and the begin of its arguments are known. Its arguments are complete when it ends. A
///   call that goes wrong on the way never ends, and what follows is text.
class ReplyReader {
 public:
  static constexpr uint32_t kMostHeld = 4096;
  static constexpr uint32_t kMostName = 256;  ///< a name of more bytes is none
  static constexpr uint32_t kMostKey = 128;   ///< of a parameter in tags or of a Python call
  static constexpr uint32_t kMostSpace = 512;

  using OnPart = void (*)(const ReplyPart& part, void* user);

  void start(const ReplySettings& settings, OnPart on_part, void* user);
  /// More of the reply: whole UTF-8 characters, cut anywhere; control tokens written out.
  void push(const char* text, size_t bytes);
  /// The reply is over: what was held back is shown.
  void finish();
  /// Overwrites what it has held.
  void forget();

  /// The reply closed a thought that it had not opened: it began inside of one.
  bool closedUnopened() const { return closed_unopened_; }

 private:
  enum class Mode : uint8_t { kText, kThought, kCall };
  /// Where in a call, or between two.
  enum class At : uint8_t {
    kStart,       ///< behind a section's mark
    kListItem,    ///< in a list of calls
    kName,        ///< as far as it may be part of one
    kMarkedName,  ///< until its mark's name_end
    kNameRest,    ///< until its mark's open_end
    kSkipped,     ///< the same of what is no part of anything
    kAfterName,
    kSeparated,  ///< behind a mark that has arguments or the real name behind it
    kId,
    kFence,
    kItem,  ///< in {"name": ..., "arguments": ...}
    kItemKey,
    kItemColon,
    kItemValue,
    kItemInside,
    kItemNext,
    kArguments,  ///< one object, with which the call ends
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
    kBetween,  ///< behind a call
    kAgain,    ///< behind what divides two calls
  };
  /// What the value of an item's key is.
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
  /// A mark goes on with the last byte held. False: it cannot be one.
  bool stepMark();
  void takeMark(uint8_t row, uint32_t bytes);
  void text(char c);
  void textByte(char c);
  void thought(char c);
  void takeTextMark(uint8_t row);
  bool takeThoughtMark(const Mark& mark, uint32_t from);
  /// The mark held behind `from` bytes stands behind a backtick.
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
  bool at_start_ = true;       ///< nothing of the answer was shown
  bool after_call_ = false;    ///< nothing was shown since a call
  bool drop_space_ = false;    ///< white space that comes now is no part of anything
  bool from_thought_ = false;  ///< what may become a call began in a thought that is not closed
  bool keep_space_ = false;    ///< white space held in front of what may become a call is text
  bool thought_shown_ = false;
  bool thought_opened_ = false;
  bool close_pending_ =
      false;  ///< a stray end of a thought: text behind it says that one was closed
  bool quoted_ =
      false;  ///< the latest byte ended a mark that the answer mentions behind a backtick
  uint32_t mentions_ = 0;   ///< opening marks of thoughts that the answer only mentions
  char last_shown_ = '\0';  ///< of the answer
  bool closed_unopened_ = false;
  ReplyForms thought_forms_ = 0;  ///< of the mark that opened it; 0: not known

  uint32_t space_bytes_ = 0;  ///< held in front of what may become a call
  uint32_t mark_from_ = kNoMark;
  uint32_t best_bytes_ = 0;  ///< of a whole mark that may become a longer one
  uint8_t best_row_ = kNoRow;
  uint16_t mark_kinds_ = 0;

  uint32_t calls_ = 0;
  bool committed_ = false;  ///< its name was told
  bool bare_ = false;
  bool list_ = false;     ///< the list of calls is open
  bool section_ = false;  ///< the section is open
  bool items_ = false;    ///< calls are items, which may stand behind each other
  uint32_t section_calls_ = 0;
  uint8_t section_row_ = kNoRow;
  uint8_t call_row_ = kNoRow;
  At fence_back_ = At::kStart;
  bool fenced_ = false;
  uint32_t matched_ = 0;  ///< of a text that is waited for
  uint32_t name_bytes_ = 0;
  uint32_t key_bytes_ = 0;
  bool too_long_ = false;  ///< the name or the key

  ItemPart item_part_ = ItemPart::kOther;
  uint8_t nested_ = 0;       ///< inside of {"function": {...}}
  bool name_known_ = false;  ///< of an item
  bool arguments_known_ = false;
  bool arguments_shown_ = false;  ///< or begun
  bool inner_wrong_ = false;
  bool inner_begun_ = false;  ///< its '{' was read
  uint8_t inner_null_ = 0;    ///< bytes of a null in its place
  ValueStep inner_step_ = ValueStep::kMore;
  uint32_t arguments_from_ = 0;  ///< held, since the name is not known yet
  uint32_t arguments_to_ = 0;
  bool arguments_are_text_ = false;

  uint32_t members_ = 0;  ///< arguments of this call
  uint8_t parameter_row_ = kNoRow;
  uint8_t types_ = kTypeAny;
  const JsonValue* properties_ = nullptr;
  ValueReader value_;
  ValueReader inner_;  ///< JSON inside of a JSON string
  TagValue tag_value_;

  // Marks that are looked for, by their first byte.
  static constexpr uint8_t kMostFirst = 16;
  uint8_t active_count_ = 0;
  uint8_t active_[kMostMarks] = {};
  uint8_t first_[256] = {};  ///< which of the groups below a byte begins; 0: none
  uint8_t group_end_[kMostFirst] = {};
  bool in_answers_[kMostFirst] = {};
  uint8_t second_[kMostFirst][32] = {};  ///< bits: bytes that go on, of marks that count in answers
  uint8_t open_count_ = 0;
  uint8_t open_[kMostMarks] = {};  ///< marks that what is held may become
  PartKind out_kind_ = PartKind::kText;
  uint32_t out_bytes_ = 0;
  uint32_t held_ = 0;
  char out_[256] = {};
  char name_[kMostName] = {};
  char key_[kMostKey] = {};
  char hold_[kMostHeld] = {};
};

}  // namespace oriel_internal
