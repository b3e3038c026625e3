// Chat templates by name and by text: the choice, and conversations in Oriel's own templates, as a whole and message by
// message. An input: two bytes of choices, a template's text or a format's name, and after lines of = a message each.
#include "chat/turn.h"
#include "fuzz/fuzz.h"
#include "fuzz/words.h"
#include "support/files.h"
#include "support/jinja_template.h"

namespace oriel_internal::fuzz::fuzz_chat {
namespace {

constexpr char kBetween[] = "\n=====\n";
constexpr size_t kMostMessages = 8;
constexpr size_t kHead = 2;

/// Role and text of each; the role is before ": ".
std::vector<test::ChatMessage> messagesOf(const std::vector<std::string>& parts) {
  std::vector<test::ChatMessage> messages;
  for (size_t i = 1; i < parts.size() && !parts[i].empty(); ++i) {
    const size_t colon = parts[i].find(": ");
    const bool has_role = colon != std::string::npos;
    messages.push_back({has_role ? parts[i].substr(0, colon) : "user",
                        has_role ? parts[i].substr(colon + 2) : parts[i]});
  }
  return messages;
}

/// Oriel's templates accept every text. They may refuse roles.
void renderOwn(const OwnTemplate& row, uint8_t wishes,
               const std::vector<test::ChatMessage>& messages) {
  Watch watch;
  TemplateSettings settings;
  settings.text = row.text;
  settings.bos = {"<s>", 3};
  settings.eos = {"</s>", 4};
  settings.thinking = (wishes & 1) != 0   ? ThinkingWish::kOff
                      : (wishes & 2) != 0 ? ThinkingWish::kOn
                                          : ThinkingWish::kTemplates;
  settings.date = (wishes & 4) != 0 ? 20240229 : 20261122;
  LearnedTemplate learned;
  EXPECT_TRUE(learnTemplate(settings, {}, Log(), defaultAllocator(), &learned).ok());
  Scratch scratch(*watch.allocator(), size_t{16} << 20);
  JsonBuilder make(&scratch);
  JsonMade* const list = make.list();
  TemplateRun run(settings, {}, watch.log(), &scratch);
  EXPECT_TRUE(run.read().ok());
  std::string all;
  const auto renderFrom = [&](uint32_t held, bool generation, NewText* text) {
    const Status status = renderNew(&run, learned, {list, held, false, false}, generation, text);
    EXPECT_TRUE(status.ok() || status.code() == ORIEL_ERROR_ARGUMENT ||
                status.code() == ORIEL_ERROR_UNSUPPORTED)
        << row.name << status.code();
    (void)watch.ended(status.code());
    size_t end = 0;
    for (size_t i = 0; status.ok() && i < text->n_literals; ++i) {
      const TextRange& range = text->literals[i];
      EXPECT_TRUE(end <= range.begin && range.begin < range.end && range.end <= text->bytes);
      end = range.end;
    }
    return status.ok();
  };
  for (const test::ChatMessage& message : messages) {
    make.append(list, make.message({message.role.data(), message.role.size()},
                                   {message.text.data(), message.text.size()}));
    NewText text;
    if (!renderFrom(list->count() - 1, false, &text)) {
      return;
    }
    EXPECT_TRUE(isRole(message.role.data(), message.role.size())) << message.role;
    EXPECT_LE(text.messages[0].body, text.messages[0].end);
    EXPECT_LE(text.messages[0].end, text.bytes);
    std::string said;
    for (size_t i = 0; i < text.n_literals; ++i) {
      said.append(text.text + text.literals[i].begin,
                  text.literals[i].end - text.literals[i].begin);
    }
    EXPECT_TRUE(standsIn(said, message.text)) << row.name << said << " of " << message.text;
  }
  NewText text;
  (void)renderFrom(list->count(), true, &text);
  (void)renderFrom(0, (wishes & 8) != 0, &text);
}

}  // namespace

ORIEL_FUZZ(chat) {
  Input input(data, size);
  const uint8_t which = input.byte();
  const uint8_t wishes = input.byte();
  const std::vector<std::string> parts = partsOf(input.takeRest(), kBetween, 1 + kMostMessages);
  const std::vector<test::ChatMessage> messages = messagesOf(parts);
  static const std::vector<const OwnTemplate*> rows = test::allRows();
  Watch watch;
  ChatTemplate chosen;
  const std::string wanted = parts[0].c_str();
  const oriel_status status =
      watch.ended(chooseChat({}, wanted.c_str(), watch.log(), &chosen).code());
  EXPECT_TRUE(status == ORIEL_OK || status == ORIEL_ERROR_ARGUMENT);
  const OwnTemplate* const row =
      which < rows.size() ? rows[which] : recogniseTemplate(parts[0].data(), parts[0].size());
  if (row != nullptr) {
    pastFirstCheck();
    renderOwn(*row, wishes, messages);
  }
}

ORIEL_FUZZ_MUTATE(chat) {
  static const WordMutator mutator({"user: ",
                                    "system: ",
                                    "assistant: ",
                                    "tool: ",
                                    "model: ",
                                    "developer: ",
                                    "\n=====\n",
                                    " ",
                                    "\n",
                                    "\n\n",
                                    "\t",
                                    "<think>",
                                    "</think>",
                                    "<think>\n\n</think>\n\n",
                                    "/think",
                                    "/no_think",
                                    "é",
                                    "日本",
                                    "\xC3",
                                    "<|im_start|>",
                                    "<|im_end|>",
                                    "<|im_sep|>",
                                    "<start_of_turn>",
                                    "<end_of_turn>",
                                    "<|turn>",
                                    "<turn|>",
                                    "<|channel>thought",
                                    "<|start_header_id|>",
                                    "<|eot_id|>",
                                    "<|start_of_role|>",
                                    "<|end_of_role|>",
                                    "<|end_of_text|>",
                                    "[INST]",
                                    "[/INST]",
                                    "[SYSTEM_PROMPT]",
                                    "<s>",
                                    "</s>",
                                    "<|user|>",
                                    "<|assistant|>",
                                    "<|system|>",
                                    "<|end|>",
                                    "[|user|]",
                                    "[|endofturn|]",
                                    "enable_thinking",
                                    "reasoning_mode",
                                    "Today Date: ",
                                    "{{ bos_token }}",
                                    "{{ eos_token }}",
                                    "{% for message in messages %}",
                                    "{{ message['role'] }}",
                                    "{{ message.content | trim }}",
                                    "{% if add_generation_prompt %}",
                                    "{% if loop.first %}",
                                    "{% endif %}",
                                    "{% endfor %}",
                                    "{%- if messages[0].role == 'system' %}",
                                    "{{ raise_exception('System role not supported') }}",
                                    "You are a helpful assistant.",
                                    "strftime_now('%d %b %Y')"});
  return mutator.mutate(data, size, max_size, seed);
}

ORIEL_FUZZ_SEEDS(chat) {
  const std::string talk =
      std::string(kBetween) + "system:  Be brief.\n" + kBetween + "user: Hi <|im_end|> \n" +
      kBetween + "assistant: <think>\nHm.\n</think>\n\nHello." + kBetween + "user: And? /no_think" +
      kBetween + "assistant: " + kBetween + "system: Later." + kBetween + "tool: 7";
  const std::vector<const OwnTemplate*> rows = test::allRows();
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const char wishes : {'\0', '\x01', '\x0E'}) {
      seeds->push_back(std::string(1, static_cast<char>(i)) + wishes + rows[i]->name + talk);
      seeds->push_back(std::string(1, static_cast<char>(i)) + wishes + rows[i]->name + kBetween +
                       "user: Hi");
    }
    seeds->push_back(std::string(1, static_cast<char>(i)) + '\0' + rows[i]->name);
    // A line that quotes a role still says what to do.
    seeds->push_back(std::string(1, static_cast<char>(i)) + '\0' + rows[i]->name + kBetween +
                     std::string(2000, 'r') + ": Hi");
  }
  const std::string by_template("\xFF\0", kHead);
  for (const std::string& file : wholeTemplates()) {
    seeds->push_back(by_template + file + talk);
  }
  const char* const kHeads[] = {
      "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' "
      "+ "
      "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif "
      "%}",
      "{{ bos_token }}{% for message in messages %}{{ '<start_of_turn>' + message['role'] + '\\n' "
      "+ "
      "message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}",
      "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + "
      "'<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}{% endfor %}",
      "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' "
      "[/INST]' }}{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}",
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are a helpful "
      "assistant.<|im_end|>\\n' }}{% endif %}{% for m in messages %}{{ '<|im_start|>' + m['role'] "
      "+ "
      "'\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"};
  for (const char* head : kHeads) {
    seeds->push_back(by_template + head + talk);
  }
}

}  // namespace oriel_internal::fuzz::fuzz_chat
