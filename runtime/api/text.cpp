#include "api/api.h"

using namespace oriel;

namespace {

// Planned memory is for sessions; these calls may come from any thread and borrow what they need.
Workspace borrowingWorkspace(const oriel_model& model) {
  return Workspace(nullptr, 0, &model.allocator);
}

}  // namespace

Status oriel::readChat(const oriel_model& model, const oriel_chat_options* given,
                       ChatTemplate* chat, ChatOptions* options) {
  oriel_chat_options chosen;
  if (!readOptions(given, &chosen)) {
    return model.log.fail(ORIEL_ERROR_ARGUMENT,
                          "chat options without struct_size, or of a newer version: set it, or "
                          "update Oriel");
  }
  *options = ChatOptions();
  options->thinking = chosen.no_thinking == 0;
  if (chosen.date != 0) {
    const uint32_t month = chosen.date / 100 % 100;
    const uint32_t day = chosen.date % 100;
    if (month < 1 || month > 12 || day < 1 || day > 31 || chosen.date > 99991231) {
      return model.log.fail(ORIEL_ERROR_ARGUMENT,
                            "%u is no date: write year, month and day, as in 20240726",
                            chosen.date);
    }
    options->date = chosen.date;
  }
  const Status status = chooseChat(model.chat, chosen.chat_template, model.log, chat);
  if (status.ok() && chat->format != nullptr && chat->format->thinks_if_told) {
    options->thinking = false;
  }
  return status;
}

oriel_status oriel_tokenize(const oriel_model* model, const char* text, size_t bytes,
                            uint32_t flags, int32_t* ids, size_t capacity, size_t* needed) {
  if (model == nullptr || (text == nullptr && bytes != 0) || needed == nullptr ||
      (ids == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  EncodeOptions options;
  options.special = (flags & ORIEL_TEXT_SPECIAL) != 0;
  options.bos = (flags & ORIEL_TEXT_BOS) != 0;
  Workspace workspace = borrowingWorkspace(*model);
  return model->tokenizer
      ->encode(text, bytes, options, &workspace, model->log, ids, capacity, needed)
      .code();
}

oriel_status oriel_detokenize(const oriel_model* model, const int32_t* ids, size_t count,
                              uint32_t flags, char* text, size_t capacity, size_t* needed) {
  if (model == nullptr || (ids == nullptr && count != 0) || needed == nullptr ||
      (text == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= model->tokenizer->vocabSize()) {
      return model->log
          .fail(ORIEL_ERROR_ARGUMENT, "token id %d is outside the vocabulary: use ids from 0 to %u",
                ids[i], model->tokenizer->vocabSize() - 1)
          .code();
    }
  }
  return model->tokenizer
      ->decode(ids, count, (flags & ORIEL_TEXT_SPECIAL) != 0, text, capacity, needed)
      .code();
}

const char* oriel_chat_template(const oriel_model* model, const oriel_chat_options* options) {
  ChatTemplate chat;
  ChatOptions chosen;
  const bool known = model != nullptr && readChat(*model, options, &chat, &chosen).ok();
  return known ? chat.name() : nullptr;
}

oriel_status oriel_render(const oriel_model* model, const oriel_chat_options* options,
                          const oriel_message* messages, size_t count, int add_generation_prompt,
                          char* text, size_t capacity, size_t* needed) {
  if (model == nullptr || needed == nullptr || (messages == nullptr && count != 0) ||
      (text == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  ChatTemplate chat;
  ChatOptions chosen;
  if (const Status status = readChat(*model, options, &chat, &chosen); !status.ok()) {
    return status.code();
  }
  RenderedConversation out;
  out.text = text;
  out.capacity = capacity;
  const Status status = renderConversation(chat, chosen, messages, count,
                                           add_generation_prompt != 0, true, model->log, &out);
  *needed = out.needed;
  return status.code();
}

oriel_status oriel_render_tokens(const oriel_model* model, const oriel_chat_options* options,
                                 const oriel_message* messages, size_t count,
                                 int add_generation_prompt, uint32_t flags, int32_t* ids,
                                 size_t capacity, size_t* needed) {
  if (model == nullptr || needed == nullptr || (messages == nullptr && count != 0) ||
      (ids == nullptr && capacity != 0)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  ChatTemplate chat;
  ChatOptions chosen;
  if (const Status status = readChat(*model, options, &chat, &chosen); !status.ok()) {
    return status.code();
  }
  const bool as_session = (flags & ORIEL_TEXT_BOS) != 0;
  const auto render = [&](RenderedConversation* out) {
    return renderConversation(chat, chosen, messages, count, add_generation_prompt != 0,
                              !as_session, model->log, out);
  };
  RenderedConversation out;
  const Status sized = render(&out);
  if (!sized.ok() && sized.code() != ORIEL_ERROR_BUFFER_TOO_SMALL) {
    return sized.code();
  }
  Workspace workspace = borrowingWorkspace(*model);
  const BorrowedBytes text(&workspace, out.needed + 1);
  const BorrowedBytes literals(&workspace, (2 * count + 1) * sizeof(TextRange));
  if (text.data() == nullptr || literals.data() == nullptr) {
    return model->log
        .fail(ORIEL_ERROR_OUT_OF_MEMORY, "no memory for a conversation of %zu bytes", out.needed)
        .code();
  }
  out.text = text.as<char>();
  out.capacity = out.needed;
  out.literals = literals.as<TextRange>();
  if (const Status status = render(&out); !status.ok()) {
    return status.code();
  }
  const Tokenizer& tokenizer = *model->tokenizer;
  // As Session::missingBos(): what the template writes and the model does not ask for.
  const bool extra_bos =
      as_session && chat.begin[0] != '\0' && !tokenizer.addBos() && tokenizer.bosId() >= 0;
  const size_t n_bos = extra_bos ? 1 : 0;
  if (extra_bos && capacity != 0) {
    ids[0] = tokenizer.bosId();
  }
  EncodeOptions encoding;
  encoding.special = true;
  encoding.bos = as_session;
  encoding.literal = out.literals;
  encoding.n_literal = out.n_literals;
  const size_t room = capacity > n_bos ? capacity - n_bos : 0;
  const Status status = tokenizer.encode(out.text, out.needed, encoding, &workspace, model->log,
                                         room != 0 ? ids + n_bos : nullptr, room, needed);
  *needed += n_bos;
  return *needed > capacity && status.ok() ? ORIEL_ERROR_BUFFER_TOO_SMALL : status.code();
}
