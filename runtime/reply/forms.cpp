#include "reply/forms.h"

#include <algorithm>
#include <cstring>

namespace oriel_internal {
namespace {

constexpr uint16_t kTriggersSection = kMarkTrigger | kMarkSection;
constexpr uint16_t kTriggersCall = kMarkTrigger | kMarkCall;

// DeepSeek writes its marks with U+FF5C and U+2581.
#define BAR "\xEF\xBD\x9C"
#define LOW "\xE2\x96\x81"
#define DSML BAR "DSML" BAR
#define MINIMAX "]<]minimax[>["

/// Families with <function=NAME> inside another mark.
constexpr ReplyForms kHasFunctionTag = kFormToolCall | kFormSeed | kFormFunctionTag;
constexpr ReplyForms kHasInvokeTag = kFormMiniMax | kFormToolCall | kFormNamedTag;
constexpr ReplyForms kAll = ~ReplyForms{0};

struct Speaks {
  const char* text;
  ReplyForms forms;
};

/// Texts by which templates reveal a family, since they show calls or explain them.
constexpr Speaks kSpeaks[] = {
    {"<tool_call>", kFormToolCall},
    {"<arg_key>", kFormArgKey},
    {"[ARGS]", kFormArgsMark},
    {"[CALL_ID]", kFormIdMark},
    {"<tool_calls>", kFormToolCalls},
    {"<function=", kFormFunctionTag},
    {"<function name=", kFormNamedTag},
    {"<seed:tool_call>", kFormSeed},
    {"<seed:think>", kFormSeed},
    {"<minimax:tool_call>", kFormMiniMax},
    {"<mm:think>", kFormMiniMax3},
    {DSML, kFormDsml},
    {"<atem:function_calls>", kFormAtem},
    {"<|tool_call>", kFormGemma4},
    {"<|channel>", kFormGemma4},
    {"<|tool_call|>", kFormBarCall},
    {"<|tool|>", kFormBarCall},
    {"<|tool_call_start|>", kFormLfm},
    {"<|tool_list_start|>", kFormLfm},
    {"List of tools: [", kFormLfm},
    {"[TOOL_CALLS]", kFormMistral},
    {"[THINK]", kFormMistral},
    {"<TOOLCALL>", kFormCapitals},
    {"functools[", kFormFunctools},
    {"functools", kFormFunctools},
    {"<|python_tag|>", kFormPythonTag | kFormBareJson | kFormBarePython},
    {"\"parameters\": dictionary of argument name",
     kFormPythonTag | kFormBareJson | kFormBarePython},
    {"<|START_ACTION|>", kFormCohere},
    {"<|START_THINKING|>", kFormCohere},
    {"Action:", kFormAction},
    {"<|tool_calls_section_begin|>", kFormKimi},
    {"<|open|>", kFormKimi3},
    {"<" BAR "tool" LOW "call", kFormDeepSeek},
    {"<|function_call|>", kFormGigaChat},
    {"<|role_sep|>", kFormGigaChat},
    {"<|tools_prefix|>", kFormApertus},
    {"<|inner_prefix|>", kFormApertus},
    {"<|tool_call:begin|>", kFormSolar},
    {"<|channel|>", kFormHarmony},
    {">>>", kFormRecipient},
    {BAR "hy_", kFormHunyuan},
    {"<ifm|", kFormHorizon},
    {"<thinking>", kFormThinkingTag},
    {"[BEGIN FINAL RESPONSE]", kFormFinalResponse},
};

/// Marks that only a call can contain, in any model.
constexpr ReplyForms kUnmistakable =
    kFormToolCall | kFormToolCalls | kFormFunctionTag | kFormNamedTag | kFormSeed | kFormMiniMax |
    kFormDsml | kFormAtem | kFormGemma4 | kFormBarCall | kFormLfm | kFormMistral | kFormCapitals |
    kFormFunctools | kFormPythonTag | kFormKimi | kFormDeepSeek | kFormApertus | kFormHorizon;
constexpr ReplyForms kBare = kFormBareJson | kFormBarePython;

/// Forms by chat format.
constexpr Speaks kFormats[] = {
    {"exaone4", kFormToolCall},
    {"gemma4", kFormGemma4},
    {"gemma4-e", kFormGemma4},
    {"granite3", kFormBarCall},
    {"granite3.3", kFormBarCall},
    {"granite4", kFormToolCall},
    {"lfm2", kFormLfm},
    {"lfm2.5", kFormLfm},
    {"lfm2.5-8b", kFormLfm},
    {"llama3.2", kFormPythonTag | kBare},
    {"minicpm5", kFormNamedTag},
    {"mistral-nemo", kFormMistral},
    {"mistral-v3", kFormMistral},
    {"mistral-v7", kFormMistral},
    {"phi4-mini", kFormBarCall | kFormFunctools},
    {"qwen2.5", kFormToolCall},
    {"qwen3", kFormToolCall},
    {"qwen3-coder", kFormToolCall | kFormFunctionTag},
    {"qwen3-thinking", kFormToolCall},
    {"qwen3.5", kFormToolCall | kFormFunctionTag},
    {"smollm3", kFormToolCall},
    {"smollm3-undated", kFormToolCall},
};

constexpr size_t kMostTemplate = 256u << 10;

bool contains(const char* text, size_t bytes, const char* what) {
  return std::search(text, text + bytes, what, what + std::strlen(what)) != text + bytes;
}

}  // namespace

// clang-format off
const Mark kMarks[] = {
    // Thoughts: each is closed by the next end mark of its family.
    {"<think>", kMarkThought, kAll},
    {"</think>", kMarkThoughtEnd, kAll},
    {"<thinking>", kMarkThought, kFormThinkingTag},
    {"</thinking>", kMarkThoughtEnd, kFormThinkingTag},
    {"<seed:think>", kMarkThought, kFormSeed, kAnywhere},
    {"</seed:think>", kMarkThoughtEnd, kFormSeed},
    {"<mm:think>", kMarkThought, kFormMiniMax3, kAnywhere},
    {"</mm:think>", kMarkThoughtEnd, kFormMiniMax3},
    {"[THINK]", kMarkThought, kFormMistral, kAnywhere},
    {"[/THINK]", kMarkThoughtEnd, kFormMistral},
    {"<|channel>thought", kMarkThought, kFormGemma4, kAnywhere},
    {"<channel|>", kMarkThoughtEnd, kFormGemma4, kStray},
    {"<|channel>", kMarkSkip, kFormGemma4},
    {"<|START_THINKING|>", kMarkThought, kFormCohere, kAnywhere},
    {"<|END_THINKING|>", kMarkThoughtEnd, kFormCohere},
    {"<|inner_prefix|>", kMarkThought, kFormApertus, kAnywhere},
    {"<|inner_suffix|>", kMarkThoughtEnd, kFormApertus},
    {"<|think|>", kMarkThought, kFormSolar, kAnywhere},
    {"<|channel|>analysis<|message|>", kMarkThought, kFormHarmony, kAnywhere},
    {"<|end|>", kMarkThoughtEnd | kMarkSkip, kFormHarmony | kFormSolar},
    {"<|open|>think<|sep|>", kMarkThought, kFormKimi3, kAnywhere},
    {"<|close|>think<|sep|>", kMarkThoughtEnd, kFormKimi3},
    {"<think:opensource>", kMarkThought, kFormHunyuan, kAnywhere},
    {"</think:opensource>", kMarkThoughtEnd, kFormHunyuan},
    {"<ifm|think>", kMarkThought, kFormHorizon, kAnywhere},
    {"<ifm|think_fast>", kMarkThought, kFormHorizon, kAnywhere},
    {"<ifm|think_faster>", kMarkThought, kFormHorizon, kAnywhere},
    {"</ifm|think>", kMarkThoughtEnd, kFormHorizon},
    {"</ifm|think_fast>", kMarkThoughtEnd, kFormHorizon},
    {"</ifm|think_faster>", kMarkThoughtEnd, kFormHorizon},

    {"Here are my reasoning steps:", kMarkThought, kFormFinalResponse},
    {"[BEGIN FINAL RESPONSE]", kMarkThoughtEnd, kFormFinalResponse},
    {" to=self<|message|>", kMarkThought, kFormAtem, kAnywhere | kAtStart},
    {"<|start|>assistant to=self<|message|>", kMarkThought, kFormAtem, kAnywhere},
    {"<|eom|>", kMarkThoughtEnd | kMarkSkip, kFormAtem},

    // Sections.
    {"<tool_call>", kTriggersSection, kFormToolCall},
    {"<tool_call>", kTriggersSection, kFormFunctionTag, kEndsThought},
    {"</tool_call>", kMarkSectionEnd, kFormToolCall | kFormFunctionTag},
    {"<tool_calls>", kTriggersSection, kFormToolCalls},
    {"</tool_calls>", kMarkSectionEnd, kFormToolCalls},
    {"<seed:tool_call>", kTriggersSection, kFormSeed},
    {"</seed:tool_call>", kMarkSectionEnd, kFormSeed},
    {"<minimax:tool_call>", kTriggersSection, kFormMiniMax},
    {"</minimax:tool_call>", kMarkSectionEnd, kFormMiniMax},
    {MINIMAX "<tool_call>", kTriggersSection, kFormMiniMax3},
    {MINIMAX "</tool_call>", kMarkSectionEnd, kFormMiniMax3},
    {"<" DSML "function_calls>", kTriggersSection, kFormDsml},
    {"</" DSML "function_calls>", kMarkSectionEnd, kFormDsml},
    {"<" DSML "tool_calls>", kTriggersSection, kFormDsml},
    {"</" DSML "tool_calls>", kMarkSectionEnd, kFormDsml},
    {"<atem:function_calls>", kTriggersSection, kFormAtem},
    {"</atem:function_calls>", kMarkSectionEnd, kFormAtem},
    {"<|tool_call>", kTriggersSection, kFormGemma4},
    {"<tool_call|>", kMarkSectionEnd, kFormGemma4},
    {"<|tool_call|>", kTriggersSection, kFormBarCall},
    {"<|/tool_call|>", kMarkSectionEnd, kFormBarCall},
    {"<|tool_call_start|>", kTriggersSection, kFormLfm},
    {"<|tool_call_end|>", kMarkSectionEnd, kFormLfm},
    {"[TOOL_CALLS]", kTriggersSection, kFormMistral},
    {"[/TOOL_CALLS]", kMarkSectionEnd, kFormMistral},
    {"<TOOLCALL>", kTriggersSection, kFormCapitals},
    {"</TOOLCALL>", kMarkSectionEnd, kFormCapitals},
    {"functools[", kTriggersSection, kFormFunctools, kListBegun},
    {"<|python_tag|>", kTriggersSection, kFormPythonTag},
    {"<|START_ACTION|>", kTriggersSection, kFormCohere},
    {"<|END_ACTION|>", kMarkSectionEnd, kFormCohere},
    {"Action:", kTriggersSection, kFormAction},
    {"<|tool_calls_section_begin|>", kTriggersSection, kFormKimi, kEndsThought},
    {"<|tool_calls_section_end|>", kMarkSectionEnd, kFormKimi},
    {"<|open|>tools<|sep|>", kTriggersSection, kFormKimi3},
    {"<|close|>tools<|sep|>", kMarkSectionEnd, kFormKimi3},
    {"<" BAR "tool" LOW "calls" LOW "begin" BAR ">", kTriggersSection, kFormDeepSeek},
    {"<" BAR "tool" LOW "calls" LOW "end" BAR ">", kMarkSectionEnd, kFormDeepSeek},
    {"<|function_call|>", kTriggersSection, kFormGigaChat},
    {"<|message_sep|>\n\nfunction call<|role_sep|>", kTriggersSection, kFormGigaChat},
    {"function call<|role_sep|>", kTriggersSection, kFormGigaChat},
    {"<|tools_prefix|>", kTriggersSection, kFormApertus, kKeyed},
    {"<|tools_suffix|>", kMarkSectionEnd, kFormApertus},
    {"<|tool_calls|>", kTriggersSection, kFormSolar},
    {"<|calls|>", kMarkSectionEnd, kFormSolar},
    {"<tool_calls:opensource>", kTriggersSection, kFormHunyuan},
    {"</tool_calls:opensource>", kMarkSectionEnd, kFormHunyuan},
    {"<ifm|tool_calls>", kTriggersSection, kFormHorizon},
    {"</ifm|tool_calls>", kMarkSectionEnd, kFormHorizon},

    // Calls.
    {"<function=", kMarkCall, kHasFunctionTag, 0, '>'},
    {"<function=", kTriggersCall, kFormFunctionTag, 0, '>'},
    {"</function>", kMarkCallEnd, kHasFunctionTag | kFormNamedTag},
    {"<function name=\"", kTriggersCall, kFormNamedTag, 0, '"', ">"},
    {"<invoke name=\"", kMarkCall, kHasInvokeTag, 0, '"', ">"},
    {"</invoke>", kMarkCallEnd, kHasInvokeTag},
    {"<" DSML "invoke name=\"", kMarkCall, kFormDsml, 0, '"', ">"},
    {"</" DSML "invoke>", kMarkCallEnd, kFormDsml},
    {"<atem:invoke name=\"", kMarkCall, kFormAtem, 0, '"', ">"},
    {"</atem:invoke>", kMarkCallEnd, kFormAtem},
    {MINIMAX "<invoke name=\"", kMarkCall, kFormMiniMax3, 0, '"', ">"},
    {MINIMAX "</invoke>", kMarkCallEnd, kFormMiniMax3},
    {"<|open|>call tool=\"", kMarkCall, kFormKimi3, 0, '"', "<|sep|>"},
    {"<|close|>call<|sep|>", kMarkCallEnd, kFormKimi3},
    {"<|tool_call_begin|>", kTriggersCall, kFormKimi, kEndsThought},
    {"<|tool_call_argument_begin|>", kMarkArguments, kFormKimi},
    {"<|tool_call_end|>", kMarkCallEnd, kFormKimi},
    {"<" BAR "tool" LOW "call" LOW "begin" BAR ">", kTriggersCall, kFormDeepSeek},
    {"<" BAR "tool" LOW "sep" BAR ">", kMarkArguments | kMarkName, kFormDeepSeek},
    {"<" BAR "tool" LOW "call" LOW "end" BAR ">", kMarkCallEnd, kFormDeepSeek},
    {"<|tool_call:begin|>", kTriggersCall, kFormSolar},
    {"<|tool_call:name|>", kMarkName, kFormSolar},
    {"<|tool_call:args|>", kMarkArguments, kFormSolar},
    {"<|tool_call:end|>", kMarkCallEnd, kFormSolar},
    {"[ARGS]", kMarkArguments, kFormMistral},
    {"[CALL_ID]", kMarkId, kFormMistral},
    {"<|channel|>commentary to=functions.", kTriggersCall, kFormHarmony, 0, '\0', "<|message|>"},
    {"<|channel|>analysis to=functions.", kTriggersCall, kFormHarmony, 0, '\0', "<|message|>"},
    {"<|start|>assistant to=functions.", kTriggersCall, kFormHarmony, 0, '\0', "<|message|>"},
    {" to=functions.", kTriggersCall, kFormHarmony, kAtStart, '\0', "<|message|>"},
    {"<|call|>", kMarkSectionEnd, kFormHarmony},
    {">>>", kTriggersCall, kFormRecipient},
    {"<tool_call:opensource>", kTriggersCall, kFormHunyuan},
    {"</tool_call:opensource>", kMarkCallEnd, kFormHunyuan},
    {"<tool_sep:opensource>", kMarkArguments, kFormHunyuan},
    {"<ifm|tool_call>", kTriggersCall, kFormHorizon},
    {"</ifm|tool_call>", kMarkCallEnd, kFormHorizon},

    // Parameters.
    {"<parameter=", kMarkParameter, kHasFunctionTag, kTrimsLine, '>', nullptr, "</parameter>"},
    {"<parameter name=\"", kMarkParameter, kHasInvokeTag, kCData, '"', ">", "</parameter>"},
    {"<param name=\"", kMarkParameter, kFormNamedTag, kCData, '"', ">", "</param>"},
    {"<" DSML "parameter name=\"", kMarkParameter, kFormDsml, 0, '"', ">", "</" DSML "parameter>"},
    {"<atem:parameter name=\"", kMarkParameter, kFormAtem, 0, '"', ">", "</atem:parameter>"},
    {MINIMAX "<", kMarkParameter, kFormMiniMax3, kNests, '>', nullptr, MINIMAX "</", ">"},
    {"<|open|>argument key=\"", kMarkParameter, kFormKimi3, 0, '"', "<|sep|>", "<|close|>argument<|sep|>"},
    {"<arg_key>", kMarkParameter, kFormToolCall, 0, '<', "<arg_value>", "</arg_value>"},
    {"<arg_key:opensource>", kMarkParameter, kFormHunyuan, 0, '<', "<arg_value:opensource>", "</arg_value:opensource>"},
    {"<ifm|arg_key>", kMarkParameter, kFormHorizon, 0, '<', "<ifm|arg_value>", "</ifm|arg_value>"},

    // Not part of an answer.
    {"```", kMarkFence, kAll},
    {"<|eom_id|>", kMarkSkip, kFormPythonTag},
    {"<|eot_id|>", kMarkSkip, kFormPythonTag},
    {"<|START_RESPONSE|>", kMarkSkip, kFormCohere},
    {"<|END_RESPONSE|>", kMarkSkip, kFormCohere},
    {"<|START_TEXT|>", kMarkSkip, kFormCohere},
    {"<|END_TEXT|>", kMarkSkip, kFormCohere},
    {"<|content|>", kMarkSkip, kFormSolar},
    {"<|begin|>assistant", kMarkSkip, kFormSolar},
    {"<|channel|>final<|message|>", kMarkSkip, kFormHarmony},
    {"<|channel|>final", kMarkSkip, kFormHarmony, 0, '\0', "<|message|>"},
    {"<|channel|>commentary<|message|>", kMarkSkip, kFormHarmony},
    {"<|channel|>commentary <|constrain|>", kMarkSkip, kFormHarmony, 0, '\0', "<|message|>"},
    {"<|start|>assistant", kMarkSkip, kFormHarmony},
    {"<|return|>", kMarkSkip, kFormHarmony},
    {"<|start|>assistant to=", kMarkSkip, kFormAtem, 0, '\0', "<|message|>"},
    {" to=", kMarkSkip, kFormAtem, kAtStart, '\0', "<|message|>"},
    {"[END FINAL RESPONSE]", kMarkSkip, kFormFinalResponse},
    {"<|open|>response<|sep|>", kMarkSkip, kFormKimi3},
    {"<|close|>response<|sep|>", kMarkSkip, kFormKimi3},
    {"<|close|>message<|sep|>", kMarkSkip, kFormKimi3},
};
// clang-format on
const uint8_t kMarkCount = sizeof(kMarks) / sizeof(kMarks[0]);
static_assert(sizeof(kMarks) / sizeof(kMarks[0]) <= kMostMarks, "raise kMostMarks");

ReplyForms formsOfTemplate(const char* text, size_t bytes) {
  bytes = std::min(bytes, kMostTemplate);
  ReplyForms forms = 0;
  for (const Speaks& speaks : kSpeaks) {
    forms |= contains(text, bytes, speaks.text) ? speaks.forms : 0;
  }
  const ReplyForms of_no_calls =
      kFormThinkTag | kFormThinkingTag | kFormFinalResponse | kFormArgsMark | kFormIdMark;
  return (forms & ~of_no_calls) == 0 ? forms | formsOfAnything() : forms;
}

ReplyForms formsOfFormat(const char* name) {
  for (const Speaks& format : kFormats) {
    if (std::strcmp(name, format.text) == 0) {
      return format.forms;
    }
  }
  return formsOfAnything();
}

const Mark* opensThought(const char* text, size_t bytes, ReplyForms forms) {
  while (bytes > 0 && std::strchr(" \t\r\n", text[bytes - 1]) != nullptr) {
    --bytes;
  }
  for (const Mark& mark : kMarks) {
    const bool counts =
        (mark.kinds & kMarkThought) != 0 && (mark.forms & (forms | kFormThinkTag)) != 0;
    size_t of_mark = std::strlen(mark.text);
    while (counts && of_mark > 0 && mark.text[of_mark - 1] == '\n') {
      --of_mark;
    }
    if (counts && bytes >= of_mark &&
        std::memcmp(text + bytes - of_mark, mark.text, of_mark) == 0) {
      return &mark;
    }
  }
  return nullptr;
}

// The next mark in the table that ends a thought of its family.
const char* endOfThought(const Mark* opened) {
  const Mark* mark = opened != nullptr ? opened : kMarks;
  while ((mark->kinds & kMarkThoughtEnd) == 0 ||
         (opened != nullptr && (mark->forms & opened->forms) == 0)) {
    ++mark;
  }
  return mark->text;
}

ReplyForms formsOfAnything() { return kUnmistakable | kBare | kFormThinkTag; }

}  // namespace oriel_internal
