#include <cstdio>
#include <new>

#include "api/api.h"
#include "api/session.h"
#include "base/hash.h"
#include "exec/host_executor.h"
#include "exec/load_weights.h"
#include "exec/picture_store.h"
#include "exec/snapshot.h"
#include "text/pretokenizer.h"
#include "text/special_tokens.h"

namespace oriel_internal {

namespace {

// "Q8_0 x 43, F32 x 13", in the order in which the types first appear.
void describeTensorTypes(const GgufFile& file, char* out, size_t capacity, uint64_t* parameters) {
  constexpr size_t kMaxTypes = 64;
  uint32_t types[kMaxTypes];
  uint64_t counts[kMaxTypes];
  size_t n = 0;
  uint64_t cursor = 0;
  GgufTensor tensor;
  *parameters = 0;
  while (file.nextTensor(&cursor, &tensor)) {
    uint64_t values = 1;
    for (uint32_t d = 0; d < tensor.n_dims; ++d) {
      values *= tensor.dims[d];
    }
    *parameters += values;
    size_t i = 0;
    while (i < n && types[i] != tensor.type) {
      ++i;
    }
    if (i == kMaxTypes) {
      continue;
    }
    if (i == n) {
      types[n] = tensor.type;
      counts[n++] = 0;
    }
    ++counts[i];
  }
  size_t used = 0;
  for (size_t i = 0; i < n && used < capacity; ++i) {
    const int written =
        std::snprintf(out + used, capacity - used, "%s%s x %llu", i == 0 ? "" : ", ",
                      tensorTypeName(types[i]), static_cast<unsigned long long>(counts[i]));
    used += static_cast<size_t>(std::max(written, 0));
  }
}

void describeFile(const PreparedModel& prepared, oriel_model* model) {
  ModelInfo& info = model->info;
  const GgufFile& file = prepared.source.gguf();
  const ModelDesc& desc = prepared.desc;
  const Tokenizer& tokenizer = *model->tokenizer;
  GgufString text;
  if (file.getString("general.architecture", &text)) {
    copyText(text.data, text.bytes, info.architecture);
  }
  if (file.getString("general.name", &text)) {
    copyText(text.data, text.bytes, info.name);
  }
  describeTokenizer(tokenizer, info.tokenizer);
  const char* format = model->chat.name();
  copyText(format, std::strlen(format), info.chat_template);
  describeTensorTypes(file, info.tensor_types, sizeof(info.tensor_types), &info.parameters);
  info.n_layers = desc.n_layers;
  info.n_heads = desc.n_heads;
  info.n_kv_heads = desc.n_kv_heads;
  info.head_dim = desc.head_dim;
  info.n_embd = desc.n_embd;
  info.n_ff = desc.n_ff;
  info.n_vocab = tokenizer.vocabSize();
  info.context_train = desc.context_train;
  info.file_bytes = prepared.source.bytes();
  info.bos_id = tokenizer.bosId();
  info.eos_id = tokenizer.eosId();
  describeFill(file, tokenizer, info.fill_ids);
  info.add_bos = tokenizer.addBos() ? 1 : 0;
  describeContext(desc, &info);
}

}  // namespace

void describeDevice(oriel_model* model) {
  ModelInfo& info = model->info;
  const char* device = model->executor != nullptr ? model->executor->deviceName() : "none";
  const char* driver = model->executor != nullptr ? model->executor->driverName() : "";
  copyText(device, std::strlen(device), info.device);
  copyText(driver, std::strlen(driver), info.driver);
  if (model->executor != nullptr) {
    const PipelineStats pipelines = model->executor->pipelineStats();
    info.pipelines = pipelines.total;
    const bool says = pipelines.known || pipelines.total == 0;
    info.pipelines_from_cache = says ? pipelines.from_cache : UINT32_MAX;
    info.pipelines_ms = pipelines.ms;
    model->executor->describeTrust(info.device_trust, sizeof(info.device_trust));
  }
}

namespace {

Status refuse(const PreparedModel& prepared, const Log& log) {
  const auto needed = static_cast<unsigned long long>(prepared.budget.minimum_bytes);
  return log.fail(ORIEL_ERROR_MEMORY_BUDGET,
                  "the model needs %llu bytes (%.1f MiB) and may use %llu: give it more", needed,
                  static_cast<double>(needed) / (1 << 20),
                  static_cast<unsigned long long>(prepared.memory_bytes));
}

void logPlan(const PlanResult& plan, const char* device, const Log& log) {
  log.write(ORIEL_LOG_INFO,
            "loaded on %s: %llu of %llu bytes for a window of %u tokens and %u sinks, %u tokens at "
            "a time",
            device, static_cast<unsigned long long>(plan.total_bytes),
            static_cast<unsigned long long>(plan.memory_bytes), plan.window_tokens,
            plan.sink_tokens, plan.chunk_tokens);
}

}  // namespace

Status buildChat(const GgufFile& file, const StopCheck& stop, const Log& log, Arena* arena,
                 oriel_model* model, TemplateOnce* learned) {
  model->chat = recogniseChat(file);
  keepTemplate(arena, &model->chat);
  ChatTemplate& chat = model->chat;
  if (!chat.exists()) {
    return kOk;
  }
  Scratch scratch(model->allocator,
                  templateScratchBytes(kJsonBytesAByteOfTemplate * chat.jinja_bytes));
  LenientLog lenient(log);
  const Status parsed = checkJinja(chat.jinja, std::min(chat.jinja_bytes, kMaxChatTemplateBytes),
                                   stop, lenient.log(), &scratch);
  if (parsed.code() == ORIEL_ERROR_CANCELLED) {
    return parsed;
  }
  if (!parsed.ok() && scratch.noMemory()) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "no memory to read the model's chat template: close other programs");
  }
  if (!parsed.ok() && replaceByOurs(&chat)) {
    log.write(ORIEL_LOG_WARNING, "the format %s is used in the place of the chat template",
              chat.name());
  }
  TemplateSettings settings;
  settings.text = {chat.jinja, chat.jinja_bytes};
  settings.bos = {chat.bos, std::strlen(chat.bos)};
  settings.eos = {chat.eos, std::strlen(chat.eos)};
  if (!learned->known) {
    ORIEL_TRY(learnTemplate(settings, stop, log, model->allocator, &learned->facts));
    learned->known = true;
  }
  model->learned = learned->facts;
  model->reply_forms = replyFormsOf(model->chat);
  return kOk;
}

