#include <cmath>

#include "api/api.h"
#include "api/describe.h"
#include "api/model_parts.h"
#include "api/plan_choices.h"
#include "api/session.h"
#include "exec/host_executor.h"
#include "model/adapters.h"
#include "oriel/tools.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

// The default cap: 1/this of the system's free memory.
constexpr uint64_t kDefaultMemoryShare = 2;
// Default draft length with a draft model: the kernels for few tokens process four at a time.
constexpr uint32_t kModelDrafts = 3;
// The default if the system does not report its memory.
constexpr uint64_t kDefaultMemoryBytes = 1ull << 30;

// A device with its own memory has its own limit. A device that shares the system's memory gets a share of the free
// memory. A 32-bit process may be unable to address all of it.
uint64_t memoryCap(const LoadOptions& options, const DeviceMemory& device) {
  constexpr uint64_t kAddresses = SIZE_MAX;
  if (options.memory_bytes != 0) {
    return std::min<uint64_t>(options.memory_bytes, kAddresses);
  }
  if (device.is_own) {
    return std::min(device.bytes, kAddresses);
  }
  const uint64_t free_bytes = std::min(freeMemoryBytes(), kAddresses);
  const uint64_t share = free_bytes != 0 ? free_bytes / kDefaultMemoryShare : kDefaultMemoryBytes;
  return device.bytes != 0 ? std::min(share, device.bytes) : share;
}

// A side without a requested format is f16 until the budgeter chooses.
bool readWanted(const oriel_kv_format& wanted, bool* fixed, KvFormat* format) {
  *format = KvFormat::kF16;
  *fixed = rawEnum(wanted) != ORIEL_KV_AUTO;
  return !*fixed || readFormat(rawEnum(wanted), format);
}

// Like readWanted(), with f32 as the initial format.
void readWantedState(StateChoice wanted, bool* fixed, StateFormat* format) {
  *fixed = wanted != StateChoice::kAuto;
  *format = wanted == StateChoice::kF16    ? StateFormat::kF16
            : wanted == StateChoice::kInt8 ? StateFormat::kInt8
                                           : StateFormat::kF32;
}

// False if no measurement can give these numbers.
bool readSpeed(const oriel_speed& given, DeviceSpeed* speed) {
  *speed = {};
  if (given.struct_size != sizeof(given) || given.weight_count > kMaxSpeedWeights ||
      given.cache_count > kMaxSpeedCaches) {
    return false;
  }
  copyText(given.device, sizeof(given.device), speed->device);
  copyText(given.driver, sizeof(given.driver), speed->driver);
  speed->submit_ns = given.submit_ns;
  speed->dispatch_ns = given.dispatch_ns;
  speed->read_bytes_per_s = given.read_bytes_per_s;
  speed->shape = given.shape;
  speed->file_bytes_per_s = given.file_bytes_per_s;
  speed->weight_count = given.weight_count;
  speed->cache_count = given.cache_count;
  for (uint32_t i = 0; i < given.weight_count; ++i) {
    const oriel_weight_speed& rate = given.weights[i];
    speed->weights[i] = {rate.tensor_type,    0,           rate.decode_ns, rate.chunk_ns,
                         rate.chunk_token_ns, rate.head_ns};
  }
  for (uint32_t i = 0; i < given.cache_count; ++i) {
    const oriel_cache_speed& rate = given.caches[i];
    CacheSpeed& out = speed->caches[i];
    if (!readFormat(rawEnum(rate.k_format), &out.k_format) ||
        !readFormat(rawEnum(rate.v_format), &out.v_format)) {
      return false;
    }
    out.decode_ns = rate.decode_ns;
    out.chunk_ns = rate.chunk_ns;
    out.append_ns = rate.append_ns;
    out.chunk_append_ns = rate.chunk_append_ns;
  }
  return validSpeed(*speed);
}

}  // namespace

oriel_kv_format publicFormat(KvFormat format) {
  switch (format) {
    case KvFormat::kF16:
      return ORIEL_KV_F16;
    case KvFormat::kInt8:
      return ORIEL_KV_INT8;
    case KvFormat::kInt4:
      return ORIEL_KV_INT4;
  }
  return ORIEL_KV_AUTO;
}

