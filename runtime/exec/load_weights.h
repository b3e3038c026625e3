// Streams a file's weights to an executor, repacking on the way.
#pragma once

#include "exec/executor.h"
#include "os/os.h"

namespace oriel {

struct LoadProgress {
  oriel_progress_fn callback = nullptr;
  void* user = nullptr;
};

/// Carries out plan.uploads, giving the pages of `mapping`, which `file` lies in (null: in memory), back as
/// it goes.
/// ORIEL_ERROR_CANCELLED when the callback asks to stop.
Status loadWeights(const MappedFile* mapping, const GgufFile& file, const ModelDesc& model,
                   const Plan& plan, const LoadProgress& progress, Executor* executor);

}  // namespace oriel
