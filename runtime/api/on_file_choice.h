// Which weights stay in the model's file: what the options say, or what the memory has room for.
#pragma once

#include "api/api.h"

namespace oriel_internal {

/// Plans with these weights on file: fills in `prepared`'s totals, work, host bytes and budget.
struct OnFilePlanner {
  Status (*plan)(void* context, const OnFile& on_file, const Log& log,
                 BudgetRequest* request) = nullptr;
  void* context = nullptr;
};

/// Rows stay unless the options hold them. Of experts, formats and window come first: each layer gets the most slots that
/// do not raise the expected loss, or all experts are held. Leaves the plan of the choice in `prepared`, whose description
/// is there; its least memory is that of the choice that needs least.
Status chooseOnFile(const LoadOptions& options, const Log& log, const OnFilePlanner& planner,
                    const BudgetRequest& request, PreparedModel* prepared);

}  // namespace oriel_internal
