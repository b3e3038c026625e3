// The part of a session that speaks in turns.
#include <cstring>

#include "exec/session.h"
#include "text/utf8.h"

namespace oriel_internal {

ChatOptions Session::chatOptions() const {
  ChatOptions options = context_.chat_options;
  options.thinking = options.thinking != switched_thinking_;
  return options;
}

ChatPlace Session::chatPlace() const {
  ChatPlace place;
  place.begins = place.leads = position_ == 0;
  place.turn_open = turn_open_;
  return place;
}

// What SPM needs to know: behind a control token it puts a space. Where a rewind led, one stands unless the
// user's turn goes on.
bool Session::continuesText() const {
  return position_ != 0 &&
         (last_token_ >= 0 ? !context_.tokenizer->isControl(last_token_) : turn_open_);
}

// The template writes a BOS that the model does not ask for by itself.
int32_t Session::missingBos() const {
  const bool writes = context_.chat.begin[0] != '\0';
  return position_ == 0 && writes && !context_.tokenizer->addBos() ? context_.tokenizer->bosId()
                                                                   : -1;
}

Status Session::appendRendered(const TextParts& text, const TextRange* literals, size_t n_literals,
                               Workspace* workspace) {
  EncodeOptions options;
  options.special = true;
  options.bos = position_ == 0;
  options.continues = continuesText();
  options.literal = literals;
  options.n_literal = n_literals;
  options.first_id = missingBos();
  return appendEncoded(text, options, workspace);
}

Status Session::countTokens(const char* text, size_t bytes, Workspace* workspace,
                            size_t* count) const {
  EncodeOptions options;
  options.special = true;
  options.bos = position_ == 0;
  options.continues = continuesText();
  const Status status =
      context_.tokenizer->encode(text, bytes, options, workspace, context_.log, nullptr, 0, count);
  *count += missingBos() >= 0 ? 1 : 0;
  return status.code() == ORIEL_ERROR_BUFFER_TOO_SMALL ? kOk : status;
}

void Session::endsWith(const JsonText& role) {
  const LastMessage last = lastMessageOf(role);
  has_system_ =
      has_system_ || (last == LastMessage::kSystem && last_message_ == LastMessage::kNothing);
  last_message_ = last;
}

Status Session::chatAdd(const char* role, const char* text, size_t bytes) {
  size_t bad = 0;
  if (!isValidUtf8(text, bytes, &bad)) {
    return context_.log.fail(ORIEL_ERROR_TEXT,
                             "the message is not valid UTF-8 at byte %zu: convert it first", bad);
  }
  if (by_template_) {
    Scratch scratch(*context_.allocator, kTemplateBytes);
    const JsonValue* const message =
        JsonBuilder(&scratch).message({role, std::strlen(role)}, {text, bytes});
    return message != nullptr
               ? addByTemplate(*message, kTemplateBytesPerByte * bytes)
               : context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message: free some");
  }
  const bool is_user = std::strcmp(role, "user") == 0;
  const ChatTemplate& chat = context_.chat;
  const ChatOptions options = chatOptions();
  const ChatPlace place = chatPlace();
  // The message itself stays where the app has it.
  TextParts parts;
  RenderedText message;
  message.parts = &parts;
  const Status sized =
      renderMessage(chat, options, place, role, text, bytes, context_.log, &message);
  if (!sized.ok() && sized.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return sized;
  }
  // The end of the last reply goes in front, in the same submission.
  char end[kMaxReplyEnd];
  RenderedText reply_end;
  reply_end.text = end;
  reply_end.capacity = sizeof(end);
  if (reply_open_) {
    ORIEL_TRY(renderReplyEnd(chat, &reply_end));
  }
  const size_t end_bytes = reply_end.needed;
  Workspace workspace = makeWorkspace();
  const BorrowedBytes room(&workspace, end_bytes + message.stored);
  if (room.data() == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a message of %zu bytes",
                             bytes);
  }
  std::memcpy(room.data(), end, end_bytes);
  message.text = room.as<char>() + end_bytes;
  message.capacity = message.stored;
  parts = {};
  parts.add(room.as<char>(), end_bytes);
  ORIEL_TRY(renderMessage(chat, options, place, role, text, bytes, context_.log, &message));
  for (uint32_t i = 0; i < message.n_literal; ++i) {
    message.literal[i].begin += end_bytes;
    message.literal[i].end += end_bytes;
  }
  // A turn is what may be forgotten as a whole. Where the system text has opened the user's turn, it can open a
  // later one just as well once those between are gone: the opening is then not part of the turn. Everything
  // before a message's text is in the room.
  size_t turn_begin = end_bytes + message.body;
  if (system_joins_ && is_user) {
    turn_begin = message.literal[0].begin;
    while (turn_begin > 0 && room.as<char>()[turn_begin - 1] == ' ') {
      --turn_begin;  // a space is part of the word behind it
    }
  }
  const uint64_t begin = position_;
  size_t turn_tokens = 0;
  if (is_user) {
    ORIEL_TRY(countTokens(room.as<char>(), turn_begin, &workspace, &turn_tokens));
  }
  keepState(/*start=*/true);
  const SamplerCopy before = sampler_.state();
  ORIEL_TRY(takeBackUnless(appendRendered(parts, message.literal, message.n_literal, &workspace),
                           begin, before));
  if (is_user) {
    markTurn(begin + turn_tokens);
    askFor(text, bytes, begin, before);
  }
  transcript_.add({role, std::strlen(role)}, {text, bytes}, begin, position_);
  reply_open_ = false;
  endsWith({role, std::strlen(role)});
  closed_ = closing_known_ = true;
  turn_open_ = message.turn_open;
  system_joins_ = system_joins_ || message.turn_open;
  switched_thinking_ = message.thinking != context_.chat_options.thinking;
  return kOk;
}

