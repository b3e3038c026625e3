#include <algorithm>
#include <cmath>
#include <cstdio>

#include "api/api.h"
#include "api/plan_choices.h"
#include "api/session.h"

namespace oriel_internal {
namespace {

constexpr size_t kMaxPath = 4096;

constexpr char kUnreadable[] = "cannot be read";

// Reads a file from front to back. A read error ends it.
struct Front {
  const InputFile* file;
  uint64_t at = 0;
  bool failed = false;

  static size_t read(void* context, void* buffer, size_t capacity) {
    auto* const front = static_cast<Front*>(context);
    const uint64_t bytes = std::min<uint64_t>(capacity, front->file->bytes() - front->at);
    front->failed =
        front->failed || (bytes != 0 && !front->file->read(front->at, buffer, bytes, Log()).ok());
    if (bytes == 0 || front->failed) {
      return 0;
    }
    front->at += bytes;
    return static_cast<size_t>(bytes);
  }
};

Status hashEnds(const ModelFile& model, const Log& log, uint64_t* hash) {
  EndsHash sum;
  uint8_t block[4096];
  const uint64_t part = std::min(model.bytes(), EndsHash::kBytes);
  for (const uint64_t begin : {uint64_t{0}, model.bytes() - part}) {
    for (uint64_t at = 0; at < part; at += sizeof(block)) {
      const uint64_t bytes = std::min<uint64_t>(sizeof(block), part - at);
      ORIEL_TRY(model.read(begin + at, block, bytes, log));
      sum.add(block, static_cast<size_t>(bytes));
    }
  }
  *hash = sum.value();
  return kOk;
}

// `fault` is null if the calibration is valid.
Status check(const InputFile& input, const ModelFile& model, uint32_t n_layers, const Log& log,
             CalibrationFile* file, const char** fault) {
  Front front = {&input};
  const CalibrationFault found = readCalibrationFile({Front::read, &front}, file);
  if (front.failed) {
    *fault = kUnreadable;
    return kOk;
  }
  switch (found) {
    case CalibrationFault::kNotOne:
      *fault = "is not a calibration";
      return kOk;
    case CalibrationFault::kVersion:
      *fault = "has a version that is not known here";
      return kOk;
    case CalibrationFault::kConstant:
      *fault = "has a constant that cannot be a measurement";
      return kOk;
    case CalibrationFault::kNone:
      break;
  }
  uint64_t hash = file->model_hash;
  if (file->model_bytes == model.bytes()) {
    ORIEL_TRY(hashEnds(model, log, &hash));
  }
  *fault =
      file->model_bytes != model.bytes() || file->model_hash != hash
          ? "was measured on another file"
      : (file->constants.layer_count != 0 && file->constants.layer_count != n_layers) ||
              (file->constants.profile_count != 0 && file->constants.profile_layers != n_layers)
          ? "has another number of layers than the model"
          : nullptr;
  return kOk;
}

Status readNamed(const char* path, const ModelFile& model, uint32_t n_layers, const Log& log,
                 CalibrationFile* measured) {
  InputFile input;
  ORIEL_TRY(input.openIfThere(path, log));
  if (!input.isOpen()) {
    return log.fail(ORIEL_ERROR_IO, "the calibration %.600s is not there: check the path", path);
  }
  const char* fault = nullptr;
  ORIEL_TRY(check(input, model, n_layers, log, measured, &fault));
  if (fault != nullptr) {
    return log.fail(fault == kUnreadable ? ORIEL_ERROR_IO : ORIEL_ERROR_FORMAT,
                    "%.600s %s: measure again with `oriel calibrate`", path, fault);
  }
  return kOk;
}

}  // namespace

Status findCalibration(const char* model_path, const ModelFile& model, uint32_t n_layers,
                       const LoadOptions& options, const Log& log, CalibrationFile* measured,
                       bool* found) {
  const char* const named = options.calibration_file;
  *found = options.calibration != nullptr;
  if (*found) {
    readCalibration(*options.calibration, measured);
    return kOk;
  }
  if (named != nullptr && named[0] == '\0') {
    return kOk;
  }
  if (named != nullptr) {
    ORIEL_TRY(readNamed(named, model, n_layers, log, measured));
    *found = true;
    return kOk;
  }
  char path[kMaxPath];
  const int length = std::snprintf(path, sizeof(path), "%s.calibration.json", model_path);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) {
    return kOk;  // a descriptor has no folder to hold a calibration
  }
  InputFile input;
  const char* fault = kUnreadable;
  if (input.openIfThere(path, Log()).ok()) {
    if (!input.isOpen()) {
      return kOk;
    }
    ORIEL_TRY(check(input, model, n_layers, log, measured, &fault));
  }
  *found = fault == nullptr;
  if (!*found) {
    log.write(ORIEL_LOG_WARNING, "%.600s %s: measure again with `oriel calibrate`", path, fault);
  }
  return kOk;
}