bool readFormat(int wanted, KvFormat* format) {
  switch (wanted) {
    case ORIEL_KV_F16:
      *format = KvFormat::kF16;
      return true;
    case ORIEL_KV_INT8:
      *format = KvFormat::kInt8;
      return true;
    case ORIEL_KV_INT4:
      *format = KvFormat::kInt4;
      return true;
  }
  return false;
}

Status checkAllocator(const LoadOptions& options, const Log& log) {
  if (options.allocator != nullptr &&
      (options.allocator->allocate == nullptr || options.allocator->release == nullptr)) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "the allocator lacks a function: give both, or none");
  }
  return kOk;
}

Status readRequest(const LoadOptions& options, const Log& log, BudgetRequest* request) {
  *request = BudgetRequest();
  ORIEL_TRY(checkDeviceTrust(options, log));
  ORIEL_TRY(checkAllocator(options, log));
  if (!readWanted(options.k_format, &request->fixed_k, &request->formats.k) ||
      !readWanted(options.v_format, &request->fixed_v, &request->formats.v)) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "a cache format is not known: use f16, int8 or int4");
  }
  readWantedState(options.state_format, &request->fixed_state, &request->formats.state);
  ORIEL_TRY(options.calibration != nullptr
                ? checkResult(options.calibration, "oriel_calibration", log)
                : kOk);
  if (!validCalibration(options.calibration)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a constant of the calibration is negative or not a number: measure again");
  }
  if (options.min_tokens_per_s > 0 && options.speed == nullptr) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "a least speed needs the rates of the device: measure them with "
                    "oriel_speed_measure");
  }
  const bool asks_device = options.memory_bytes == 0 || options.chunk_tokens == 0;
  const DeviceMemory device = asks_device ? deviceMemory(options) : DeviceMemory();
  request->memory_bytes = memoryCap(options, device);
  request->most_chunk = device.is_discrete ? kMaxChunk : 0;
  const bool whole = options.window_tokens == ORIEL_WINDOW_MAX;
  request->window = whole ? 0 : options.window_tokens;
  request->most_window = whole ? kMaxWindow : kDefaultWindow;
  request->min_window = options.min_window_tokens;
  request->sinks = sinksOf(options);
  request->chunk = options.chunk_tokens;
  if (options.draft_model != nullptr && options.sessions > 1) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "\"draft_model\" guesses for one session and \"sessions\" is %u: leave one out",
                    options.sessions);
  }
  request->fixed_checkpoints = options.checkpoints != 0;
  request->checkpoints = options.checkpoints == UINT32_MAX ? 0 : options.checkpoints;
  return kOk;
}

// Overrides the measured values by the app's.
Status readWindowShares(const LoadOptions& options, const Log& log, LossModel* loss,
                        ModelDesc* desc) {
  if (options.window_shares == nullptr) {
    return kOk;
  }
  loss->profiles = {};
  uint8_t shares[kMaxLayers] = {};
  if (options.window_share_count == 1) {
    std::fill_n(shares, desc->n_layers, options.window_shares[0]);
  } else if (options.window_share_count == desc->n_layers) {
    std::copy_n(options.window_shares, desc->n_layers, shares);
  } else {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "%u window fractions for %u layers: give a number per layer, or one number",
                    options.window_share_count, desc->n_layers);
  }
  if (!shareWindow(shares, desc)) {
    return log.fail(ORIEL_ERROR_ARGUMENT,
                    "layers would see the window in too many different lengths: give fewer");
  }
  return kOk;
}

// The draft length that steps of such a plan can verify. 0 with several sessions (their steps are batched anyway) and
// with experts on file (wrong drafts would read experts).
uint32_t draftsOf(const PreparedModel& prepared, const OnFile& on_file) {
  return prepared.sessions.count > 1 || on_file.expert_slots != 0 ? 0 : prepared.drafts;
}

