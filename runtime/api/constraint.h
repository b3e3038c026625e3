// The constraint of a reply: its schema, its grammar or the calls of its tools, compiled before the reply begins.
#pragma once

#include "api/api.h"
#include "json/json.h"

namespace oriel_internal {

/// Compiles what `options` ask for into the session's constraint and fills the constraint's part of `settings`. Does
/// nothing where they ask for nothing. Borrows working memory for the call.
Status readConstraint(const oriel_model& model, const ReplyChoices& options, Session* session,
                      GenerateSettings* settings);

/// The same without a session: compiles into memory of the call. `tell(tool)` gets each tool whose arguments stay
/// unchecked, with `user`.
Status checkConstraint(const oriel_model& model, const ChatChoice& chat,
                       const ReplyChoices& options, const Log& log,
                       void (*tell)(const JsonText& name, void* user), void* user);

}  // namespace oriel_internal