namespace {

constexpr uint64_t kDefaultPreparedBytes = 8ull << 30;

uint64_t mostPrepared(const LoadOptions& options) {
  return options.prepared_bytes != 0 ? options.prepared_bytes : kDefaultPreparedBytes;
}

// Takes the tokenizer and the trie from their prepared file. Without one makes them, and the file if files are prepared.
Status takeTexts(const LoadOptions& options, const PreparedModel& prepared, const StopCheck& stop,
                 const Log& log, Arena* arena, oriel_model* model) {
  const TokenizerBlock saved = prepared.text.tokenizer();
  const uint64_t first = arena->used();
  ORIEL_TRY(Tokenizer::build(prepared.source.gguf(), log, arena, &model->tokenizer, stop, saved));
  const uint64_t second = arena->used();
  if (prepared.constraints && saved.data == nullptr) {
    ORIEL_TRY(
        TokenTrie::build(*model->tokenizer, model->allocator, log, arena, &model->trie, stop));
  } else if (prepared.constraints) {
    model->trie = TokenTrie::copyOf(prepared.text.trie(), model->tokenizer->vocabSize(), arena);
    if (model->trie == nullptr) {
      return notOfThisModel(log);
    }
  }
  if (!prepared.maps_weights || saved.data != nullptr) {
    return kOk;
  }
  return writePreparedText(options.prepared_dir, textId(prepared), mostPrepared(options),
                           {*model->tokenizer, second - first, model->trie, arena->used() - second},
                           log);
}

// Maps prepared weights. Writes their file first if it is missing or damaged.
Status mapWeights(const LoadOptions& options, const PreparedModel& prepared,
                  const WeightFiles& files, const LoadProgress& progress, const Log& log,
                  uint64_t* hash, oriel_model* model) {
  PreparedId id;
  id.model = hashBytes(hash, sizeof(*hash), prepared.source.input().stateHash());
  if (options.draft_model != nullptr) {
    const uint64_t draft[] = {draftHash(prepared.draft_source.gguf()),
                              prepared.draft_source.input().stateHash()};
    id.model = hashBytes(draft, sizeof(draft), id.model);
  }
  id.model = prepared.adapters.stateHash(id.model);
  ORIEL_TRY(hashLayout(model->plan, model->allocator, log, &id.layout));
  char* const path = model->wish.preparedPath();
  preparedPath(options.prepared_dir, id, path);
  if (!model->prepared.open(path, id, model->plan)) {
    ORIEL_TRY(writePrepared(options.prepared_dir, path, id, mostPrepared(options), files,
                            model->plan, progress, {model->allocator, model->session_host_bytes},
                            log, hash, model->adapters.adapters));
    if (!model->prepared.open(path, id, model->plan)) {
      return log.fail(ORIEL_ERROR_IO,
                      "%.600s cannot be mapped: give another folder, or leave \"prepared_dir\" out",
                      path);
    }
    return kOk;
  }
  *hash = model->prepared.modelHash();
  model->prepared.takeAdapterHashes(model->adapters.adapters);
  return kOk;
}

// Runs once the model's block exists. oriel_model_free undoes a partial load.
Status loadInto(const LoadOptions& options, const char* path, PreparedModel* prepared,
                LoadProgress* progress, Arena* arena, oriel_model* model) {
  const StopCheck stop = progress->stop();
  const Log log = logOf(options);
  model->device_log.init({options.log, options.log_user, &model->device_error});
  const Log shared = model->device_log.log();
  const GgufFile& file = prepared->source.gguf();
  const bool has_device = options.device != DeviceKind::kNone;
  uint64_t hash = 0;
  ORIEL_TRY(takeTexts(options, *prepared, stop, log, arena, model));
  ORIEL_TRY(buildChat(file, stop, log, arena, model, &prepared->learned));
  describeFile(*prepared, model);
  if (has_device) {
    model->desc = prepared->desc;
    model->session_host_bytes = prepared->session_host_bytes;
    model->transcript_bytes = prepared->transcript_bytes;
    model->plan_result = planResult(*prepared);
    const Budget& budget = prepared->budget;
    ORIEL_TRY(layOutModel(*prepared, model->desc, {budget.cache, budget.formats, budget.chunk},
                          path, options, shared, arena, model));
    if (arena->exhausted()) {
      return log.fail(ORIEL_ERROR_INTERNAL, "the host arena is too small: please report this");
    }
    model->desc.adapters = model->adapters.adapters;
    model->desc.pictures = model->picture_input;
    if (model->picture_input != nullptr) {
      ORIEL_TRY(PictureTokens(*model->tokenizer, model->picture_input->words).check(log));
    }
    model->share.init(model->plan.sessionCount(), model->plan.batch_rows, &Replier::runTogether);
    hash = model->source.headerHash();
    progress->total = std::max<uint64_t>(uploadBytes(model->plan), 1);
    uint32_t disabled = 0;
    ORIEL_TRY(readFeatureNames(options.disabled_features, log, &disabled));
    model->stops_early = (disabled >> kEarlyStopFeature & 1u) == 0;
  }
  ORIEL_TRY(stop.check());
  if (options.prefix_file != nullptr) {
    ORIEL_TRY(prefixFingerprint(file, prepared->tensors.find(TensorRole::kOutputNorm), log,
                                &model->fingerprint));
  }
  prepared->tensors.release();
  prepared->draft_source.dropHeader();
  if (prepared->pictures.any()) {
    prepared->pictures.source->dropHeader();
  }
  prepared->source.dropHeader();  // before the arenas are allocated, so the peak equals the plan
  if (has_device) {
    WeightFiles files(file,
                      options.draft_model != nullptr ? &prepared->draft_source.gguf() : nullptr);
    prepared->adapters.addTo(&files);
    const bool maps = prepared->totals.mapped;
    if (maps) {
      ORIEL_TRY(mapWeights(options, *prepared, files, *progress, log, &hash, model));
    }
    ExpertFetch* const experts = model->on_file != nullptr ? &model->on_file->experts : nullptr;
    ORIEL_TRY(createExecutor(
        maps ? model->wish.on(DeviceKind::kCpu, 0) : model->wish.asked(), ExecutorUse::kModel,
        model->plan, model->executor_memory, model->allocator,
        {experts, maps ? &model->prepared : nullptr, nullptr, model->plan_result.activation_bits},
        shared, &stop, &model->executor));
    if (!maps) {
      // Uses the future session's memory, which is still free.
      ORIEL_TRY(loadWeights(files, model->plan, *progress,
                            {model->allocator, model->session_host_bytes}, log, model->executor,
                            &hash, true, model->adapters.adapters));
    }
    progress->done = progress->total;
    ORIEL_TRY(model->executor->finishLoad());
    model->executor->stopBy(nullptr);
    model->hash = hash;
    if (model->pictures != nullptr) {
      ORIEL_TRY(prepared->pictures.source->expectUnchanged(log));
      model->pictures->handOver(&prepared->pictures);
    }
    ORIEL_TRY(loadPictures(model->wish.asked(), ExecutorUse::kModel, model->allocator,
                           model->executor, shared, &stop, model->pictures));
  }
  describeDevice(model);
  ORIEL_TRY(prepared->source.expectUnchanged(log));
  if (has_device && options.draft_model != nullptr) {
    ORIEL_TRY(prepared->draft_source.expectUnchanged(log));
    if (model->draft_source.keepsFile()) {
      model->draft_source.handOver(&prepared->draft_source);
    }
  }
  ORIEL_TRY(prepared->adapters.expectUnchanged(log));
  if (has_device) {
    prepared->adapters.handOver(model->adapters);
  }
  if (model->on_file != nullptr) {
    model->on_file->handOver(&prepared->source);
  } else if (has_device && model->source.keepsFile()) {
    model->source.handOver(&prepared->source);
  }
  if (has_device) {
    logPlan(model->plan_result, model->executor->deviceName(), log);
    warnBeyondTraining(*prepared, log);
  }
  return kOk;
}

// Copies the model's own log lines to a failed load.
void handOverLine(const oriel_model& model, const LoadOptions& options) {
  if (!wantsLine(options) || options.error_line[0] != '\0') {
    return;
  }
  const bool of_device = model.last_error.text()[0] == '\0';
  copyLine(of_device ? model.device_error.text() : model.last_error.text(), options.error_line,
           options.error_line_bytes);
}

// Not inlined: planning takes 80 KiB of stack, which must not lie under the prefix's kernels. On failure the caller
// frees *out if it is set.
[[gnu::noinline]] Status loadModel(const LoadOptions& options, const char* path,
                                   LoadProgress* progress, oriel_model** out) {
  const Log log = logOf(options);
  PreparedModel prepared;
  ORIEL_TRY(prepareModel(path, options, &prepared, progress->stop()));
  if (options.device != DeviceKind::kNone && !prepared.budget.fits) {
    return refuse(prepared, log);
  }
  ORIEL_TRY(checkRecallFolder(options, prepared.recall, log));
  const oriel_allocator& allocator = allocatorOf(options);
  void* block = allocateZeroed(allocator, prepared.model_host_bytes);
  if (block == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes: close other programs",
                    static_cast<unsigned long long>(prepared.model_host_bytes));
  }
  Arena arena(block, prepared.model_host_bytes);
  static_assert(alignof(oriel_model) <= Arena::kAlignment, "raise kAlignment");
  oriel_model* model = new (arena.take<uint8_t>(sizeof(oriel_model))) oriel_model();
  model->log = {options.log, options.log_user, &model->last_error};
  model->allocator = allocator;
  model->host_bytes = prepared.model_host_bytes;
  *out = model;
  return loadInto(options, path, &prepared, progress, &arena, model);
}

}  // namespace

