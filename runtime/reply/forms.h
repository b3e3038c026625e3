// A table of the marks that models write around thoughts and tool calls.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oriel_internal {

/// Families of marks, as bits. A reader looks for the selected ones.
using ReplyForms = uint64_t;

/// `<tool_call>` and JSON, function tags or GLM's keys and values.
constexpr ReplyForms kFormToolCall = 1u << 0;
constexpr ReplyForms kFormToolCalls = 1u << 1;     ///< <tool_calls>, with JSON
constexpr ReplyForms kFormFunctionTag = 1u << 2;   ///< <function=NAME>, also without an outer mark
constexpr ReplyForms kFormNamedTag = 1u << 3;      ///< <function name="NAME">
constexpr ReplyForms kFormSeed = 1u << 4;          ///< <seed:tool_call>, <seed:think>
constexpr ReplyForms kFormMiniMax = 1u << 5;       ///< <minimax:tool_call>
constexpr ReplyForms kFormMiniMax3 = 1u << 6;      ///< tags after ]<]minimax[>[, <mm:think>
constexpr ReplyForms kFormDsml = 1u << 7;          ///< DeepSeek V3.2 and V4
constexpr ReplyForms kFormAtem = 1u << 8;          ///< <atem:function_calls>
constexpr ReplyForms kFormGemma4 = 1u << 9;        ///< <|tool_call>call:, <|channel>thought
constexpr ReplyForms kFormBarCall = 1u << 10;      ///< <|tool_call|> and JSON
constexpr ReplyForms kFormLfm = 1u << 11;          ///< <|tool_call_start|> and Python calls
constexpr ReplyForms kFormMistral = 1u << 12;      ///< [TOOL_CALLS], [THINK]
constexpr ReplyForms kFormCapitals = 1u << 13;     ///< <TOOLCALL>
constexpr ReplyForms kFormFunctools = 1u << 14;    ///< functools[
constexpr ReplyForms kFormPythonTag = 1u << 15;    ///< <|python_tag|>
constexpr ReplyForms kFormBareJson = 1u << 16;     ///< {"name", "parameters"} as the whole reply
constexpr ReplyForms kFormBarePython = 1u << 17;   ///< [name(...)] as the whole reply
constexpr ReplyForms kFormCohere = 1u << 18;       ///< <|START_ACTION|>, <|START_THINKING|>
constexpr ReplyForms kFormAction = 1u << 19;       ///< Action: and a list of JSON
constexpr ReplyForms kFormKimi = 1u << 20;         ///< <|tool_calls_section_begin|>
constexpr ReplyForms kFormKimi3 = 1u << 21;        ///< <|open|>tools<|sep|>
constexpr ReplyForms kFormDeepSeek = 1u << 22;     ///< DeepSeek R1 to V3.1
constexpr ReplyForms kFormGigaChat = 1u << 23;     ///< <|function_call|>
constexpr ReplyForms kFormApertus = 1u << 24;      ///< <|tools_prefix|>, <|inner_prefix|>
constexpr ReplyForms kFormSolar = 1u << 25;        ///< <|tool_call:begin|>, <|think|>
constexpr ReplyForms kFormHarmony = 1u << 26;      ///< gpt-oss: channels
constexpr ReplyForms kFormRecipient = 1u << 27;    ///< Functionary: >>>NAME
constexpr ReplyForms kFormHunyuan = 1u << 28;      ///< tags that end in :opensource
constexpr ReplyForms kFormThinkTag = 1u << 29;     ///< <think>, which every model may write
constexpr ReplyForms kFormThinkingTag = 1u << 30;  ///< <thinking>
constexpr ReplyForms kFormFinalResponse = 1u << 31;  ///< [BEGIN FINAL RESPONSE]
// Details of a template's call syntax: for grammars, not for reading.
constexpr ReplyForms kFormArgKey = ReplyForms{1} << 32;    ///< <arg_key> in <tool_call>
constexpr ReplyForms kFormArgsMark = ReplyForms{1} << 33;  ///< [ARGS] after [TOOL_CALLS]
constexpr ReplyForms kFormIdMark = ReplyForms{1} << 34;    ///< [CALL_ID], too

constexpr ReplyForms kFormHorizon = ReplyForms{1} << 35;  ///< K2-Horizon: tags that begin with ifm|

/// The functions of a mark, as bits.
enum MarkKind : uint16_t {
  kMarkTrigger = 1 << 0,  ///< recognised in an answer: a call may begin with it
  kMarkSection = 1 << 1,  ///< calls follow
  kMarkSectionEnd = 1 << 2,
  kMarkCall = 1 << 3,  ///< a name follows
  kMarkCallEnd = 1 << 4,
  kMarkName = 1 << 5,       ///< the previous text was not the name: the name follows
  kMarkId = 1 << 6,         ///< an id follows
  kMarkArguments = 1 << 7,  ///< the arguments follow
  kMarkParameter = 1 << 8,  ///< a key follows
  kMarkThought = 1 << 9,
  kMarkThoughtEnd = 1 << 10,
  kMarkSkip = 1 << 11,  ///< separator; not part of the output
  kMarkFence = 1 << 12,
};

enum MarkFlag : uint16_t {
  kAnywhere = 1 << 0,     ///< for thoughts: also in the middle of an answer
  kEndsThought = 1 << 1,  ///< a call that begins with it closes an open thought
  kListBegun = 1 << 2,    ///< the mark includes the list's bracket
  kKeyed = 1 << 3,        ///< calls are {NAME: arguments}
  kTrimsLine = 1 << 4,    ///< one line end on each side of a value belongs to the marks
  kAtStart = 1 << 5,      ///< only at the start of an answer
  kCData = 1 << 6,        ///< a value may be in <![CDATA[
  kStray = 1 << 7,        ///< for a thought's end: never text, even without an open thought
  kNests = 1 << 8,        ///< a value may contain tags of the same kind: an object or a list
};

struct Mark {
  const char* text;
  uint16_t kinds;
  ReplyForms forms;
  uint16_t flags = 0;
  char name_end = '\0';  ///< ends a name or key; 0: any character that cannot be part of it
  const char* open_end = nullptr;   ///< then skips up to this; null: nothing
  const char* value_end = nullptr;  ///< for kMarkParameter
  const char* tail_end = nullptr;   ///< then skips up to this; null: nothing
};

extern const Mark kMarks[];
extern const uint8_t kMarkCount;
constexpr uint8_t kMostMarks = 160;
/// Longest mark, bytes.
constexpr uint32_t kMostMark = 64;

/// The forms that a Jinja template's text reveals, in its first 256 KiB. If it reveals none: all unmistakable forms, and
/// bare calls.
ReplyForms formsOfTemplate(const char* text, size_t bytes);
/// The forms of a built-in chat format.
ReplyForms formsOfFormat(const char* name);
/// The forms for a reply of an unknown model.
ReplyForms formsOfAnything();
/// The mark of the thought that is open at the end of the text that opens a reply; null: none.
const Mark* opensThought(const char* text, size_t bytes, ReplyForms forms);
/// The text that closes a thought with this mark; null: unknown.
const char* endOfThought(const Mark* opened);

}  // namespace oriel_internal
