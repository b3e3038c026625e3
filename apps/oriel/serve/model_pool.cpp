#include "serve/model_pool.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include <oriel/advanced.h>

#include "models/catalogue.h"
#include "output.h"
#include "plan/plan_report.h"
#include "serve/api_error.h"
#include "serve/message.h"
#include "system.h"

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

namespace {

constexpr std::chrono::milliseconds kLongestWait(100);
/// The suffix that Ollama clients append to names.
constexpr char kTag[] = ":latest";

std::string withoutTag(const std::string& name) {
  const size_t tag = sizeof(kTag) - 1;
  const bool has = name.size() > tag && name.compare(name.size() - tag, tag, kTag) == 0;
  return has ? name.substr(0, name.size() - tag) : name;
}

/// The error for a model that is too large even alone, from its plan.
[[noreturn]] void refuse(const CommonOptions& options, uint64_t memory_bytes) {
  const Diagnostics diagnostics(/*verbose=*/false, /*warns=*/false);
  const Json plan = PlanSource::ofFile(options.model).plan(planOptions(options), diagnostics);
  throw Failure{kExitDoesNotFit, "it needs at least " + formatSize(leastOf(plan)) +
                                     ", and all models have " + formatSize(memory_bytes) +
                                     ": give more with --memory"};
}

ApiError notLoaded(const std::string& name, const Failure& failure) {
  const bool fits = failure.exit_code != kExitDoesNotFit;
  return {fits ? 500 : 400, "the model " + name + " cannot be loaded: " + failure.message, "model",
          fits ? "model_not_loaded" : "model_does_not_fit", 0};
}

}  // namespace

struct ModelPool::Entry {
  ModelCard card;
  ModelFacts facts;  ///< Adds files that appeared since.
  std::unique_ptr<LoadedModel> loaded;
  uint32_t users = 0;
  uint64_t last_used = 0;
};

ModelPool::ModelPool(ServiceOptions options) : options_(std::move(options)) {
  const std::string path = modelPath(options_.common);
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(std::filesystem::u8path(path), error);
  Entry* const first = add(options_.model_name, path, error ? 0 : bytes);
  first->card.sees = options_.common.load.has("mmproj");
  ServiceOptions own = options_;
  planLoad(&own);
  if (options_.all_models) {
    const Json plan = PlanSource::ofFile(path).tryPlan(planOptions(own.common));
    memory_bytes_ = plan.is_null() ? 0 : numberIn(plan, "memory_bytes");
    if (memory_bytes_ != 0) {
      own.common.load.set("memory", memory_bytes_);
    }
  }
  settle(first, std::make_unique<LoadedModel>(std::move(own), first->card.name));
}

ModelPool::~ModelPool() = default;

ModelPool::Entry* ModelPool::add(const std::string& name, const std::string& path, uint64_t bytes) {
  entries_.emplace_back();
  ModelCard& card = entries_.back().card;
  card.name = name;
  card.path = path;
  card.file_bytes = bytes;
  return &entries_.back();
}

/// opens the file
void ModelPool::readStore() {
  for (const StoredModel& stored : storedModels()) {
    const bool known = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.card.path == stored.path || entry.card.name == stored.name;
    });
    if (!known) {
      add(stored.name, stored.path, stored.bytes);
    }
  }
}

ModelPool::Entry* ModelPool::find(const std::string& given) {
  const std::lock_guard<std::mutex> hold(lock_);
  if (!options_.all_models || given.empty()) {
    return &entries_.front();
  }
  readStore();
  const std::string name = withoutTag(given);
  const std::string path = storedModel(name).value_or("");
  for (Entry& entry : entries_) {
    if (entry.card.name == name || entry.card.path == path) {
      return &entry;
    }
  }
  throw unknown(given);
}

ApiError ModelPool::unknown(const std::string& name) {
  return {404, "there is no model " + name + ": GET /v1/models says which there are", "model",
          "model_not_found", 0};
}

ModelCard ModelPool::card(Entry* entry) {
  std::unique_lock<std::mutex> hold(lock_);
  if (entry->card.info.is_null()) {
    hold.unlock();
    const CommonOptions options = optionsOf(entry->card).common;
    Json info;
    try {
      info = Model(options, Load::kGlance).info();
    } catch (const Failure& failure) {
      throw notLoaded(entry->card.name, failure);
    }
    hold.lock();
    keepInfo(entry, std::move(info));
  }
  return entry->card;
}

/// The encoder of pictures is the first model's.
ServiceOptions ModelPool::optionsOf(const ModelCard& card) const {
  ServiceOptions own = options_;
  own.common.model = card.path;
  for (const char* name : {"mmproj", "image_tokens"}) {
    if (!card.sees) {
      own.common.load.erase(name);
    }
  }
  return own;
}

ModelFacts ModelPool::facts(Entry* entry) {
  {
    const std::lock_guard<std::mutex> hold(lock_);
    if (!entry->card.info.is_null()) {
      return entry->facts;
    }
  }
  (void)card(entry);  // Unloads idle models, least recently used first.
  const std::lock_guard<std::mutex> hold(lock_);
  return entry->facts;
}

