// What a reply has to be, compiled before it begins.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// The schema or the grammar of `options` into the session's constraint, and what `settings` have to know of it. Nothing
/// where neither is asked for. Borrows working memory for the call.
Status readConstraint(const oriel_model& model, const ReplyChoices& options, Session* session,
                      GenerateSettings* settings);

}  // namespace oriel_internal
