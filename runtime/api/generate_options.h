// The constraint of a reply: a schema, a grammar or tool calls, compiled before the reply begins.
#pragma once

#include "api/api.h"
#include "api/session.h"
#include "json/json.h"

namespace oriel_internal {

// Compiles the options into the session's constraint and fills the constraint's part of `settings`. Without such
// options it does nothing. Borrows working memory for the call.
Status readConstraint(const oriel_model& model, const ReplyChoices& options, Session* session,
                      GenerateSettings* settings);

// The same without a session: compiles into memory of the call. Calls `tell(tool)` with `user` for each tool whose
// arguments stay unchecked.
Status checkConstraint(const oriel_model& model, const ChatChoice& chat,
                       const ReplyChoices& options, const Log& log,
                       void (*tell)(const JsonText& name, void* user), void* user);

// Reads the options of replies.

// Reads front fields and settings. Null gives all defaults. Logs a line for ORIEL_ERROR_ARGUMENT. The caller keeps
// owning the texts.
Status takeReplyOptions(const oriel_reply_options* given, const Log& log, ReplyChoices* options);

// Checks every value and applies the defaults. Logs one line. Returns ORIEL_ERROR_ARGUMENT for a value out of range and
// ORIEL_ERROR_TEXT for a stop text that is not UTF-8. `settings` points into `options`.
Status readGenerateOptions(const oriel_model& model, const ReplyChoices& options, const Log& log,
                           GenerateSettings* settings);

// Checks that a reply can be constrained as requested, before a session exists.

/// oriel_render with ORIEL_RENDER_CHECK.
oriel_status renderCheck(const oriel_model& model, const ChatChoice& chat, const char* json,
                         size_t bytes, char* text, size_t capacity, size_t* needed);

// One reply of a call: its options, turn and result. A call may make several replies in different sessions.

class OneReply {
 public:
  // `options` and the session must outlive it. `chat`: opens the assistant's turn first.
  OneReply(oriel_session* handle, const oriel_reply_options* options, bool chat,
           oriel_token_fn on_token, void* user)
      : handle_(*handle),
        session_(*handle->session),
        options_(options),
        chat_(chat),
        call_(settings_, on_token, user, &result_),
        tools_(*session_.facts().context.allocator,
               templateScratchBytes(session_.facts().context.settings.tools.bytes)),
        logits_(*session_.facts().context.allocator, SIZE_MAX) {}

  // Starts the reply, up to its first token, for Replier::run(). Null: the reply is already over.
  ReplyCall* begin() {
    call_.status = handle_.lost ? Status(ORIEL_ERROR_DEVICE) : open();
    return call_.status.ok() ? &call_ : nullptr;
  }
  // Ends the turn. Writes the result to *out if the options were valid and `out` is not null.
  Status end(oriel_generation* out) {
    const Status status = opened_ ? session_.closeReply(call_) : call_.status;
    if (status.code() == ORIEL_ERROR_CANCELLED) {
      result_.stop_reason = ORIEL_STOP_CANCELLED;  // also if the prompt was cancelled
    }
    if (out != nullptr && read_) {
      writeResult(result_, out);
    }
    return status;
  }

 private:
  Status open() {
    const oriel_model& model = *handle_.model;
    ORIEL_TRY(takeReplyOptions(options_, handle_.log, &choices_));
    ORIEL_TRY(readGenerateOptions(model, choices_, handle_.log, &settings_));
    const Status read = readConstraint(model, choices_, &session_, &settings_);
    read_ = read.ok() || read.code() == ORIEL_ERROR_CANCELLED;
    ORIEL_TRY(read);
    ORIEL_TRY(takeRoomForLogits());
    if (chat_) {
      ORIEL_TRY(session_.openReply(settings_, &tools_, &call_.place));
      opened_ = true;
    }
    return session_.replier().begin(&call_);
  }

  Status takeRoomForLogits() {
    if (settings_.on_logits == nullptr) {
      return kOk;
    }
    settings_.step_logits = logits_.take<float>(session_.facts().context.model->n_vocab);
    return settings_.step_logits != nullptr
               ? kOk
               : handle_.log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                                  "no memory for the logits that the app changes: free some");
  }

  oriel_session& handle_;
  Session& session_;
  const oriel_reply_options* options_;
  const bool chat_;
  ReplyChoices choices_;
  GenerateSettings settings_;
  oriel_generation result_ = {};
  ReplyCall call_;
  Scratch tools_;
  Scratch logits_;
  bool read_ = false;    ///< the options
  bool opened_ = false;  // the assistant's turn is open
};

}  // namespace oriel_internal