Status readModelRequest(const LoadOptions& options, const Log& log, PreparedModel* prepared,
                        BudgetRequest* request) {
  const uint32_t n_layers = prepared->desc.n_layers;
  const Calibration measured = prepared->calibrated ? prepared->measured.constants : Calibration();
  useCalibration(measured, prepared->desc, &request->loss);
  for (const uint32_t count : {measured.layer_count, measured.profile_layers}) {
    if (count != 0 && count != n_layers) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "the calibration has %u layers and the model %u: measure this model", count,
                      n_layers);
    }
  }
  if (options.f16_layers != nullptr) {
    if (options.f16_layer_count != n_layers) {
      return log.fail(ORIEL_ERROR_ARGUMENT, "%u f16 flags for %u layers: give a number per layer",
                      options.f16_layer_count, n_layers);
    }
    for (uint32_t layer = 0; layer < n_layers; ++layer) {
      if (options.f16_layers[layer] != 0) {
        request->formats.keepF16(layer);
      }
    }
  }
  ORIEL_TRY(readWindowShares(options, log, &request->loss, &prepared->desc));
  if (options.speed != nullptr) {
    ORIEL_TRY(checkResult(options.speed, "oriel_speed", log));
    if (!readSpeed(*options.speed, &prepared->speed)) {
      return log.fail(ORIEL_ERROR_ARGUMENT,
                      "the rates of the device are not measurements: call oriel_speed_measure");
    }
    request->speed = &prepared->speed;
    request->work = &prepared->work;
    request->min_tokens_per_s = options.min_tokens_per_s;
  }
  return kOk;
}

namespace {

// Weights in the kernels' order are mapped by executors that compute in host memory.
Status openPreparedDir(const LoadOptions& options, const Log& log, PreparedModel* prepared) {
  if (folderOrNone(options.prepared_dir) == nullptr) {
    return kOk;
  }
  if (std::strlen(options.prepared_dir) > kLongestPreparedDir) {
    return log.fail(ORIEL_ERROR_ARGUMENT, "\"prepared_dir\" is too long: give a shorter path");
  }
  prepared->maps_weights =
      options.device == DeviceKind::kCpu ||
      (options.device == DeviceKind::kAuto && deviceMemory(options).bytes == 0);
  if (!prepared->maps_weights) {
    log.write(ORIEL_LOG_INFO, "a graphics device holds its weights: \"prepared_dir\" is not used");
    return kOk;
  }
  prepared->file_hash = draftHash(prepared->source.gguf());
  (void)prepared->text.open(options.prepared_dir, textId(*prepared), options.constraints != 0);
  return kOk;
}

// Adds the draft model to the description and the tensors of the target model.
Status addDraftModel(const LoadOptions& options, const Log& log, const StopCheck& stop,
                     PreparedModel* prepared) {
  if (options.draft_model == nullptr) {
    return kOk;
  }
  const oriel_allocator& allocator = allocatorOf(options);
  ORIEL_TRY(prepared->draft_source.open(options.draft_model, allocator, log, stop));
  NamingLog named(log, options.draft_model);
  ModelDesc desc;
  TensorIndex tensors;
  ORIEL_TRY(readDraftDesc(prepared->draft_source.gguf(), allocator, named.log(), &desc, &tensors));
  return joinDraft(desc, tensors, named.log(), &prepared->desc, &prepared->tensors);
}

// Adds the file's prediction block, if guesses are wanted. A block that cannot run is left out with a line.
Status addPrediction(const GgufFile& file, const Log& log, PreparedModel* prepared) {
  if (prepared->drafts == 0 || prepared->desc.extra_layers == 0 || prepared->sessions.count > 1) {
    return kOk;
  }
  ErrorLine why;
  const Status status =
      readPrediction(file, Log{nullptr, nullptr, &why}, &prepared->desc, &prepared->tensors);
  if (status.passing()) {
    return log.fail(status.code(), "%s", why.text());
  }
  if (!status.ok()) {
    log.write(ORIEL_LOG_WARNING, "the prediction block is not used: %s", why.text());
  }
  return kOk;
}

// A plan has either of these. Tokens that come back have no keys in the block.
void dropPrediction(const Log& log, PreparedModel* prepared) {
  const bool recalls = prepared->recall.tokens != 0;
  if (prepared->desc.has_prediction && (recalls || prepared->desc.pictures != nullptr)) {
    log.write(ORIEL_LOG_WARNING, "the prediction block is not used with %s",
              recalls ? "\"retrieval_tokens\"" : "pictures");
    prepared->desc.has_prediction = false;
  }
}

void measureTemplate(const GgufFile& file, Arena* arena) {
  ChatTemplate chat = recogniseChat(file);
  keepTemplate(arena, &chat);
}

// Counts the trie from the tokens: builds a tokenizer, then frees it.
Status measureTrie(const GgufFile& file, const oriel_allocator& allocator, const Log& log,
                   const StopCheck& stop, Arena* arena) {
  Arena measure;
  Tokenizer* tokenizer = nullptr;
  ORIEL_TRY(Tokenizer::build(file, Log(), &measure, &tokenizer, stop));
  void* const block = allocateZeroed(allocator, measure.used());
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes: close other programs",
                    static_cast<unsigned long long>(measure.used()));
  }
  Arena real(block, measure.used());
  Status status = Tokenizer::build(file, Log(), &real, &tokenizer, stop);
  if (status.code() == ORIEL_ERROR_CANCELLED) {
    // No line: the app asked for it.
  } else if (!status.ok()) {  // once more, for its line
    Arena again(block, measure.used());
    status = Tokenizer::build(file, log, &again, &tokenizer);
  } else {
    TokenTrie* trie = nullptr;
    status = TokenTrie::build(*tokenizer, allocator, log, arena, &trie, stop);
  }
  release(allocator, block, measure.used());
  return status;
}

