// Options of recall: bringing evicted turns back.
#pragma once

#include "api/api.h"
#include "exec/session_recall.h"

namespace oriel_internal {

// Fills *settings except the folder. No tokens if the app did not ask for recall or the model cannot use it.
Status readRecall(const LoadOptions& options, const ModelDesc& desc, const Log& log,
                  RecallSettings* settings);

// Copies the folder for the sessions' files into `arena`, which may be a measuring arena. Null if the options set no folder.
const char* takeRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                             Arena* arena);
// ORIEL_ERROR_ARGUMENT if files are requested without a folder.
Status checkRecallFolder(const LoadOptions& options, const RecallSettings& settings,
                         const Log& log);

}  // namespace oriel_internal
