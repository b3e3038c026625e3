// The constraint of a reply: a schema, a grammar or tool calls, compiled before the reply begins.
#pragma once

#include "api/api.h"
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

}  // namespace oriel_internal