// planWith() as chooseOnFile() calls it.
struct FilePlanner {
  const char* path;
  const LoadOptions& options;
  const StopCheck& stop;
  PreparedModel* prepared;

  static Status plan(void* context, const OnFile& on_file, const Log& log, BudgetRequest* request) {
    const FilePlanner& self = *static_cast<const FilePlanner*>(context);
    ORIEL_TRY(self.stop.check());
    return planWith(on_file, self.path, self.options, log, self.prepared, request);
  }
};

}  // namespace

Status prepareModel(const char* path, const LoadOptions& options, PreparedModel* prepared,
                    const StopCheck& stop) {
  const Log log = logOf(options);
  BudgetRequest request;
  ORIEL_TRY(readRequest(options, log, &request));
  prepared->memory_bytes = request.memory_bytes;
  prepared->transcript_bytes =
      options.transcript_bytes != 0 ? options.transcript_bytes : Transcript::kDefaultBytes;
  prepared->drafts = options.draft_tokens != 0        ? options.draft_tokens
                     : options.draft_model != nullptr ? kModelDrafts
                                                      : 0;
  ORIEL_TRY(prepared->source.open(path, allocatorOf(options), log, stop));
  const GgufFile& file = prepared->source.gguf();
  NamingLog named(log, path);
  if (options.device != DeviceKind::kNone) {
    uint32_t prefix_tokens = 0;
    ORIEL_TRY(openPreparedDir(options, log, prepared));
    ORIEL_TRY(countPrefix(options, stop, log, prepared, &prefix_tokens));
    ORIEL_TRY(readSessions(options, prefix_tokens, log, prepared, &request));
  }

  Arena model_arena;
  (void)model_arena.take<uint8_t>(sizeof(oriel_model));
  Tokenizer* tokenizer = nullptr;
  if (options.device == DeviceKind::kNone) {
    // An architecture that cannot run still has a tokenizer.
    ErrorLine why;
    const Status described = readModelDesc(file, allocatorOf(options), Log{nullptr, nullptr, &why},
                                           &prepared->desc, &prepared->tensors);
    if (described.passing()) {
      return named.log().fail(described.code(), "%s", why.text());
    }
    if (!described.ok()) {
      prepared->desc = ModelDesc();
    }
    ORIEL_TRY(Tokenizer::build(file, named.log(), &model_arena, &tokenizer, stop));
    measureTemplate(file, &model_arena);
    prepared->model_host_bytes = model_arena.used();
    return kOk;
  }
  ORIEL_TRY(
      readModelDesc(file, allocatorOf(options), named.log(), &prepared->desc, &prepared->tensors));
  ORIEL_TRY(addDraftModel(options, log, stop, prepared));
  ORIEL_TRY(addPrediction(file, named.log(), prepared));
  ORIEL_TRY(prepared->adapters.open(options, file, log, stop, &prepared->desc, &prepared->tensors));
  ORIEL_TRY(prepared->pictures.open(options, file, log, stop));
  ORIEL_TRY(describeInput(prepared->pictures.desc, prepared->pictures.image_rows, file, named.log(),
                          &prepared->desc, &prepared->picture_input));
  const TokenizerBlock saved = prepared->text.tokenizer();
  ORIEL_TRY(Tokenizer::build(file, named.log(), &model_arena, &tokenizer, stop, saved));
  if (options.constraints != 0) {
    const uint64_t before = model_arena.used();
    if (saved.data != nullptr) {
      (void)TokenTrie::copyOf(prepared->text.trie(), 0, &model_arena);
    } else {
      ORIEL_TRY(measureTrie(file, allocatorOf(options), log, stop, &model_arena));
    }
    prepared->constraints = true;
    prepared->trie_bytes = model_arena.used() - before;
  }
  measureTemplate(file, &model_arena);

  ORIEL_TRY(findCalibration(path, prepared->source, prepared->desc.n_layers, options, log,
                            &prepared->measured, &prepared->calibrated));
  ORIEL_TRY(guardKeys(file, prepared->tensors, prepared->desc, log, &request.formats));
  ORIEL_TRY(readModelRequest(options, log, prepared, &request));
  ORIEL_TRY(readRecall(options, prepared->desc, log, &prepared->recall));
  const uint32_t rows = prepared->desc.pictures != nullptr ? prepared->pictures.image_rows : 0;
  if (prepared->recall.tokens != 0 && rows > prepared->recall.tokens) {
    log.write(ORIEL_LOG_WARNING,
              "pictures of more than %u tokens do not come back: give more \"retrieval_tokens\"",
              prepared->recall.tokens);
  }
  request.recall = prepared->recall.tokens;
  dropPrediction(named.log(), prepared);
  prepared->text_host_bytes = model_arena.used();
  FilePlanner planner = {path, options, stop, prepared};
  ORIEL_TRY(chooseOnFile(options, named.log(), {FilePlanner::plan, &planner}, request, prepared));
  prepared->activation_bits = activationBits(options, prepared->work);
  takeWindowProfile(prepared);
  if (prepared->desc.has_prediction && !prepared->desc.predicts &&
      draftsOf(*prepared, prepared->totals.on_file) != 0) {
    named.log().write(ORIEL_LOG_WARNING,
                      "the prediction block is not used: it does not fit next to this window");
  }
  return kOk;
}