PreparedId textId(const PreparedModel& prepared) {
  const uint64_t state[] = {prepared.file_hash, prepared.source.input().stateHash()};
  return {hashBytes(state, sizeof(state)), Tokenizer::tablesHash()};
}

uint64_t draftHash(const GgufFile& file) { return hashBytes(file.data(), file.headerBytes()); }

// Everything before the tensors, and the rest of the metadata that is read.
uint64_t headerHash(const GgufFile& file, const ModelDesc& desc) {
  // When this hash was defined, tables had 128 divisors. Hashing at least that many keeps old hashes valid.
  constexpr uint32_t kLeast = 128;
  uint64_t hash = hashBytes(file.data(), file.headerBytes());
  for (const RopeTable* table :
       {&desc.ropes[kMainRope], &desc.rope_long, &desc.ropes[kSlidingRope]}) {
    hash = hashBytes(&table->magnitude, sizeof(table->magnitude), hash);
    hash = hashBytes(table->divisors, sizeof(double) * std::max(kLeast, table->dims / 2), hash);
  }
  return hash;
}

oriel_status withoutWeights(const oriel_model& model) {
  const Reading reading(model);
  return model.log
      .fail(ORIEL_ERROR_STATE, "the model was loaded without weights: load it with a device")
      .code();
}

