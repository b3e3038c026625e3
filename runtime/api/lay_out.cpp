// Host memory of a model and its sessions, and the best plan for it.
#include "api/api.h"
#include "api/on_file.h"
#include "api/on_file_choice.h"
#include "api/recall.h"

namespace oriel_internal {

Status layOutModel(PreparedModel& prepared, const ModelDesc& desc, const PlanShape& shape,
                   const char* path, const LoadOptions& options, const Log& log, Arena* arena,
                   ModelParts* parts) {
  ORIEL_TRY(buildPlan(prepared.tensors, desc, prepared.totals, shape.cache, shape.formats,
                      shape.chunk, log, arena, &parts->plan));
  const bool builds = !arena->measuring();
  if (prepared.prefix_tokens != 0) {
    parts->prefix = Prefix::create(prepared.prefix_tokens, prepared.transcript_bytes, arena);
  }
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

Status planWith(const OnFile& on_file, const char* path, const LoadOptions& options, const Log& log,
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
  uint64_t session_drafts = 0;
  uint64_t session_constraints = 0;
  prepared->session_host_bytes =
      measureSession(*prepared, parts.plan, request->drafts, &session_drafts, &session_constraints);
  prepared->draft_host_bytes = model_bytes - without_drafts + session_drafts;
  prepared->constraint_bytes = prepared->trie_bytes + session_constraints;

  request->host_bytes = prepared->model_host_bytes +
                        prepared->sessions.count * prepared->session_host_bytes +
                        prepared->pictures.device_bytes;
  return chooseBudget(prepared->desc, prepared->totals, *request, log, &prepared->budget);
}

}  // namespace oriel_internal