void warnBeyondTraining(const PreparedModel& prepared, const Log& log) {
  const CacheShape& cache = prepared.budget.cache;
  const uint32_t trained = prepared.desc.visibleTrain();
  uint64_t longest = 0;
  for (uint32_t i = 0; i < cache.sessionCount(); ++i) {
    longest = std::max<uint64_t>(longest, sessionCache(cache, i).window);
  }
  longest += cache.sinks;
  if (prepared.budget.fits && prepared.desc.attends() && trained != 0 && longest > trained) {
    log.write(ORIEL_LOG_WARNING,
              "a window of %llu tokens, sinks included, is longer than the %u that the model was "
              "trained on, and replies get worse beyond them (%.3f nats a token expected): ask for "
              "at most %u",
              static_cast<unsigned long long>(longest), trained, prepared.budget.loss,
              trained > cache.sinks ? trained - cache.sinks : 1);
  }
}

void takeWindowProfile(PreparedModel* prepared) {
  const WindowProfile* const profile = prepared->budget.profile;
  if (profile != nullptr) {
    (void)shareWindow(profile->parts, &prepared->desc);  // checked when it was weighed
  }
}

}  // namespace oriel_internal

using namespace oriel_internal;

namespace {

// use(plan) with the plan of a file.
template <typename Use>
oriel_status planFile(const char* path, const oriel_options* given, const Use& use) {
  CallOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if (path == nullptr || options.device == DeviceKind::kNone) {
    return ORIEL_ERROR_ARGUMENT;
  }
  PreparedModel prepared;
  Status status = prepareModel(path, options, &prepared);
  if (status.ok()) {
    status = prepared.source.expectUnchanged(logOf(options));
  }
  if (!status.ok()) {
    return status.code();
  }
  warnBeyondTraining(prepared, logOf(options));
  return use(planResult(prepared));
}

}  // namespace