void describeFill(const GgufFile& file, const Tokenizer& tokenizer, int32_t (&ids)[3]) {
  const FillTokens fill = fillTokens(file, tokenizer);
  ids[0] = fill.prefix;
  ids[1] = fill.suffix;
  ids[2] = fill.middle;
}

void describeTokenizer(const Tokenizer& tokenizer, char (&out)[64]) {
  const TokenizerKind kind = tokenizer.kind();
  const char* const name = kind == TokenizerKind::kSpm         ? "spm"
                           : kind == TokenizerKind::kWordPiece ? "wordpiece"
                           : kind == TokenizerKind::kUnigram   ? "unigram"
                                                               : nullptr;
  if (name != nullptr) {
    copyText(name, std::strlen(name), out);
  } else {
    std::snprintf(out, sizeof(out), "bpe (%s)", preTokenizerName(tokenizer.preTokenizer()));
  }
}

}  // namespace oriel_internal

using namespace oriel_internal;

oriel_status oriel_model_load(const char* path, const oriel_options* given, oriel_model** out) {
  if (out != nullptr) {
    *out = nullptr;
  }
  CallOptions options;
  if (const Status read = takeModelOptions(given, &options); !read.ok()) {
    return read.code();
  }
  if (path == nullptr || out == nullptr) {
    return ORIEL_ERROR_ARGUMENT;
  }
  LoadProgress progress = {options.progress, options.progress_user};
  oriel_model* model = nullptr;
  Status status = loadModel(options, path, &progress, &model);
  if (status.ok()) {
    status = makePrefixOf(options, &progress, model);
  }
  if (!status.ok()) {
    if (model != nullptr) {
      handOverLine(*model, options);
    }
    oriel_model_free(model);
    return status.code();
  }
  *out = model;
  return ORIEL_OK;
}

void oriel_model_free(oriel_model* model) {
  if (model == nullptr) {
    return;
  }
  if (const Guard::Answer answer = model->guard.mayEnd(); answer != Guard::Answer::kEntered) {
    (void)refuse(*model, model->log, answer);
    return;
  }
  dropPictures(model->pictures);
  if (model->executor != &model->no_device) {
    destroyExecutor(model->executor);
  }
  dropWeightsOnFile(model->on_file);
  const oriel_allocator allocator = model->allocator;
  const uint64_t bytes = model->host_bytes;
  model->~oriel_model();
  release(allocator, model, bytes);
}
