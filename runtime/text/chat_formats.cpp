// What each chat format writes, as its published template does.
#include <cstring>

#include "text/chat.h"

namespace oriel {
namespace {

constexpr MessageFrame kChatMlFrame = {"<|im_start|>{role}\n", "<|im_end|>\n", kTrimNone};
constexpr MessageFrame kLlama3Frame = {"<|start_header_id|>{role}<|end_header_id|>\n\n",
                                       "<|eot_id|>", kTrimBoth};
constexpr MessageFrame kGemmaUser = {"<start_of_turn>user\n", "<end_of_turn>\n", kTrimBoth};
constexpr MessageFrame kGemmaModel = {"<start_of_turn>model\n", "<end_of_turn>\n", kTrimBoth};
constexpr MessageFrame kPhiFrame = {"<|{role}|>\n", "<|end|>\n", kTrimNone};
constexpr MessageFrame kZephyrFrame = {"<|{role}|>\n", "{eos}\n", kTrimNone};

constexpr DefaultSystemMarks kChatMlMarks = {"<|im_start|>system\n", "", "<|im_end|>"};
constexpr DefaultSystemMarks kSmolLm3Marks = {
    "'", "You are a helpful AI assistant named SmolLM, trained by Hugging Face. ", "\n\n'"};

constexpr SystemSwitches kSmolLm3Switches = {
    "/think", "/no_think", "/system_override", {"<|im_start|>system\n", "<|im_end|>\n", kTrimEnd}};

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

constexpr ChatFormat smolLm3() {
  ChatFormat format = chatMl("smollm3");
  format.later_system = format.other = MessageFrame();
  format.system = {
      "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\nToday Date: {date}\n"
      "Reasoning Mode: {mode}\n\n## Custom Instructions\n\n",
      "\n\n<|im_end|>\n", kTrimEnd};
  format.default_system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face.";
  format.default_system_no_think = format.default_system;
  format.marks = &kSmolLm3Marks;
  format.switches = &kSmolLm3Switches;
  format.generation_no_think = "<|im_start|>assistant\n<think>\n\n</think>\n";
  format.no_think_answer = "<think>\n\n</think>\n";
  format.long_month = true;
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
  format.drops_thinking = true;
  return format;
}

constexpr ChatFormat qwen3Thinking() {
  ChatFormat format = qwen3("qwen3-thinking");
  format.generation = "<|im_start|>assistant\n<think>\n";
  format.generation_no_think = nullptr;  // it cannot be switched off
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
    gemma2(),
    gemma3(),
    llama3(),
    llama32(),
    mistral("mistral-v1", " [INST] ", " [/INST]", " "),
    mistral("mistral-v2", "[INST] ", " [/INST]", ""),
    mistralV3(),
    mistralV7(),
    mistralNemo(),
    phi3(),
    phi35(),
    phi4(),
    phi4Mini(),
    plain(),
    qwen2(),
    qwen3("qwen3"),
    qwen3Thinking(),
    smolLm2(),
    smolLm3(),
    zephyr(),
};

}  // namespace

const char kChatFormatNames[] =
    "chatml, gemma2, gemma3, llama3, llama3.2, mistral-v1, mistral-v2, mistral-v3, mistral-v7, "
    "mistral-nemo, phi3, phi3.5, phi4, phi4-mini, plain, qwen2.5, qwen3, qwen3-thinking, smollm2, "
    "smollm3, zephyr";

const ChatFormat* chatFormatByName(const char* name) {
  for (const ChatFormat& format : kFormats) {
    if (name != nullptr && std::strcmp(name, format.name) == 0) {
      return &format;
    }
  }
  return nullptr;
}

}  // namespace oriel
