// Chat formats: which one a template writes, whether it is proven to, and conversations in it, as a whole and message by
// message. An input: two bytes of choices, a template's text or a format's name, and behind lines of = a message each.
#include "chat/prove.h"
#include "chat/template_run.h"
#include "fuzz/checks.h"
#include "fuzz/fuzz.h"
#include "fuzz/words.h"
#include "support/chat_text.h"
#include "support/files.h"

namespace oriel_internal::fuzz::fuzz_chat {
namespace {

constexpr char kBetween[] = "\n=====\n";
constexpr size_t kMostMessages = 8;
constexpr size_t kHead = 2;

/// Role and text of each; what stands before ": " is the role.
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

/// A role ends at a NUL.
bool isRoleText(const test::ChatMessage& message) {
  return isRole(message.role.c_str(), std::strlen(message.role.c_str()));
}

bool known(Status status) {
  return status.ok() || status.code() == ORIEL_ERROR_ARGUMENT ||
         status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL;
}

/// Renders into exactly as much room as it asked for; less is said to be too little.
template <typename Render>
test::Piece pieceOf(Watch* watch, const Render& render) {
  test::Piece piece;
  piece.status = render(&piece.out);
  EXPECT_TRUE(known(piece.status)) << piece.status.code();
  if (piece.status.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    watch->ended(piece.status.code());
  }
  if (piece.status.ok() || piece.status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL) {
    const size_t needed = piece.out.needed;
    std::vector<char> room(needed);  // its own, so that a sanitizer sees a byte too many
    piece.out = {};
    piece.out.text = room.data();
    piece.out.capacity = needed;
    piece.status = render(&piece.out);
    EXPECT_TRUE(piece.status.ok()) << piece.status.code();
    EXPECT_EQ(needed, piece.out.needed);
    EXPECT_LE(piece.out.body, needed);
    piece.text.assign(room.begin(), room.end());
    for (uint32_t i = 0; i < piece.out.n_literal; ++i) {
      EXPECT_LE(piece.out.literal[i].begin, piece.out.literal[i].end);
      EXPECT_LE(piece.out.literal[i].end, needed);
      EXPECT_TRUE(i == 0 || piece.out.literal[i - 1].end <= piece.out.literal[i].begin);
    }
  }
  return piece;
}

/// What is marked as said was said; some formats leave out white space and words that switch thinking.
void checkLiterals(const test::Piece& piece, const std::string& said) {
  std::string all;
  for (uint32_t i = 0; i < piece.out.n_literal; ++i) {
    all += piece.literal(i);
  }
  EXPECT_TRUE(standsIn(all, said)) << all << " of " << said;
}

void renderWhole(const ChatTemplate& chat, const ChatOptions& options,
                 const std::vector<test::ChatMessage>& messages, bool generation) {
  Watch watch;
  const std::vector<oriel_internal::ChatMessage> list = test::messageList(messages);
  std::vector<TextRange> ranges(2 * list.size() + 1);
  RenderedConversation out;
  const auto render = [&] {
    return renderConversation(chat, options, list.data(), list.size(), generation, true,
                              watch.log(), &out);
  };
  const Status measured = render();
  EXPECT_TRUE(known(measured)) << measured.code();
  if (measured.code() == ORIEL_ERROR_ARGUMENT || measured.ok()) {
    watch.ended(measured.code());
  }
  if (measured.code() == ORIEL_ERROR_ARGUMENT) {
    return;
  }
  const size_t needed = out.needed;
  std::vector<char> room(needed);
  out = {};
  out.text = room.data();
  out.capacity = needed;
  out.literals = ranges.data();
  EXPECT_TRUE(render().ok());
  EXPECT_EQ(needed, out.needed);
  EXPECT_LE(out.n_literals, ranges.size());
  size_t end = 0;
  for (size_t i = 0; i < out.n_literals; ++i) {
    EXPECT_TRUE(end <= ranges[i].begin && ranges[i].begin <= ranges[i].end &&
                ranges[i].end <= needed);
    end = ranges[i].end;
  }
}

void renderPieces(const ChatTemplate& chat, ChatOptions options,
                  const std::vector<test::ChatMessage>& messages) {
  Watch watch;
  ChatPlace place;
  place.begins = place.leads = place.writes_bos = true;
  if (messages.empty()) {
    pieceOf(&watch, [&](RenderedText* out) { return renderBeginning(chat, options, place, out); });
  }
  for (const test::ChatMessage& message : messages) {
    const test::Piece piece = pieceOf(&watch, [&](RenderedText* out) {
      return renderMessage(chat, options, place, message.role.c_str(), message.text.data(),
                           message.text.size(), watch.log(), out);
    });
    if (!piece.status.ok()) {
      continue;
    }
    EXPECT_TRUE(isRoleText(message)) << message.role;
    checkLiterals(piece, message.text);
    // Long texts stay where they are: the parts say the same.
    TextParts parts;
    std::vector<char> room(piece.out.needed);
    RenderedText split;
    split.text = room.data();
    split.capacity = room.size();
    split.parts = &parts;
    EXPECT_TRUE(renderMessage(chat, options, place, message.role.c_str(), message.text.data(),
                              message.text.size(), watch.log(), &split)
                    .ok());
    EXPECT_EQ(piece.out.needed, split.needed);
    EXPECT_LE(split.stored, split.needed);
    place.begins = place.leads = false;
    place.turn_open = piece.out.turn_open;
    options.thinking = piece.out.thinking;
  }
  pieceOf(&watch, [&](RenderedText* out) { return renderGeneration(chat, options, place, out); });
  const test::Piece end =
      pieceOf(&watch, [&](RenderedText* out) { return renderReplyEnd(chat, out); });
  EXPECT_LE(end.text.size(), kMaxReplyEnd);
}

}  // namespace

ORIEL_FUZZ(chat) {
  Input input(data, size);
  const uint8_t which = input.byte();
  const uint8_t wishes = input.byte();
  const std::vector<std::string> parts = partsOf(input.takeRest(), kBetween, 1 + kMostMessages);
  const std::vector<test::ChatMessage> messages = messagesOf(parts);
  const std::vector<std::string> names = test::formatNames();
  Watch watch;
  ChatTemplate chat = recogniseChatTemplate(parts[0].data(), parts[0].size());
  EXPECT_TRUE(chat.format != nullptr);
  if (which < names.size()) {
    chat = chatTemplateOf(*chatFormatByName(names[which].c_str()));
  } else {
    EXPECT_EQ(ORIEL_OK, watch.ended(settleChat(*watch.allocator(), {}, watch.log(), &chat).code()));
    watch.expectPeakBelow(templateScratchBytes(parts[0].size()));
  }
  ChatTemplate chosen;
  const std::string wanted = parts[0].c_str();
  (void)watch.ended(chooseChat(chat, wanted.c_str(), watch.log(), &chosen).code());
  ChatOptions options;
  options.thinking = (wishes & 1) == 0;
  options.thinking_said = (wishes & 2) != 0;
  options.date = (wishes & 4) != 0 ? 20240229 : 20261122;
  chat.always_generates = (wishes & 8) != 0;
  chat.writes_end = (wishes & 16) != 0;
  if (!chat.runs && chat.format != nullptr) {
    pastFirstCheck();
    renderWhole(chat, options, messages, (wishes & 32) != 0);
    renderPieces(chat, options, messages);
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
  const std::vector<std::string> names = test::formatNames();
  for (size_t i = 0; i < names.size(); ++i) {
    for (const char wishes : {'\0', '\x21', '\x3F'}) {
      seeds->push_back(std::string(1, static_cast<char>(i)) + wishes + names[i] + talk);
      seeds->push_back(std::string(1, static_cast<char>(i)) + wishes + names[i] + kBetween +
                       "user: Hi");
    }
    seeds->push_back(std::string(1, static_cast<char>(i)) + '\0' + names[i]);
    // A line that quotes a role still says what to do.
    seeds->push_back(std::string(1, static_cast<char>(i)) + '\0' + names[i] + kBetween +
                     std::string(2000, 'r') + ": Hi");
  }
  const std::string by_template("\xFF\0", kHead);
  for (const std::string& file : readFiles(ORIEL_SOURCE_DIR "/tests/fuzz/templates")) {
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