oriel_status oriel_plan_file(const char* path, const oriel_options* given, oriel_plan* plan) {
  if (!validResult(plan)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  return planFile(path, given, [&](const PlanResult& result) {
    writeResult(publicPlan(result), plan);
    return ORIEL_OK;
  });
}

oriel_status oriel_plan_describe(const char* path, const oriel_options* given, char* json,
                                 size_t capacity, size_t* needed) {
  if (!validBuffer(json, capacity, needed)) {
    return ORIEL_ERROR_ARGUMENT;
  }
  *needed = 0;
  return planFile(path, given, [&](const PlanResult& result) {
    JsonWriter out(json, capacity);
    writePlanObject(nullptr, result, &out);
    return out.finish(needed);
  });
}

namespace oriel_internal {

// Host memory of a model and its sessions, and the best plan for it.

Status layOutModel(PreparedModel& prepared, const ModelDesc& desc, const PlanShape& shape,
                   const char* path, const LoadOptions& options, const Log& log, Arena* arena,
                   ModelParts* parts) {
  ORIEL_TRY(buildPlan(prepared.tensors, desc, prepared.totals, shape.cache, shape.formats,
                      shape.chunk, log, arena, &parts->plan));
  const bool builds = !arena->measuring();
  parts->source.init(path, builds ? headerHash(prepared.source.gguf(), desc) : 0, arena);
  if (options.draft_model != nullptr) {
    const uint64_t hash = builds ? draftHash(prepared.draft_source.gguf()) : 0;
    parts->draft_source.init(options.draft_model, hash, arena);
  }
  prepared.adapters.keep(arena, &parts->adapters);
  if (prepared.desc.pictures != nullptr) {
    parts->picture_input = arena->take<PictureInput>(1);
    if (parts->picture_input != nullptr) {
      *parts->picture_input = *prepared.desc.pictures;
    }
  }
  if (prepared.prefix_tokens != 0) {
    parts->prefix = Prefix::create(
        prepared.prefix_tokens, prepared.transcript_bytes,
        parts->picture_input != nullptr ? parts->picture_input : prepared.desc.pictures,
        desc.n_embd, arena);
  }
  ORIEL_TRY(takePictures(options, &prepared.pictures, log, arena, &parts->pictures));
  parts->wish.init(options, arena);
  parts->recall = prepared.recall;
  parts->recall.folder = takeRecallFolder(options, prepared.recall, arena);
  parts->on_file = takeWeightsOnFile(parts->plan, path, log, arena);
  parts->executor_memory = takeExecutorMemory(parts->plan, arena);
  return kOk;
}

namespace {

// Sets `draft_bytes` to the part for drafting and `constraint_bytes` to the part for grammars.
uint64_t measureSession(const PreparedModel& prepared, const Plan& plan, uint32_t drafts,
                        uint64_t* draft_bytes, uint64_t* constraint_bytes) {
  Arena arena;
  (void)arena.take<oriel_session>(1);
  const WeightSource source;
  SessionContext context;
  context.model = &prepared.desc;
  context.file_rows = &plan.file_rows;
  context.source = &source;
  context.transcript_bytes = prepared.transcript_bytes;
  context.recall = prepared.recall;
  (void)Session::create(context, 0, true, &arena);
  uint64_t before = arena.used();
  if (drafts != 0) {
    Drafter().init(drafts, &arena);
  }
  *draft_bytes = arena.used() - before;
  before = arena.used();
  if (prepared.constraints) {
    (void)ConstrainedReply::create(prepared.desc.n_vocab, nullptr, nullptr, &arena);
  }
  *constraint_bytes = arena.used() - before;
  return arena.used();
}

}  // namespace

namespace {

// With or without the prediction block, as desc.predicts says.
Status planOnce(const OnFile& on_file, const char* path, const LoadOptions& options, const Log& log,
                PreparedModel* prepared, BudgetRequest* request) {
  ORIEL_TRY(measureWeights(prepared->tensors, prepared->desc, on_file, log, &prepared->totals));
  prepared->totals.mapped = prepared->maps_weights && on_file.expert_slots == 0;
  prepared->work = workOf(prepared->tensors, prepared->desc, prepared->totals);

  // Except for token ids, host bytes are independent of the window and the batch size: the smallest shape measures them.
  CacheShape smallest = {prepared->desc.n_kv_heads, prepared->desc.head_dim, 0, 1, 1};
  SessionWindows sessions;
  if (request->sessions != nullptr) {
    sessions = *request->sessions;
    std::fill_n(sessions.windows, kMaxSessions, 0u);
    smallest.sessions = &sessions;
  }
  const CacheFormats formats;
  ModelParts parts;
  const auto bytesOf = [&](uint32_t drafts, uint64_t* bytes) -> Status {
    smallest.drafts = drafts;
    Arena arena;
    ORIEL_TRY(layOutModel(*prepared, prepared->desc, {smallest, formats, 1}, path, options, log,
                          &arena, &parts));
    *bytes = arena.used();
    return kOk;
  };
  request->drafts = draftsOf(*prepared, on_file);
  uint64_t without_drafts = 0;
  uint64_t model_bytes = 0;
  ORIEL_TRY(bytesOf(0, &without_drafts));
  ORIEL_TRY(bytesOf(request->drafts, &model_bytes));
  prepared->model_host_bytes = prepared->text_host_bytes + model_bytes;
  const uint64_t model_drafts = model_bytes - without_drafts;
  uint64_t session_drafts = 0;
  uint64_t session_constraints = 0;
  prepared->session_host_bytes =
      measureSession(*prepared, parts.plan, request->drafts, &session_drafts, &session_constraints);
  prepared->draft_host_bytes = request->draft_host_bytes = model_drafts + session_drafts;
  prepared->constraint_bytes = prepared->trie_bytes + session_constraints;

  request->host_bytes = prepared->model_host_bytes +
                        prepared->sessions.count * prepared->session_host_bytes +
                        prepared->pictures.device_bytes;
  ORIEL_TRY(chooseBudget(prepared->desc, prepared->totals, *request, log, &prepared->budget));
  if (request->drafts != 0 && prepared->budget.cache.drafts == 0) {  // no memory for their states
    prepared->model_host_bytes -= model_drafts;
    prepared->session_host_bytes -= session_drafts;
  }
  return kOk;
}

// True if a plan with the prediction block gives nothing up for it.
bool keepsAll(const ModelDesc& desc, const Budget& with, const Budget& without) {
  const Memory memory = predictionMemory(desc, with.cache);
  return with.fits && with.loss <= without.loss && with.cache.window >= without.cache.window &&
         with.chunk >= without.chunk && with.cache.checkpoints >= without.cache.checkpoints &&
         with.cache.drafts >= std::min(without.cache.drafts, kModelDrafts) &&
         memory.sideBytes(0) <= kMaxBindingBytes;
}

}  // namespace

Status planWith(const OnFile& on_file, const char* path, const LoadOptions& options, const Log& log,
                PreparedModel* prepared, BudgetRequest* request) {
  prepared->desc.predicts = false;
  ORIEL_TRY(planOnce(on_file, path, options, log, prepared, request));
  const Budget without = prepared->budget;
  if (!prepared->desc.has_prediction || !without.fits || without.cache.drafts == 0) {
    return kOk;
  }
  prepared->desc.predicts = true;
  if (planOnce(on_file, path, options, Log(), prepared, request).ok() &&
      keepsAll(prepared->desc, prepared->budget, without)) {
    return kOk;
  }
  prepared->desc.predicts = false;
  return planOnce(on_file, path, options, log, prepared, request);
}

}  // namespace oriel_internal
