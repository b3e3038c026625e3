// What of what left the window may come back, as an app asked for it.
#pragma once

#include "api/api.h"
#include "exec/session_recall.h"

namespace oriel_internal {

/// *settings, but for the folder; of no tokens where nothing was asked for, or the model does without.
Status readRecall(const LoadOptions& options, const ModelDesc& desc, const Log& log,
                  RecallSettings* settings);

/// The folder of the sessions' files, in `arena`; measures likewise. Null where there are none.
const char* takeRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                             Arena* arena);
/// ORIEL_ERROR_ARGUMENT where files are wanted and no folder was given.
Status checkRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                         const Log& log);

}  // namespace oriel_internal