namespace {

bool validProfiles(const oriel_calibration& options) {
  if ((options.profiles == nullptr) != (options.profile_count == 0) ||
      options.profile_count > kMaxWindowProfiles) {
    return false;
  }
  for (uint32_t i = 0; i < options.profile_count; ++i) {
    const oriel_window_profile& profile = options.profiles[i];
    if (!isMeasurement(std::fabs(profile.loss_nats)) || profile.shares == nullptr ||
        profile.share_count == 0 || profile.share_count > kMaxLayers ||
        profile.share_count != options.profiles[0].share_count || profile.window_tokens == 0 ||
        profile.window_tokens > kMaxWindow) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool validCalibration(const oriel_calibration* given) {
  oriel_calibration options;
  if (!readOptions(given, &options) || (options.layers == nullptr) != (options.layer_count == 0)) {
    return false;
  }
  for (const double constant : {options.forget_scale, options.forget_power, options.keys_int8,
                                options.keys_int4, options.values_int8, options.values_int4,
                                options.kl_limit, options.state_f16, options.state_int8}) {
    if (!isMeasurement(constant)) {
      return false;
    }
  }
  if (!validProfiles(options)) {
    return false;
  }
  for (uint32_t layer = 0; layer < options.layer_count; ++layer) {
    const oriel_layer_calibration& costs = options.layers[layer];
    if (!isMeasurement(costs.keys_int8) || !isMeasurement(costs.keys_int4) ||
        !isMeasurement(costs.values_int8) || !isMeasurement(costs.values_int4)) {
      return false;
    }
  }
  return true;
}

void readCalibration(const oriel_calibration& given, CalibrationFile* measured) {
  oriel_calibration options;
  (void)readOptions(&given, &options);
  Calibration& constants = measured->constants;
  constants.forget_scale = options.forget_scale;
  constants.forget_power = options.forget_power;
  constants.keys_int8 = options.keys_int8;
  constants.keys_int4 = options.keys_int4;
  constants.values_int8 = options.values_int8;
  constants.values_int4 = options.values_int4;
  constants.kl_limit = options.kl_limit;
  constants.state_f16 = options.state_f16;
  constants.state_int8 = options.state_int8;
  constants.layer_count = options.layer_count;
  constants.layers = options.layer_count != 0 ? measured->layers : nullptr;
  // Larger counts than kMaxLayers are refused elsewhere.
  for (uint32_t layer = 0; layer < std::min(options.layer_count, kMaxLayers); ++layer) {
    const oriel_layer_calibration& costs = options.layers[layer];
    measured->layers[layer] = {costs.keys_int8, costs.keys_int4, costs.values_int8,
                               costs.values_int4};
  }
  constants.profile_count = options.profile_count;
  constants.profiles = options.profile_count != 0 ? measured->profiles : nullptr;
  constants.profile_layers = options.profile_count != 0 ? options.profiles[0].share_count : 0;
  for (uint32_t i = 0; i < options.profile_count; ++i) {
    const oriel_window_profile& from = options.profiles[i];
    WindowProfile& to = measured->profiles[i];
    to = {from.loss_nats, from.window_tokens, {}};
    std::copy_n(from.shares, from.share_count, to.parts);
  }
}

void useCalibration(const Calibration& measured, const ModelDesc& model, LossModel* loss) {
  const double key_scale = LossModel::keyPriorScale(model);
  loss->keys_int8 *= key_scale;
  loss->keys_int4 *= key_scale;
  const struct {
    double measured;
    double* constant;
  } constants[] = {
      {measured.forget_scale, &loss->forget_scale}, {measured.forget_power, &loss->forget_power},
      {measured.keys_int8, &loss->keys_int8},       {measured.keys_int4, &loss->keys_int4},
      {measured.values_int8, &loss->values_int8},   {measured.values_int4, &loss->values_int4},
      {measured.kl_limit, &loss->kl_limit},         {measured.state_f16, &loss->state_f16},
      {measured.state_int8, &loss->state_int8}};
  for (const auto& entry : constants) {
    if (entry.measured != 0) {
      *entry.constant = entry.measured;
    }
  }
  loss->layers = measured.layers;
  loss->profiles = {measured.profiles, measured.profile_count, measured.profile_layers};
}

// Fills in the description of a plan.

namespace {

StateChoice publicStateFormat(StateFormat format) {
  switch (format) {
    case StateFormat::kF32:
      return StateChoice::kF32;
    case StateFormat::kF16:
      return StateChoice::kF16;
    case StateFormat::kInt8:
      return StateChoice::kInt8;
  }
  return StateChoice::kAuto;
}

const char* refusalText(Refusal refusal) {
  return refusal == Refusal::kQuality ? "quality" : refusal == Refusal::kSpeed ? "speed" : nullptr;
}

StepSeconds publicCost(const StepCost& cost) {
  StepSeconds out = {};
  out.tokens = cost.tokens;
  out.overhead_s = cost.overhead_s;
  out.weights_s = cost.weights_s;
  out.weights_once_s = cost.weights_once_s;
  out.head_s = cost.head_s;
  out.group_count = cost.n_views;
  for (uint32_t i = 0; i < cost.n_views; ++i) {
    out.groups[i].window_tokens = cost.seen[i].window_tokens;
    out.groups[i].s_per_token = cost.seen[i].s_per_token;
  }
  return out;
}

// Memory of several sessions. The last session's share is the saving of a plan with one session less and the same
// windows.
void describeSessions(const PreparedModel& prepared, PlanResult* plan) {
  const Budget& budget = prepared.budget;
  const SessionWindows& sessions = prepared.sessions;
  static_assert(sizeof(plan->session_windows) / sizeof(plan->session_windows[0]) == kMaxSessions,
                "a number for each");
  plan->sessions = sessions.count;
  for (uint32_t i = 0; i < sessions.count; ++i) {
    plan->session_windows[i] = sessionCache(budget.cache, i).window;
  }
  plan->prefix_tokens = prepared.prefix_tokens;
  if (prepared.prefix_tokens != 0) {
    plan->prefix_bytes = prefixBytes(prepared.desc, budget.cache, budget.formats);
  }
  SessionWindows fewer = sessions;
  --fewer.count;
  uint64_t host_bytes = prepared.model_host_bytes + fewer.count * prepared.session_host_bytes +
                        prepared.pictures.device_bytes;
  CacheShape cache = budget.cache;
  cache.sessions = &fewer;
  if (fewer.count != 0) {
    plan->session_bytes =
        budget.bytes.total() -
        budgetBytes(prepared.desc, prepared.totals, host_bytes, cache, budget.formats, budget.chunk)
            .total();
  }
}

// The shortest window among layers that follow the session's window.
uint32_t shortestWindow(const BudgetChoice& choice, uint32_t n_layers) {
  LayerView least;
  for (uint32_t layer = 0; choice.profile != nullptr && layer < n_layers; ++layer) {
    const uint32_t parts = choice.profile->parts[layer];
    least.parts = parts != 0 && (least.parts == 0 || parts < least.parts) ? parts : least.parts;
  }
  return static_cast<uint32_t>(least.windowOf(choice.cache.window));
}

// The saving of the same window without drafting.
void describeDrafts(const PreparedModel& prepared, PlanResult* plan) {
  const Budget& budget = prepared.budget;
  if (budget.cache.drafts == 0) {
    return;
  }
  plan->draft_tokens = batchRows(budget.cache, budget.chunk) - 1;
  CacheShape cache = budget.cache;
  cache.drafts = 0;
  const uint64_t host_bytes =
      budget.bytes.host - tokenIdBytes(budget.cache) - prepared.draft_host_bytes;
  ModelDesc desc = prepared.desc;
  desc.predicts = false;
  plan->draft_bytes =
      budget.bytes.total() -
      budgetBytes(desc, prepared.totals, host_bytes, cache, budget.formats, budget.chunk).total();
}

// The slots in all sessions, and the index over their files. A longer window could use this memory.
void describeRecall(const PreparedModel& prepared, PlanResult* plan) {
  const Budget& budget = prepared.budget;
  const RecallSettings& recall = prepared.recall;
  plan->sink_tokens -= recall.tokens;
  if (recall.tokens == 0) {
    return;
  }
  plan->recall_tokens = recall.tokens;
  uint64_t with = 0;
  uint64_t without = 0;
  CacheShape cache = budget.cache;
  (void)cacheBytes(prepared.desc, cache, budget.formats, &with);
  cache.sinks -= recall.tokens;
  (void)cacheBytes(prepared.desc, cache, budget.formats, &without);
  Arena index;
  takeRecall(recall, prepared.desc, &index);
  plan->recall_memory_bytes = with - without + plan->sessions * index.used();
  const uint64_t token_bytes = RecallFile::tokenBytes(prepared.desc, budget.cache, budget.formats);
  plan->recall_file_tokens =
      std::min(RecallFile::tokensIn(recall.file_bytes, token_bytes), recall.words) / kRecallBlock *
      kRecallBlock;
  plan->recall_file_bytes = plan->recall_file_tokens * token_bytes;
}

// The rows of pictures that all sessions hold.
uint64_t bytesOfHeldRows(const PreparedModel& prepared) {
  const ModelDesc& desc = prepared.desc;
  Arena session;
  if (desc.pictures != nullptr) {
    (void)PictureStore::create(*desc.pictures, desc.n_embd, desc.pictures->rows_held, &session);
  }
  return prepared.sessions.count * session.used();
}

}  // namespace

PlanResult planResult(const PreparedModel& prepared) {
  const Budget& budget = prepared.budget;
  const ModelDesc& desc = prepared.desc;
  PlanResult plan = {};
  // Without the weights this is unknown.
  plan.fits = budget.fits && !prepared.weights_unknown ? 1 : 0;
  plan.memory_bytes = prepared.memory_bytes;
  plan.total_bytes = budget.bytes.total();
  plan.weights_bytes = budget.bytes.weights;
  plan.mapped_bytes = budget.bytes.mapped;
  plan.kv_bytes = budget.bytes.cache;
  plan.activation_bytes = budget.bytes.activations;
  plan.staging_bytes = budget.bytes.io;
  plan.image_tokens = prepared.pictures.image_rows;
  plan.image_bytes =
      prepared.pictures.host_bytes + prepared.pictures.device_bytes + bytesOfHeldRows(prepared);
  plan.host_bytes = budget.bytes.host;
  plan.constraint_bytes = prepared.constraint_bytes;
  plan.transcript_bytes = prepared.sessions.count * prepared.transcript_bytes;
  plan.minimum_bytes = prepared.weights_unknown ? 0 : budget.minimum_bytes;
  static_assert(sizeof(plan.raised_by_bias) * 8 >= kMaxLayers, "a bit for each layer");
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    if (budget.formats.keysRaised(layer)) {
      uint64_t* why =
          budget.formats.raisedByNorm(layer) ? plan.raised_by_norm : plan.raised_by_bias;
      why[layer / 64] |= uint64_t{1} << (layer % 64);
    }
  }
  static_assert(sizeof(plan.window_shares) == kMaxLayers, "a number for each layer");
  plan.layer_count = desc.n_layers;
  for (uint32_t layer = 0; layer < desc.n_layers; ++layer) {
    plan.window_shares[layer] = static_cast<uint8_t>(desc.viewOf(layer).parts);
  }
  describeGroups(desc, &plan);
  for (uint32_t i = 0; i < plan.group_count; ++i) {
    const CacheShape shape = viewShape(desc.views[i], budget.cache);
    LayerGroup& group = plan.groups[i];
    // Published figures count the trained window, even if the session uses a shorter one.
    const bool trained = group.kind == GroupKind::kSliding || group.kind == GroupKind::kConvolution;
    const uint32_t window = trained ? group.window_tokens : shape.window;
    forEachMemory(desc, budget.cache, budget.formats, [&](const Memory& memory) {
      group.bytes_per_token += memory.view == i ? memory.slotBytes() : 0;
    });
    group.bytes = group.bytes_per_token * (group.kind == GroupKind::kState ? shape.ring : window);
    group.window_tokens = group.kind == GroupKind::kState ? 0 : shape.window;
    group.ring_tokens = shape.ring;
    if (group.kind == GroupKind::kState || group.kind == GroupKind::kConvolution) {
      plan.state_bytes += prepared.sessions.count * group.bytes;
    }
    if (group.kind == GroupKind::kState) {
      plan.state_slots = shape.ring;
      plan.checkpoints = budget.cache.checkpoints;
    }
  }
  plan.kv_bytes_per_token = memoryGrowth(desc, budget.formats).per_token;
  plan.kv_window_bytes = memoryBytesAt(desc, budget.formats, budget.cache.window);
  plan.weights_unknown = prepared.weights_unknown ? 1 : 0;
  plan.window_tokens = budget.cache.window;
  plan.sink_tokens = budget.cache.sinks;
  plan.ring_tokens = budget.cache.ring;
  plan.chunk_tokens = budget.chunk;
  plan.activation_bits = prepared.activation_bits;
  plan.context_train_tokens = desc.context_train;
  plan.k_format = publicFormat(budget.formats.k);
  plan.v_format = publicFormat(budget.formats.v);
  plan.weights_read_bytes_per_token = prepared.totals.weights_read_bytes_per_token;
  plan.head_read_bytes = prepared.totals.head_read_bytes;
  plan.draft_weights_bytes = prepared.totals.draft_weights_bytes;
  // Never reached if every layer has a short window of its own.
  plan.crossover_tokens = plan.kv_bytes_per_token != 0
                              ? plan.weights_read_bytes_per_token / plan.kv_bytes_per_token
                              : 0;
  plan.loss_nats = budget.loss;
  describeSessions(prepared, &plan);
  describeDrafts(prepared, &plan);
  describeRecall(prepared, &plan);
  plan.calibrated = prepared.calibrated ? 1 : 0;
  static_assert(sizeof(plan.choices) / sizeof(plan.choices[0]) >= kFormatPairCount, "room for all");
  for (; plan.choice_count < budget.n_choices; ++plan.choice_count) {
    const BudgetChoice& choice = budget.choices[plan.choice_count];
    PlanChoice& out = plan.choices[plan.choice_count];
    out.k_format = publicFormat(choice.formats.k);
    out.v_format = publicFormat(choice.formats.v);
    out.fits = choice.fits && !prepared.weights_unknown ? 1 : 0;
    out.window_tokens = choice.cache.window;
    out.shortest_window_tokens = shortestWindow(choice, desc.n_layers);
    out.chunk_tokens = choice.chunk;
    out.total_bytes = choice.bytes.total();
    out.minimum_bytes = prepared.weights_unknown ? 0 : choice.minimum_bytes;
    out.loss_nats = choice.loss;
    out.refused = refusalText(choice.refused);
    out.decode_tokens_per_s = choice.decode_tokens_per_s;
  }
  plan.state_format =
      desc.keepsStates() ? publicStateFormat(budget.formats.state) : StateChoice::kAuto;
  plan.on_file_bytes = prepared.totals.on_file_bytes;
  if (desc.adapters != nullptr) {
    const ActivationLayout layout =
        layoutActivations(desc, budget.cache, budget.chunk, prepared.totals.on_file);
    plan.adapter_bytes =
        prepared.totals.adapter_bytes + layout.thin.size_bytes + layout.thin_gated.size_bytes;
  }
  plan.expert_slots = prepared.totals.on_file.expert_slots;
  plan.expert_count = prepared.work.expert_count;
  plan.expert_hit_rate = prepared.work.expertHitRate();
  plan.file_s = budget.decode.file_s;
  for (uint32_t level = 0; level < kTrimLevels; ++level) {
    const ArenaSet arenas = arenasOf(static_cast<oriel_trim_level>(level));
    plan.trim_bytes[level] = budget.bytes.held();
    for (const auto& [kind, bytes] :
         {std::pair(ArenaKind::kWeights, budget.bytes.weights - budget.bytes.mapped),
          std::pair(ArenaKind::kCache, budget.bytes.cache),
          std::pair(ArenaKind::kActivations, budget.bytes.activations),
          std::pair(ArenaKind::kIo, budget.bytes.io)}) {
      plan.trim_bytes[level] -= contains(arenas, kind) ? bytes : 0;
    }
  }
  plan.decode = publicCost(budget.decode);
  plan.prefill = publicCost(budget.prefill);
  return plan;
}

}  // namespace oriel_internal