Status Session::chatReply(const GenerateSettings& settings, oriel_token_fn on_token, void* user,
                          oriel_generation* result) {
  Scratch tools(*context_.allocator, templateScratchBytes(context_.settings.tools.bytes));
  ReplyPlace reply;
  ORIEL_TRY(openChatReply(settings, &tools, &reply));
  const Status status = generate(settings, reply, on_token, user, result);
  endChatReply();
  return takeBackUnanswered(status, reply);
}

Status Session::openChatReply(const GenerateSettings& settings, Scratch* tools, ReplyPlace* reply) {
  const bool has_chat = by_template_ || context_.chat.format != nullptr;
  if (!has_chat || position_ == 0 || reply_open_) {
    return context_.log.fail(ORIEL_ERROR_STATE, "there is no message to answer: add one first");
  }
  // Only a reader asks for them; they stay as long as it reads.
  const bool wants_tools = settings.on_part != nullptr && context_.settings.tools.bytes != 0;
  ORIEL_TRY(wants_tools ? readTools(context_.settings.tools, stopCheck(), context_.log, tools,
                                    &reply->tools)
                        : kOk);
  ORIEL_TRY(forgetEvicted());
  keepState(/*start=*/false);
  const uint64_t begin = position_;
  const SamplerCopy before = sampler_.state();
  ORIEL_TRY(beginRecall());
  const Status opened = by_template_ ? openByTemplate(reply) : openByFormat(reply);
  ORIEL_TRY(opened.ok() ? takeBackUnless(recallForReply(begin, before), begin, before)
                        : endRecall(opened));
  turn_open_ = false;
  reply_open_ = true;
  answered_ = last_message_;
  answered_closed_ = closed_;
  last_message_ = LastMessage::kAssistant;
  closed_ = false;
  closing_known_ = true;
  reply_stop_ = -1;
  reply_begin_ = begin;
  reply->may_think = context_.chat_options.thinking && !reply->inside_thought;
  reply->begin = begin;
  reply->text = position_;
  reply->sampler = before;
  transcript_.open(begin, position_);
  return kOk;
}

void Session::endChatReply() {
  reply_end_ = position_ + (unfinished_ >= 0 ? 1 : 0);
  transcript_.close(reply_end_);
}

Status Session::takeBackUnanswered(Status done, const ReplyPlace& reply) {
  const bool has_begun = position_ != reply.text || unfinished_ >= 0;
  if (done.ok() || done.lost() || done.code() == ORIEL_ERROR_CANCELLED || has_begun ||
      !canRewindAtOnce(reply.begin)) {
    return done;
  }
  if (const Status back = rewind(reply.begin); back.lost()) {
    return back;
  }
  sampler_.restore(reply.sampler);
  return done;
}

Status Session::openByFormat(ReplyPlace* reply) {
  const ChatTemplate& chat = context_.chat;
  char opening[256];
  RenderedText prompt;
  prompt.text = opening;
  prompt.capacity = sizeof(opening);
  ORIEL_TRY(renderGeneration(chat, chatOptions(), chatPlace(), &prompt));
  char end[kMaxReplyEnd];
  RenderedText reply_end;
  reply_end.text = end;
  reply_end.capacity = sizeof(end);
  ORIEL_TRY(renderReplyEnd(chat, &reply_end));
  // The format's own stop token, whatever the file says about it; the line feed behind it is none.
  while (reply_end.needed != 0 && end[reply_end.needed - 1] == '\n') {
    --reply_end.needed;
  }
  reply->stop_id = context_.tokenizer->find(end, reply_end.needed);
  reply->inside_thought = opensThought(opening, prompt.needed, context_.forms);
  Workspace workspace = makeWorkspace();
  const uint64_t begin = position_;
  const SamplerCopy before = sampler_.state();
  TextParts parts;
  parts.add(opening, prompt.needed);
  return takeBackUnless(appendRendered(parts, nullptr, 0, &workspace), begin, before);
}

}  // namespace oriel_internal
