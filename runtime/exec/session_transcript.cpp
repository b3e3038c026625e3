// The part of a session that keeps what was said, and builds a conversation again from it.
#include <algorithm>

#include "exec/session.h"

namespace oriel {

// A reply whose end was taken back: its text up to `position`, as far as its tokens are known.
void Session::cutReply(const Transcript::Entry& reply, uint64_t position) {
  if (!idsKnown(reply.text, position)) {
    return;
  }
  transcript_.open(reply.begin, reply.text);
  reply_text_.start(nullptr, 0);
  for (uint64_t t = reply.text; t < position; ++t) {
    const ReplyText::Shown shown =
        reply_text_.push(context_.tokenizer->piece(ids_.at(t), false), false);
    transcript_.extend(shown.text, shown.bytes);
  }
  const ReplyText::Shown rest = reply_text_.finish(false);
  transcript_.extend(rest.text, rest.bytes);
  transcript_.close(position);
}

Status Session::readMessages(const char* json, size_t bytes) {
  if (!isFresh()) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "the session holds %llu tokens: a conversation is read into an empty "
                             "one, reset it first",
                             static_cast<unsigned long long>(position_));
  }
  Scratch scratch(*context_.allocator, templateScratchBytes(bytes));
  const JsonValue* messages = nullptr;
  ORIEL_TRY(parseJson(json, bytes, "the messages", context_.log, &scratch, &messages));
  if (!messages->isArray()) {
    return context_.log.fail(ORIEL_ERROR_ARGUMENT,
                             "the messages are no list: give what was exported, [{\"role\": ...}]");
  }
  return addMessages(*messages, bytes);
}

Status Session::readTranscript(uint64_t position) {
  if (!transcript_.keeps()) {
    return context_.log.fail(ORIEL_ERROR_STATE,
                             "the session keeps no transcript to read again: load the model with "
                             "room for one (transcript_bytes)");
  }
  return readStored(transcript_.data(), transcript_.bytes(), position);
}

// Messages as a transcript has them; the session begins anew.
Status Session::readStored(const uint8_t* entries, uint64_t bytes, uint64_t position) {
  struct Text {
    char* to;
    size_t bytes;
  } text = {nullptr, 0};
  const JsonSink sink = {[](const char* part, size_t n, void* user) {
                           Text& self = *static_cast<Text*>(user);
                           if (self.to != nullptr) {
                             std::copy(part, part + n, self.to + self.bytes);
                           }
                           self.bytes += n;
                         },
                         &text};
  Transcript::write(entries, bytes, position, sink);
  Workspace workspace(nullptr, 0, context_.allocator);
  const BorrowedBytes room(&workspace, text.bytes);
  if (room.data() == nullptr) {
    return context_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for %zu bytes: free some",
                             text.bytes);
  }
  text = {room.as<char>(), 0};
  Transcript::write(entries, bytes, position, sink);
  ORIEL_TRY(reset());
  return readMessages(room.as<char>(), text.bytes);
}

}  // namespace oriel
