// Decides which weights stay in the model's file, by the options or by the available memory.
#pragma once

#include "api/api.h"

namespace oriel_internal {

// Plans with `on_file` weights left in the file: fills totals, work, host bytes and budget of `prepared`.
struct OnFilePlanner {
  Status (*plan)(void* context, const OnFile& on_file, const Log& log,
                 BudgetRequest* request) = nullptr;
  void* context = nullptr;
};

// Rows of tables stay on file unless the options hold them. For experts, formats and window have priority: each layer
// gets the most slots that do not raise the expected loss, or all experts are held. Stores the chosen plan in
// `prepared`, whose description must be set. Its minimum memory is the smallest over all choices.
Status chooseOnFile(const LoadOptions& options, const Log& log, const OnFilePlanner& planner,
                    const BudgetRequest& request, PreparedModel* prepared);

}  // namespace oriel_internal
