// Turns that the model's own template writes.
#include <cstring>

#include "exec/session.h"
#include "text/utf8.h"

namespace oriel_internal {

TurnPlace Session::turnPlace() const {
  TurnPlace place;
  place.last = last_message_;
  place.closed = closed_;
  place.has_system = has_system_;
  if (reply_stop_ >= 0) {
    const Tokenizer::Piece stop = context_.tokenizer->piece(reply_stop_, true);
    place.reply_stop = {stop.data, stop.bytes};
  }
  return place;
}

// Whether the latest tokens are such a text. Blanks do not count: some tokenizers put more of them.
bool Session::endsWithText(const JsonText& text) const {
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  size_t left = text.bytes;
  for (uint64_t at = position_; at != 0; --at) {
    const int32_t id = idsKnown(at - 1, at) ? ids_.at(at - 1) : -1;
    const Tokenizer::Piece piece =
        id >= 0 ? context_.tokenizer->piece(id, true) : Tokenizer::Piece{};
    for (size_t i = piece.bytes; i != 0; --i) {
      while (left != 0 && blank(text.data[left - 1])) {
        --left;
      }
      if (left == 0) {
        return true;
      }
      if (!blank(piece.data[i - 1]) && piece.data[i - 1] != text.data[--left]) {
        return false;
      }
    }
    if (id < 0) {
      return false;
    }
  }
  return left == 0;
}

// A rewind may have led right behind a message's text, or behind what closes it.
Status Session::settleClosing(TemplateRun* run) {
  if (closing_known_) {
    return kOk;
  }
  JsonText end;
  ORIEL_TRY(renderReplyEnd(run, &end));
  closed_ = end.bytes == 0 || endsWithText(end);
  closing_known_ = true;
  return kOk;
}

Status Session::appendTurn(const TurnText& turn, Workspace* workspace) {
  const Tokenizer& tokenizer = *context_.tokenizer;
  TextParts parts;
  parts.add(turn.text, turn.bytes);
  EncodeOptions options;
  options.special = true;
  options.bos = position_ == 0;
  options.continues = continuesText();
  options.literal = turn.literals;
  options.n_literal = turn.n_literals;
  if (turn.begins_bos && !tokenizer.addBos()) {
    options.first_id = tokenizer.bosId();
  }
  return appendEncoded(parts, options, workspace);
}

Status Session::addByTemplate(const JsonValue& message, size_t room_bytes) {
  ORIEL_TRY(checkRole(message, context_.log));
  const JsonText& role = message.find("role")->text();
  const bool is_user = role.is("user");
  Scratch scratch(*context_.allocator,
                  templateScratchBytes(context_.settings.bytes()) + room_bytes);
  TemplateRun run(context_.settings, stopCheck(), context_.log, &scratch);
  ORIEL_TRY(run.read());
  ORIEL_TRY(settleClosing(&run));
  TurnText turn;
  ORIEL_TRY(renderTurn(&run, turnPlace(), message, &turn));
  Workspace workspace = makeWorkspace();
  size_t turn_tokens = 0;
  if (is_user && turn.body != 0) {
    ORIEL_TRY(countTokens(turn.text, turn.body, &workspace, &turn_tokens));
  }
  const uint64_t begin = position_;
  keepState(/*start=*/true);
  const SamplerCopy before = sampler_.state();
  ORIEL_TRY(takeBackUnless(appendTurn(turn, &workspace), begin, before));
  if (is_user) {
    markTurn(begin + turn_tokens);
    askForMessage(message, begin, before);
  }
  transcript_.add(message, begin, position_);
  reply_open_ = false;
  turn_open_ = false;
  endsWith(role);
  closed_ = false;
  closing_known_ = true;
  return kOk;
}

Status Session::addMessage(const JsonValue& message, size_t room_bytes) {
  ORIEL_TRY(checkMessage(message, context_.log));
  if (!by_template_ && isPlainMessage(message)) {
    char role[kMaxRoleBytes + 1] = "";
    const JsonText& name = message.find("role")->text();
    std::memcpy(role, name.data, name.bytes);
    const JsonText& content = message.find("content")->text();
    return chatAdd(role, content.data, content.bytes);
  }
  if (context_.settings.text.bytes == 0) {
    return context_.log.fail(ORIEL_ERROR_UNSUPPORTED,
                             "the chat format %s knows only texts of \"system\", \"user\" and "
                             "\"assistant\": use a model with a template of its own for the rest",
                             context_.chat.name());
  }
  const bool before = by_template_;
  by_template_ = true;
  const Status added = addByTemplate(message, room_bytes);
  by_template_ = added.ok() || before;  // what was refused changes nothing
  return added;
}

namespace {

// Of a message that is not rendered yet, for progress: as many as such a text has in English.
uint64_t roughTokens(const JsonValue& value) {
  constexpr uint64_t kBytesPerToken = 4;
  uint64_t tokens = value.textBytes() / kBytesPerToken;
  for (const JsonValue* one = value.first(); one != nullptr; one = one->next()) {
    tokens += roughTokens(*one);
  }
  return tokens;
}

}  // namespace

Status Session::chatAddJson(const char* json, size_t bytes) {
  Scratch scratch(*context_.allocator, templateScratchBytes(bytes));
  const JsonValue* value = nullptr;
  ORIEL_TRY(parseJson(json, bytes, "the messages", stopCheck(), context_.log, &scratch, &value));
  if (value->isArray()) {
    return addMessages(*value, scratch.leftBytes());
  }
  ORIEL_TRY(addMessage(*value, scratch.leftBytes()));
  const JsonText& role = value->find("role")->text();
  warnOfRole(context_.chat, role.data, role.bytes, 0, context_.log);
  return kOk;
}

Status Session::addMessages(const JsonValue& messages, size_t room_bytes) {
  reading_.later = roughTokens(messages);
  size_t number = 0;
  for (const JsonValue* one = messages.first(); one != nullptr; one = one->next()) {
    reading_.later = one->next() != nullptr ? reading_.later - roughTokens(*one) : 0;
    ORIEL_TRY(addMessage(*one, room_bytes));
    const JsonText& role = one->find("role")->text();
    warnOfRole(context_.chat, role.data, role.bytes, ++number, context_.log);
  }
  return kOk;
}

Status Session::openByTemplate(ReplyPlace* reply) {
  Scratch scratch(*context_.allocator, templateScratchBytes(context_.settings.bytes()));
  TemplateRun run(context_.settings, stopCheck(), context_.log, &scratch);
  ORIEL_TRY(run.read());
  ORIEL_TRY(settleClosing(&run));
  TurnText turn;
  ORIEL_TRY(renderReplyOpening(&run, turnPlace(), &turn));
  reply->inside_thought = opensThought(turn.text, turn.bytes, context_.forms);
  JsonText end;
  ORIEL_TRY(renderReplyEnd(&run, &end));
  Workspace workspace = makeWorkspace();
  // The token that the template writes behind an answer, whatever the file says about it.
  int32_t first[1] = {-1};
  size_t count = 0;
  EncodeOptions options;
  options.special = true;
  options.continues = true;
  const Status encoded =
      context_.tokenizer->encode(end.data, end.bytes, options, &workspace, Log(), first, 1, &count);
  if (encoded.code() == ORIEL_ERROR_OUT_OF_MEMORY) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                             "no memory to find what ends a reply: free some");
  }
  const bool known = encoded.ok() || encoded.code() == ORIEL_ERROR_BUFFER_TOO_SMALL;
  reply->stop_id = known && count != 0 && context_.tokenizer->isControl(first[0]) ? first[0] : -1;
  const uint64_t begin = position_;
  const SamplerCopy before = sampler_.state();
  return takeBackUnless(appendTurn(turn, &workspace), begin, before);
}

}  // namespace oriel_internal