void ModelPool::keepInfo(Entry* entry, Json info) {
  entry->facts = {countIn(info, "n_vocab"), countIn(info, "n_embd")};
  entry->card.info = std::move(info);
}

std::vector<ModelCard> ModelPool::cards() {
  const std::lock_guard<std::mutex> hold(lock_);
  if (options_.all_models) {
    readStore();
  }
  std::vector<ModelCard> cards;
  for (const Entry& entry : entries_) {
    cards.insert(
        std::upper_bound(cards.begin() + (cards.empty() ? 0 : 1), cards.end(), entry.card,
                         [](const ModelCard& a, const ModelCard& b) { return a.name < b.name; }),
        entry.card);
  }
  return cards;
}

LoadedModel* ModelPool::Lease::operator->() const { return entry_->loaded.get(); }

ModelPool::Lease::~Lease() {
  {
    const std::lock_guard<std::mutex> hold(pool_->lock_);
    --entry_->users;
    entry_->last_used = ++pool_->uses_;
  }
  pool_->changed_.notify_all();
}

ModelPool::Lease ModelPool::open(Entry* entry, const Wait& wait) {
  std::unique_lock<std::mutex> hold(lock_);
  bool told = false;
  const auto ready = [&] {
    return entry->loaded != nullptr && !(makes_room_ && loading_ != entry);
  };
  while (!ready()) {
    if (!told && entry->loaded == nullptr) {
      told = true;
      hold.unlock();
      wait.begins();
      hold.lock();
    } else if (loading_ == nullptr) {
      settle(entry, load(entry, wait, &hold));
    } else {
      changed_.wait_for(hold, kLongestWait);
      if (const std::optional<ApiError> reason = wait.gives_up()) {
        throw ApiError(*reason);
      }
    }
  }
  ++entry->users;
  return {this, entry};
}

/// lets the next model load, even after a failure
void ModelPool::makeRoom(uint64_t bytes, const Wait& wait, std::unique_lock<std::mutex>* hold) {
  makes_room_ = true;
  while (usedBytes() + bytes > memory_bytes_) {
    Entry* victim = nullptr;
    for (Entry& other : entries_) {
      if (other.loaded != nullptr && other.users == 0 &&
          (victim == nullptr || other.last_used < victim->last_used)) {
        victim = &other;
      }
    }
    if (victim != nullptr) {
      std::unique_ptr<LoadedModel> gone = std::move(victim->loaded);
      victim->card.loaded = false;
      hold->unlock();
      gone.reset();
      hold->lock();
      victim->card.memory_bytes = 0;
      continue;
    }
    changed_.wait_for(*hold, kLongestWait);
    if (const std::optional<ApiError> reason = wait.gives_up()) {
      throw ApiError(*reason);
    }
  }
  makes_room_ = false;
}

std::unique_ptr<LoadedModel> ModelPool::load(Entry* entry, const Wait& wait,
                                             std::unique_lock<std::mutex>* hold) {
  struct Loading {  // after success or failure, another model can be loaded
    ModelPool* pool;
    std::unique_lock<std::mutex>* hold;
    ~Loading() {
      if (!hold->owns_lock()) {
        hold->lock();
      }
      pool->loading_ = nullptr;
      pool->makes_room_ = false;
      pool->changed_.notify_all();
    }
  };
  loading_ = entry;
  const Loading loading{this, hold};
  hold->unlock();
  ServiceOptions own = optionsOf(entry->card);
  own.common.load.set("memory", memory_bytes_);
  try {
    const uint64_t planned = planLoad(&own);
    if (planned == 0) {
      refuse(own.common, memory_bytes_);
    }
    hold->lock();
    makeRoom(planned, wait, hold);
    own.common.load.set("memory", memory_bytes_ - usedBytes());
    hold->unlock();
    return std::make_unique<LoadedModel>(std::move(own), entry->card.name);
  } catch (const Failure& failure) {
    throw notLoaded(entry->card.name, failure);
  }
}

/// It is there.
void ModelPool::settle(Entry* entry, std::unique_ptr<LoadedModel> loaded) {
  const oriel_plan& plan = loaded->model.plan();
  keepInfo(entry, loaded->model.info());
  entry->card.loaded = true;
  entry->card.window_tokens = plan.window_tokens;
  entry->card.sessions = plan.sessions;
  entry->card.memory_bytes = plan.total_bytes;
  entry->loaded = std::move(loaded);
  entry->last_used = ++uses_;
}

uint64_t ModelPool::usedBytes() const {
  uint64_t bytes = 0;
  for (const Entry& entry : entries_) {
    bytes += entry.card.memory_bytes;
  }
  return bytes;
}

ModelPool::Count ModelPool::count() const {
  const std::lock_guard<std::mutex> hold(lock_);
  Count count;
  for (const Entry& entry : entries_) {
    if (entry.loaded != nullptr) {
      count.sessions += entry.loaded->slots.count();
      count.busy += entry.loaded->slots.busy();
      count.waiting += entry.loaded->slots.waiting();
    }
  }
  count.memory_bytes = usedBytes();
  return count;
}

}  // namespace cli
