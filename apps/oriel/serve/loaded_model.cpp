#include "serve/loaded_model.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <oriel/advanced.h>

#include "failure.h"
#include "plan/plan_source.h"
#include "serve/api_error.h"
#include "serve/message.h"

namespace cli {
namespace {

constexpr uint32_t kSessions = 4;

/// Makes the system prompt a prefix shared by all sessions.
void planSystem(ServiceOptions* service) {
  CommonOptions& common = service->common;
  const Model text_only(common, Load::kGlance);
  if (text_only.chatFormat(common.session) == "none") {
    throw Failure{kExitFailed,
                  "the model has no chat format, and --system needs one: name it with --template"};
  }
  const Json system = Json::array({Json{{"role", "system"}, {"content", service->system}}});
  common.load.set("prefix_tokens",
                  text_only.renderedIds(common.session, system, ORIEL_TEXT_BOS).size());
}

void readSystem(const ServiceOptions& service, const Model& model) {
  const Session session(model, service.common.session);
  session.check(
      oriel_chat_add(session.get(), "system", service.system.data(), service.system.size()));
  session.check(oriel_prefix_set(model.get(), session.get()));
}

std::vector<std::unique_ptr<Slot>> makeSlots(const Model& model, const Settings& session) {
  std::vector<std::unique_ptr<Slot>> slots;
  for (uint32_t i = 0; i < model.plan().sessions; ++i) {
    slots.push_back(std::make_unique<Slot>(model, session));
  }
  return slots;
}

}  // namespace

/// At most four sessions by default.
uint64_t planLoad(ServiceOptions* options) {
  CommonOptions& common = options->common;
  if (!options->system.empty()) {
    planSystem(options);
  }
  const bool chooses = !common.load.has("sessions");
  const PlanSource source = PlanSource::ofFile(modelPath(common));
  for (uint32_t sessions = chooses ? kSessions : 1;; sessions /= 2) {
    if (chooses) {
      common.load.set("sessions", sessions);
    }
    const Json plan = source.tryPlan(planOptions(common));
    if (!plan.is_null() && plannedFits(plan)) {
      return numberIn(plan, "total_bytes");
    }
    if (sessions == 1) {
      return 0;
    }
  }
}

LoadedModel::LoadedModel(ServiceOptions service, std::string model_name)
    : options(std::move(service)),
      name(std::move(model_name)),
      model(options.common, Load::kDevice),
      slots(makeSlots(model, options.common.session), options.queue),
      check(model, options.common.session, options.common.reply) {
  if (!options.system.empty()) {
    readSystem(options, model);
  }
}

void LoadedModel::checkWithoutSystem() const {
  if (!options.system.empty()) {
    throw ApiError{
        400,
        "every session here begins with the server's --system: ask for chat completions, "
        "or start the server without it",
        "", "unsupported_parameter", 0};
  }
}

void LoadedModel::leaveOutSystem(ReplyRequest* request) const {
  if (options.system.empty()) {
    return;
  }
  ChatForm form = request->form;
  form.adapters.clear();
  if (!(form == ChatForm())) {
    throw ApiError{400,
                   "all conversations here share one system prompt, in which tools and variables "
                   "would stand: leave them out, or start the server without --system",
                   "tools", "unsupported_parameter", 0};
  }
  std::vector<ChatMessage>& messages = request->messages;
  if (messages.front().key == systemKey(options.system)) {
    messages.erase(messages.begin());
  }
  const bool others = std::any_of(messages.begin(), messages.end(), [](const ChatMessage& message) {
    return message.key.compare(0, 16, R"({"role":"system")") == 0;
  });
  if (others || messages.empty()) {
    throw ApiError{400,
                   "all conversations here begin with the server's --system: send messages of the "
                   "user and of the assistant",
                   "messages", "unsupported_content", 0};
  }
}

}  // namespace cli
