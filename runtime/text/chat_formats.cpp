// What each chat format writes, as its published template does.
#include <cstring>

#include "text/chat.h"

namespace oriel_internal {
namespace {

constexpr MessageFrame kChatMlFrame = {"<|im_start|>{role}\n", "<|im_end|>\n", kTrimNone};
constexpr MessageFrame kLlama3Frame = {"<|start_header_id|>{role}<|end_header_id|>\n\n",
                                       "<|eot_id|>", kTrimBoth};
constexpr MessageFrame kGemmaUser = {"<start_of_turn>user\n", "<end_of_turn>\n", kTrimBoth};
constexpr MessageFrame kGemmaModel = {"<start_of_turn>model\n", "<end_of_turn>\n", kTrimBoth};
constexpr MessageFrame kPhiFrame = {"<|{role}|>\n", "<|end|>\n", kTrimNone};
constexpr MessageFrame kGraniteFrame = {"<|start_of_role|>{role}<|end_of_role|>",
                                        "<|end_of_text|>\n", kTrimNone};
constexpr MessageFrame kZephyrFrame = {"<|{role}|>\n", "{eos}\n", kTrimNone};

constexpr DefaultSystemMarks kChatMlMarks = {"<|im_start|>system\n", "", "<|im_end|>"};
constexpr DefaultSystemMarks kGraniteMarks = {"default_system_message = '", "", "' %}"};
constexpr DefaultSystemMarks kMistralMarks = {"set default_system_message = '", "", "' %}"};
constexpr DefaultSystemMarks kSmolLm3Marks = {
    "'", "You are a helpful AI assistant named SmolLM, trained by Hugging Face. ", "\n\n'"};

constexpr SystemSwitches kSmolLm3Switches = {
    "/think", "/no_think", "/system_override", {"<|im_start|>system\n", "<|im_end|>\n", kTrimEnd},
    "/think", "/no_think"};
constexpr SystemSwitches kGemma4Switches = {"<|think|>", nullptr, nullptr, {}, "<|think|>\n", ""};

constexpr ChatFormat chatMl(const char* name) {
  ChatFormat format;
  format.name = name;
  format.system = format.later_system = format.user = format.assistant = kChatMlFrame;
  format.other = kChatMlFrame;
  format.generation = "<|im_start|>assistant\n";
  format.reply_end = "<|im_end|>\n";
  format.marks = &kChatMlMarks;
  return format;
}

constexpr ChatFormat smolLm2() {
  ChatFormat format = chatMl("smollm2");
  format.default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
  return format;
}

constexpr ChatFormat smolLm3(const char* name, const char* system_open) {
  ChatFormat format = chatMl(name);
  format.later_system = format.other = MessageFrame();
  format.system = {system_open, "\n\n<|im_end|>\n", kTrimEnd};
  format.default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face.";
  format.default_system_no_think = format.default_system;
  format.marks = &kSmolLm3Marks;
  format.switches = &kSmolLm3Switches;
  format.generation_no_think = "<|im_start|>assistant\n<think>\n\n</think>\n";
  format.no_think_answer = "<think>\n\n</think>\n";
  format.date_style = DateStyle::kLongMonth;
  return format;
}

constexpr ChatFormat qwen2() {
  ChatFormat format = chatMl("qwen2.5");
  format.other = MessageFrame();
  format.default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
  return format;
}

constexpr ChatFormat qwen3(const char* name) {
  ChatFormat format = chatMl(name);
  format.other = MessageFrame();
  format.marks = nullptr;
  format.generation_no_think = "<|im_start|>assistant\n<think>\n\n</think>\n\n";
  format.thoughts = Thoughts::kLastHasBlock;
  return format;
}

constexpr ChatFormat qwen3Thinking() {
  ChatFormat format = qwen3("qwen3-thinking");
  format.generation = "<|im_start|>assistant\n<think>\n";
  format.generation_no_think = nullptr;  // it cannot be switched off
  return format;
}

// Names its maker only where there are tools.
constexpr ChatFormat qwen3Coder() {
  ChatFormat format = chatMl("qwen3-coder");
  format.marks = nullptr;
  return format;
}

constexpr ChatFormat qwen35() {
  ChatFormat format = qwen3("qwen3.5");
  format.system.trim = format.user.trim = format.assistant.trim = kTrimBoth;
  format.later_system = MessageFrame();
  format.generation = "<|im_start|>assistant\n<think>\n";
  return format;
}

// Says nothing about thinking unless it is told to: the model decides.
constexpr ChatFormat miniCpm5() {
  ChatFormat format = qwen3("minicpm5");
  format.begin = "<s>";
  format.thoughts = Thoughts::kLastMayHave;
  return format;
}

constexpr ChatFormat lfm2(const char* name, Thoughts thoughts) {
  ChatFormat format = chatMl(name);
  format.begin = "<|startoftext|>";
  format.other = MessageFrame();
  format.marks = nullptr;
  format.skips_empty_system = true;
  format.thoughts = thoughts;
  return format;
}

constexpr ChatFormat olmo3() {
  ChatFormat format = chatMl("olmo3");
  format.other = MessageFrame();
  format.default_system =
      "You are a helpful function-calling AI assistant. You do not currently have access to any "
      "functions. <functions></functions>";
  format.final_answer_close = "{eos}";
  return format;
}

// What it says to a given system message its own already holds or leaves out.
constexpr ChatFormat olmo3Think() {
  ChatFormat format = olmo3();
  format.name = "olmo3-think";
  format.system.close =
      " You do not currently have access to any functions. <functions></functions><|im_end|>\n";
  format.later_system = format.system;
  format.default_system = nullptr;
  format.default_system_close = "<|im_end|>\n";
  format.generation = "<|im_start|>assistant\n<think>";
  return format;
}

constexpr ChatFormat granite4() {
  ChatFormat format;
  format.name = "granite4";
  format.system = format.later_system = format.user = format.assistant = kGraniteFrame;
  format.generation = "<|start_of_role|>assistant<|end_of_role|>";
  format.reply_end = "<|end_of_text|>\n";
  format.marks = &kGraniteMarks;
  format.skips_empty_system = true;
  return format;
}

constexpr ChatFormat granite3(const char* name, const char* default_system) {
  ChatFormat format = granite4();
  format.name = name;
  format.other = kGraniteFrame;
  format.default_system = default_system;
  format.marks = nullptr;
  format.skips_empty_system = false;
  format.date_style = DateStyle::kMonthFirst;
  return format;
}

constexpr ChatFormat exaone4() {
  ChatFormat format;
  format.name = "exaone4";
  format.system = format.later_system =
      format.user = {"[|{role}|]\n", "[|endofturn|]\n", kTrimNone};
  format.assistant = {"[|assistant|]\n<think>\n\n</think>\n\n", "[|endofturn|]\n", kTrimNone};
  format.thoughts = Thoughts::kTrimmed;
  format.generation = "[|assistant|]\n<think>\n";
  format.generation_no_think = "[|assistant|]\n<think>\n\n</think>\n\n";
  format.reply_end = "[|endofturn|]\n";
  return format;
}

constexpr ChatFormat ernie45() {
  ChatFormat format;
  format.name = "ernie4.5";
  format.begin = "<|begin_of_sentence|>";
  format.system = format.later_system = {"", "\n", kTrimNone};
  format.user = {"User: ", "\n", kTrimNone};
  format.assistant = {"Assistant: ", "<|end_of_sentence|>", kTrimNone};
  format.generation = "Assistant: ";
  format.reply_end = "<|end_of_sentence|>";
  return format;
}

constexpr ChatFormat hunyuanDense() {
  ChatFormat format;
  format.name = "hunyuan-dense";
  format.begin = "<\xEF\xBD\x9Chy_begin\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>";
  format.system = {"",
                   "<\xEF\xBD\x9Chy_place\xE2\x96\x81holder\xE2\x96\x81no\xE2\x96\x81"
                   "3\xEF\xBD\x9C>",
                   kTrimNone};
  format.user = {"<\xEF\xBD\x9Chy_User\xEF\xBD\x9C>", "", kTrimNone};
  format.assistant = {"<\xEF\xBD\x9Chy_Assistant\xEF\xBD\x9C>",
                      "<\xEF\xBD\x9Chy_place\xE2\x96\x81holder\xE2\x96\x81no\xE2\x96\x81"
                      "2\xEF\xBD\x9C>",
                      kTrimNone};
  format.generation = "<\xEF\xBD\x9Chy_Assistant\xEF\xBD\x9C>";
  format.reply_end =
      "<\xEF\xBD\x9Chy_place\xE2\x96\x81holder\xE2\x96\x81no\xE2\x96\x81"
      "2\xEF\xBD\x9C>";
  format.skips_empty_system = true;
  return format;
}

constexpr ChatFormat phi4() {
  ChatFormat format;
  format.name = "phi4";
  format.system = format.later_system = format.user =
      format.assistant = {"<|im_start|>{role}<|im_sep|>", "<|im_end|>", kTrimNone};
  format.generation = "<|im_start|>assistant<|im_sep|>";
  format.reply_end = "<|im_end|>";
  return format;
}

constexpr ChatFormat llama3() {
  ChatFormat format;
  format.name = "llama3";
  format.begin = "<|begin_of_text|>";
  format.system = format.later_system = format.user = format.assistant = kLlama3Frame;
  format.other = kLlama3Frame;
  format.generation = "<|start_header_id|>assistant<|end_header_id|>\n\n";
  format.reply_end = "<|eot_id|>";
  format.always_generates = true;
  return format;
}

constexpr ChatFormat llama32() {
  ChatFormat format = llama3();
  format.name = "llama3.2";
  format.system.open =
      "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
      "Today Date: {date}\n\n";
  format.default_system = "";
  format.always_generates = false;
  return format;
}

constexpr ChatFormat gemma2() {
  ChatFormat format;
  format.name = "gemma2";
  format.begin = "<bos>";
  // No system role: the text goes in front of the first question, and the whole is trimmed.
  format.system = {"<start_of_turn>user\n", "\n", kTrimStart};
  format.joined_user = {"", "<end_of_turn>\n", kTrimEnd};
  format.user = kGemmaUser;
  format.assistant = kGemmaModel;
  format.generation = "<start_of_turn>model\n";
  format.reply_end = "<end_of_turn>\n";
  format.alternates = true;
  return format;
}

constexpr ChatFormat gemma3() {
  ChatFormat format = gemma2();
  format.name = "gemma3";
  format.system = {"<start_of_turn>user\n", "\n\n", kTrimNone};
  format.joined_user = {"", "<end_of_turn>\n", kTrimBoth};
  return format;
}

constexpr ChatFormat gemma4() {
  ChatFormat format;
  format.name = "gemma4";
  format.begin = "<bos>";
  format.system = {"<|turn>system\n{mode}", "<turn|>\n", kTrimBoth};
  format.later_system = format.user = {"<|turn>{role}\n", "<turn|>\n", kTrimBoth};
  format.assistant = {"<|turn>model\n", "<turn|>\n", kTrimBoth};
  format.generation = "<|turn>model\n";
  format.generation_no_think = "<|turn>model\n<|channel>thought\n<channel|>";
  format.reply_end = "<turn|>\n";
  format.default_system = "";
  format.switches = &kGemma4Switches;
  format.thinks_if_told = true;
  format.thoughts = Thoughts::kChannelsTrimmed;
  return format;
}

// E2B and E4B were trained to answer at once.
constexpr ChatFormat gemma4Small() {
  ChatFormat format = gemma4();
  format.name = "gemma4-e";
  format.generation_no_think = nullptr;
  return format;
}

constexpr ChatFormat phi3() {
  ChatFormat format;
  format.name = "phi3";
  format.begin = "<s>";
  format.system = {"<|user|>\n", "\n", kTrimNone};
  // A question opens the answer in the same breath.
  format.user = {"<|user|>\n", "<|end|>\n<|assistant|>\n", kTrimNone};
  format.joined_user = {"", "<|end|>\n<|assistant|>\n", kTrimNone};
  format.assistant = {"", "<|end|>\n", kTrimNone};
  format.reply_end = "<|end|>\n";
  return format;
}

constexpr ChatFormat phi35() {
  ChatFormat format;
  format.name = "phi3.5";
  format.system = format.later_system = format.user = format.assistant = kPhiFrame;
  format.generation = "<|assistant|>\n";
  format.reply_end = "<|end|>\n";
  format.end = "<|endoftext|>";
  format.skips_empty_system = true;
  return format;
}

constexpr ChatFormat phi4Mini() {
  ChatFormat format;
  format.name = "phi4-mini";
  format.system = format.later_system = format.user =
      format.assistant = {"<|{role}|>", "<|end|>", kTrimNone};
  format.generation = "<|assistant|>";
  format.reply_end = "<|end|>";
  format.end = "<|endoftext|>";
  return format;
}

constexpr ChatFormat zephyr() {
  ChatFormat format;
  format.name = "zephyr";
  format.system = format.later_system = format.user = format.assistant = kZephyrFrame;
  format.generation = "<|assistant|>\n";
  format.reply_end = "{eos}\n";
  return format;
}

constexpr ChatFormat olmo2() {
  ChatFormat format;
  format.name = "olmo2";
  format.system = format.later_system = format.user = {"<|{role}|>\n", "\n", kTrimNone};
  format.assistant = {"<|assistant|>\n", "{eos}\n", kTrimNone};
  format.generation = "<|assistant|>\n";
  format.reply_end = "{eos}\n";
  format.final_answer_close = "{eos}";
  return format;
}

// Mistral's templates differ in the spaces at the joints only, and in which question gets the system text.
constexpr ChatFormat mistral(const char* name, const char* open, const char* close,
                             const char* answer_open) {
  ChatFormat format;
  format.name = name;
  format.begin = "<s>";
  format.system = {open, "\n\n", kTrimNone};
  format.user = {open, close, kTrimNone};
  format.joined_user = {"", close, kTrimNone};
  format.assistant = {answer_open, "{eos}", kTrimNone};
  format.reply_end = "{eos}";
  format.alternates = true;
  return format;
}

constexpr ChatFormat mistralV3() {
  ChatFormat format = mistral("mistral-v3", "[INST] ", "[/INST]", " ");
  format.assistant.trim = kTrimBoth;
  format.system_in_last_user = true;
  return format;
}

constexpr ChatFormat mistralNemo() {
  ChatFormat format = mistral("mistral-nemo", "[INST]", "[/INST]", "");
  format.system_in_last_user = true;
  return format;
}

constexpr ChatFormat mistralV7() {
  ChatFormat format = mistral("mistral-v7", "[INST]", "[/INST]", "");
  format.system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", kTrimNone};
  format.joined_user = MessageFrame();
  format.marks = &kMistralMarks;
  return format;
}

// For templates that nobody knows.
constexpr ChatFormat plain() {
  ChatFormat format;
  format.name = "plain";
  format.system = format.later_system = {"", "\n\n", kTrimNone};
  format.user = {"User: ", "\n", kTrimNone};
  format.assistant = {"Assistant: ", "\n", kTrimNone};
  format.generation = "Assistant:";
  format.reply_end = "\n";
  return format;
}

constexpr ChatFormat kFormats[] = {
    chatMl("chatml"),
    ernie45(),
    exaone4(),
    gemma2(),
    gemma3(),
    gemma4(),
    gemma4Small(),
    granite3(
        "granite3",
        "Knowledge Cutoff Date: April 2024.\nToday's Date: {date}.\nYou are Granite, developed by "
        "IBM. You are a helpful AI assistant."),
    granite3(
        "granite3.3",
        "Knowledge Cutoff Date: April 2024. Today's Date: {date}. You are Granite, developed by "
        "IBM. You are a helpful AI assistant."),
    granite4(),
    hunyuanDense(),
    lfm2("lfm2", Thoughts::kKept),
    lfm2("lfm2.5", Thoughts::kTrimmedButFinal),
    lfm2("lfm2.5-8b", Thoughts::kTrimmedEarlier),
    llama3(),
    llama32(),
    miniCpm5(),
    mistral("mistral-v1", " [INST] ", " [/INST]", " "),
    mistral("mistral-v2", "[INST] ", " [/INST]", ""),
    mistralV3(),
    mistralV7(),
    mistralNemo(),
    olmo2(),
    olmo3(),
    olmo3Think(),
    phi3(),
    phi35(),
    phi4(),
    phi4Mini(),
    plain(),
    qwen2(),
    qwen3("qwen3"),
    qwen3Coder(),
    qwen3Thinking(),
    qwen35(),
    smolLm2(),
    smolLm3(
        "smollm3",
        "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\nToday Date: {date}\n"
        "Reasoning Mode: {mode}\n\n## Custom Instructions\n\n"),
    smolLm3("smollm3-undated",
            "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n"
            "Reasoning Mode: {mode}\n\n## Custom Instructions\n\n"),
    zephyr(),
};

}  // namespace

const char kChatFormatNames[] =
    "chatml, ernie4.5, exaone4, gemma2, gemma3, gemma4, gemma4-e, granite3, granite3.3, granite4, "
    "hunyuan-dense, "
    "lfm2, "
    "lfm2.5, lfm2.5-8b, llama3, llama3.2, minicpm5, mistral-v1, mistral-v2, mistral-v3, "
    "mistral-v7, "
    "mistral-nemo, olmo2, olmo3, olmo3-think, phi3, phi3.5, phi4, phi4-mini, plain, qwen2.5, "
    "qwen3, "
    "qwen3-coder, qwen3-thinking, qwen3.5, smollm2, smollm3, smollm3-undated, zephyr";

const ChatFormat* chatFormatByName(const char* name) {
  for (const ChatFormat& format : kFormats) {
    if (name != nullptr && std::strcmp(name, format.name) == 0) {
      return &format;
    }
  }
  return nullptr;
}

}  // namespace oriel_internal
