#include "speed/probe.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "base/arena.h"
#include "base/checked.h"
#include "exec/load_weights.h"
#include "gguf/gguf.h"
#include "os/os.h"
#include "plan/weight_placement.h"
#include "speed/measure_speed.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kLargestBlock = 256;  // values
constexpr uint32_t kFewRows = 32;

uint64_t layerBytes(ProbeShape shape) {
  shape.n_layers = 1;
  shape.n_vocab = kFewRows;
  return probeFileBytes(shape);
}

uint32_t wholeBlocks(uint32_t values) {
  return static_cast<uint32_t>(alignUp(values, kLargestBlock));
}

/// Halves the widths, feed-forward first: for large matrices the speed hardly depends on the size. False at the minimum.
bool halve(ProbeShape* shape) {
  if (shape->n_ff > shape->n_embd) {
    shape->n_ff = wholeBlocks(shape->n_ff / 2);
  } else if (shape->n_heads % 2 == 0 && shape->n_kv_heads % 2 == 0 && shape->n_embd >= 2048) {
    shape->n_embd = wholeBlocks(shape->n_embd / 2);
    shape->n_heads /= 2;
    shape->n_kv_heads /= 2;
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool shapeOfType(const ProbeShape& model, uint32_t tensor_type, uint64_t layer_bytes,
                 uint64_t head_bytes, ProbeShape* shape) {
  *shape = model;
  shape->tensor_type = tensor_type;
  if (layerBytes(*shape) == 0) {
    shape->n_embd = wholeBlocks(shape->n_embd);
    shape->n_ff = wholeBlocks(shape->n_ff);
    while (shape->n_heads * shape->head_dim % kLargestBlock != 0) {
      shape->n_heads += shape->n_kv_heads;
    }
    if (layerBytes(*shape) == 0) {
      return false;
    }
  }
  while (layerBytes(*shape) > layer_bytes && halve(shape)) {
  }
  if (layerBytes(*shape) == 0) {
    return false;
  }
  // The embedding is stored like the output matrix: both have n_vocab rows.
  ProbeShape rows = *shape;
  rows.n_layers = 1;
  rows.n_vocab = 2 * kFewRows;
  const uint64_t row_bytes = (probeFileBytes(rows) - layerBytes(*shape)) / kFewRows;
  const uint64_t most_rows =
      std::max<uint64_t>(head_bytes / std::max<uint64_t>(row_bytes, 1), kFewRows);
  shape->n_vocab = static_cast<uint32_t>(std::min<uint64_t>(shape->n_vocab, most_rows));
  return true;
}

uint32_t layersWithin(const ProbeShape& shape, uint64_t bytes) {
  const uint64_t layers = bytes / std::max<uint64_t>(layerBytes(shape), 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(layers, 1, std::max(shape.n_layers, 1u)));
}

namespace {

// Runs of one timing, after a warm-up run (skipped if runs are long). The median counts, and of two the faster: it
// includes waiting for threads, which the minimum would leave out. Short runs are repeated more often; slow steps as
// rarely as the caller allows.
constexpr uint32_t kEnoughRuns = 6;
constexpr uint32_t kMostRuns = 30;
constexpr double kRunsMs = 10.0;
constexpr double kSlowRunsMs = 30.0;

template <typename Prepare, typename Run>
Status usualSeconds(const Prepare& prepare, const Run& run, double* seconds, uint32_t fewest = 2) {
  double runs_ms[kMostRuns];
  uint32_t n = 0;
  double spent_ms = 0;
  for (uint32_t i = 0; i <= kMostRuns; ++i) {
    ORIEL_TRY(prepare());
    const double begin = nowMs();
    ORIEL_TRY(run());
    const double ms = nowMs() - begin;
    if (i == 0 && ms < kSlowRunsMs) {
      continue;
    }
    runs_ms[n++] = ms;
    spent_ms += ms;
    if ((i >= kEnoughRuns && spent_ms > kRunsMs) || (n >= fewest && spent_ms > kSlowRunsMs)) {
      break;
    }
  }
  const uint32_t middle = (n - 1) / 2;
  std::nth_element(runs_ms, runs_ms + middle, runs_ms + n);
  *seconds = runs_ms[middle] / 1000;
  return kOk;
}

Status nothing() { return kOk; }

bool isOfCache(const Op& op) {
  return op.kind == OpKind::kRopeAppend || op.kind == OpKind::kAttention ||
         op.kind == OpKind::kAttentionMerge;
}

void keepOpsOfCache(Plan* plan) {
  for (uint32_t list = 0; list < kStepLists; ++list) {
    Op* const ops = plan->ops[list];
    Op* const end =
        std::remove_if(ops, ops + plan->n_ops[list], [](const Op& op) { return !isOfCache(op); });
    plan->n_ops[list] = static_cast<uint32_t>(end - ops);
  }
}

}  // namespace

void Probe::close() {
  destroyExecutor(executor_);
  executor_ = nullptr;
  session_ = nullptr;
  while (n_blocks_ != 0) {
    --n_blocks_;
    release(allocator_, blocks_[n_blocks_], block_bytes_[n_blocks_]);
  }
}

Status Probe::take(uint64_t bytes, void** block) {
  *block = allocateZeroed(allocator_, bytes);
  if (*block == nullptr) {
    return log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                     "the system refused %llu bytes to measure with: close other programs",
                     static_cast<unsigned long long>(bytes));
  }
  blocks_[n_blocks_] = *block;
  block_bytes_[n_blocks_++] = bytes;
  return kOk;
}

Status Probe::open(const ProbeShape& shape, const CacheFormats& formats, uint32_t window,
                   uint32_t chunk, const ExecutorMaker& maker, ProbeOps ops) {
  const uint64_t file_bytes = probeFileBytes(shape);
  if (file_bytes == 0) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  close();
  void* bytes = nullptr;
  ORIEL_TRY(take(file_bytes, &bytes));
  writeProbeFile(shape, static_cast<uint8_t*>(bytes));
  ORIEL_TRY(file_.open(static_cast<const uint8_t*>(bytes), file_bytes, log_));
  // A missing kernel is a result, not an error.
  if (!readModelDesc(file_, allocator_, Log(), &desc_, &tensors_).ok()) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  PlanTotals totals;
  ORIEL_TRY(measureWeights(tensors_, desc_, OnFile(), log_, &totals));

  const CacheShape cache = {desc_.n_kv_heads, desc_.head_dim, kDefaultSinks, window,
                            window + chunk - 1};
  ExecutorMemory memory;
  const auto build = [&](Arena* arena) -> Status {
    ORIEL_TRY(buildPlan(tensors_, desc_, totals, cache, formats, chunk, log_, arena, &plan_));
    if (ops == ProbeOps::kCache && !arena->measuring()) {
      keepOpsOfCache(&plan_);
    }
    memory = takeExecutorMemory(plan_, arena);
    SessionContext context;
    context.model = &desc_;
    context.plan = &plan_;
    context.log = log_;
    if (!arena->measuring()) {
      ORIEL_TRY(maker.make(maker.context, plan_, memory, &executor_));
    }
    context.executor = executor_;
    session_ = Session::create(context, 0, false, arena);
    return kOk;
  };
  Arena measuring;
  ORIEL_TRY(build(&measuring));
  void* block = nullptr;
  ORIEL_TRY(take(measuring.used(), &block));
  Arena arena(block, measuring.used());
  ORIEL_TRY(build(&arena));
  if (session_ == nullptr) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "the probe's arena is too small: please report this");
  }
  ORIEL_TRY(loadWeights(file_, plan_, LoadProgress(), {allocator_}, log_, executor_, nullptr));
  ORIEL_TRY(executor_->finishLoad());
  return session_->reset(Session::Begin::kAgain);
}

Status Probe::read(const int32_t* ids, uint32_t count) {
  TokenSource source;
  source.ids = ids;
  source.count = count;
  return session_->append(source);
}

Status Probe::time(uint32_t tokens, uint32_t depth, double* seconds, uint32_t fewest) {
  int32_t ids[kMaxProbeChunk] = {};
  uint32_t turn = 0;
  return usualSeconds(
      [&] {
        // Changes the tokens: a processor is a tenth faster on numbers it has just seen.
        for (int32_t& id : ids) {
          turn += 7;
          id = static_cast<int32_t>(turn % desc_.n_vocab);
        }
        return kOk;
      },
      [&] {
        session_->pretendPosition(depth > tokens ? depth - tokens : 0);
        return read(ids, std::min(tokens, kMaxProbeChunk));
      },
      seconds, fewest);
}

Status Probe::timeHead(double* seconds) {
  return usualSeconds(
      nothing, [&] { return executor_->run(StepRun::kHead); }, seconds);
}

Status Probe::timeHeadAfterLayers(double* seconds) {
  static const int32_t kIds[2] = {};
  session_->pretendPosition(0);
  ORIEL_TRY(read(kIds, 2));
  return usualSeconds([&] { return executor_->run(StepRun::kChunk); },
                      [&] { return executor_->run(StepRun::kHead); }, seconds);
}

namespace {

// One layer with matrices of a 0.5 to 1 billion weight model; larger ones if these are fast, smaller ones if slow.
constexpr ProbeShape kSmall = {1, 512, 8, 4, 64, 1536, 32, 0};
constexpr ProbeShape kUsual = {1, 1024, 16, 8, 64, 2816, 32, 0};
constexpr ProbeShape kLarge = {1, 2048, 32, 8, 64, 5632, 32, 0};
constexpr double kLongEnoughToCompareSeconds = 1e-3;
constexpr double kTooLongSeconds = 0.1;
constexpr uint64_t kMostFileBytes = 64ull << 20;
constexpr uint32_t kWindow = 64;
constexpr uint32_t kDepth = 32;
// Runs twice if it is fast, to save time on software devices.
constexpr double kQuickSeconds = 5e-3;
// Another candidate must be faster by more than the noise.
constexpr double kWorthwhile = 0.97;

Status timeCandidates(Probe* probe, MatmulUse use, WeightType type, uint32_t rounds,
                      MatmulTimes* times) {
  MatmulTuning* const tuning = probe->executor()->matmulTuning();
  // Alternates between the candidates, so that a busy moment of the machine does not affect a single candidate.
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t i = 0; i < times->count; ++i) {
      ORIEL_TRY(tuning->take(use, type, i));
      double seconds = 0;
      ORIEL_TRY(probe->time(tunedTokens(use), kDepth, &seconds));
      const double microseconds = seconds * 1e6;
      times->microseconds[i] =
          round == 0 ? microseconds : std::min(times->microseconds[i], microseconds);
    }
  }
  const double* const all = times->microseconds;
  const uint32_t best = static_cast<uint32_t>(std::min_element(all, all + times->count) - all);
  times->chosen = all[best] < kWorthwhile * all[times->standard] ? best : times->standard;
  ORIEL_TRY(tuning->take(use, type, times->chosen));
  times->kept = tuning->keep(use, type, times->chosen);
  return kOk;
}

}  // namespace

Status tuneMatmul(const ExecutorMaker& maker, MatmulUse use, uint32_t tensor_type, bool again,
                  const oriel_allocator& allocator, const Log& log, MatmulTimes* times) {
  *times = MatmulTimes();
  WeightType type;
  if (!weightTypeOf(tensor_type, &type)) {
    return ORIEL_ERROR_UNSUPPORTED;
  }
  ProbeShape larger = kLarge;
  larger.tensor_type = tensor_type;
  const bool has_larger = probeFileBytes(larger) <= kMostFileBytes;
  ProbeShape shape = kUsual;
  for (bool first = true;; first = false) {
    shape.tensor_type = tensor_type;
    Probe probe(allocator, log);
    ORIEL_TRY(probe.open(shape, CacheFormats(), kWindow, tunedTokens(use), maker));
    const MatmulTuning* const tuning = probe.executor()->matmulTuning();
    if (tuning == nullptr || tuning->candidateName(use, type, 1) == nullptr ||
        (!again && tuning->isMeasured(use, type))) {
      return kOk;
    }
    double seconds = 0;
    ORIEL_TRY(probe.time(tunedTokens(use), kDepth, &seconds, 1));
    if (first && seconds < kLongEnoughToCompareSeconds && has_larger) {
      shape = kLarge;
      continue;
    }
    if (first && seconds > kTooLongSeconds) {
      shape = kSmall;
      continue;
    }
    times->standard = tuning->standard(use, type);
    for (const char* name = tuning->candidateName(use, type, 0);
         name != nullptr && times->count < kMostMatmulCandidates;
         name = tuning->candidateName(use, type, times->count)) {
      std::snprintf(times->names[times->count++], sizeof(times->names[0]), "%s", name);
    }
    return timeCandidates(&probe, use, type, seconds < kQuickSeconds ? 2 : 1, times);
  }
}

// ---- The file of a synthetic model (measure_speed.h) --------------------------------------------

namespace {

constexpr uint64_t kDataAlignment = 32;  // GGUF's default
// Bytes of weights have all bits of the first mask and some of the second. As half, float, bfloat16 and block scale
// this gives both signs, without tiny and huge values. Equal values are unsuitable because their rotations cancel, and
// denormals because they slow processors down.
constexpr uint64_t kWeightBits = 0x3838383838383838;
constexpr uint64_t kWeightVaries = 0x8787878787878787;
// The first byte of an MXFP4 block is a power of two.
constexpr uint64_t kMxfp4Bytes = 17;
constexpr uint8_t kMxfp4Exponent = 119;
// Keeps a layer's output within the range of half floats.
constexpr float kNormWeight = 1e-3f;

/// Writes, or only counts without a buffer. Little-endian, like every supported machine.
class Writer {
 public:
  explicit Writer(uint8_t* out) : out_(out) {}

  uint64_t bytes() const { return at_; }
  void raw(const void* data, uint64_t bytes) {
    if (out_ != nullptr) {
      std::memcpy(out_ + at_, data, static_cast<size_t>(bytes));
    }
    at_ += bytes;
  }
  void fill(uint8_t value, uint64_t bytes) {
    if (out_ != nullptr) {
      std::memset(out_ + at_, value, static_cast<size_t>(bytes));
    }
    at_ += bytes;
  }
  void weights(uint64_t bytes, uint32_t type) {
    uint64_t state = 0x9E3779B97F4A7C15ull;
    for (uint64_t done = 0; out_ != nullptr && done < bytes; done += sizeof(state)) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      const uint64_t word = kWeightBits | (state & kWeightVaries);
      const uint64_t piece = std::min<uint64_t>(sizeof(word), bytes - done);
      std::memcpy(out_ + at_ + done, &word, static_cast<size_t>(piece));
    }
    if (out_ != nullptr && type == static_cast<uint32_t>(TensorType::kMxfp4)) {
      for (uint64_t done = 0; done < bytes; done += kMxfp4Bytes) {
        out_[at_ + done] = kMxfp4Exponent;
      }
    }
    at_ += bytes;
  }
  void align() { fill(0, alignUp(at_, kDataAlignment) - at_); }
  void number32(uint32_t value) { raw(&value, sizeof(value)); }
  void number64(uint64_t value) { raw(&value, sizeof(value)); }
  void string(const char* text) {
    number64(std::strlen(text));
    raw(text, std::strlen(text));
  }
  void key(const char* name, uint32_t value) {
    constexpr uint32_t kUint32 = 4;
    string(name);
    number32(kUint32);
    number32(value);
  }

 private:
  uint8_t* out_;
  uint64_t at_ = 0;
};

constexpr uint32_t kTensorsOfLayer = 9;

/// visit(name, rows, cols, layer); a vector has one row. Tensors outside layers come first, with layer 0.
template <typename Visit>
void forEachTensor(const ProbeShape& shape, const Visit& visit) {
  const uint64_t queries = uint64_t{shape.n_heads} * shape.head_dim;
  const uint64_t keys = uint64_t{shape.n_kv_heads} * shape.head_dim;
  const uint64_t embd = shape.n_embd;
  visit("token_embd.weight", shape.n_vocab, embd, 0u);
  visit("output_norm.weight", 1, embd, 0u);
  const struct {
    const char* name;
    uint64_t rows, cols;
  } tensors[kTensorsOfLayer] = {{"attn_norm", 1, embd},         {"attn_q", queries, embd},
                                {"attn_k", keys, embd},         {"attn_v", keys, embd},
                                {"attn_output", embd, queries}, {"ffn_norm", 1, embd},
                                {"ffn_gate", shape.n_ff, embd}, {"ffn_up", shape.n_ff, embd},
                                {"ffn_down", embd, shape.n_ff}};
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (const auto& tensor : tensors) {
      char name[64];
      std::snprintf(name, sizeof(name), "blk.%u.%s.weight", layer, tensor.name);
      visit(name, tensor.rows, tensor.cols, layer);
    }
  }
}

// False if the type cannot hold rows of this length.
bool tensorBytes(uint32_t type, uint64_t rows, uint64_t cols, uint64_t* bytes) {
  uint32_t block_values = 0;
  uint32_t block_bytes = 0;
  if (!tensorTypeSize(type, &block_values, &block_bytes) || cols % block_values != 0) {
    return false;
  }
  *bytes = rows * (cols / block_values) * block_bytes;
  return true;
}

uint32_t typeOf(const ProbeShape& shape, uint64_t rows) {
  return rows == 1 ? static_cast<uint32_t>(TensorType::kF32) : shape.tensor_type;
}

bool write(const ProbeShape& shape, Writer* out) {
  constexpr uint32_t kVersion = 3;
  constexpr uint32_t kString = 8;
  constexpr uint32_t kFloat32 = 6;
  constexpr uint64_t kKeys = 11;
  uint64_t n_tensors = 0;
  forEachTensor(shape, [&](const char*, uint64_t, uint64_t, uint32_t) { ++n_tensors; });
  out->raw("GGUF", 4);
  out->number32(kVersion);
  out->number64(n_tensors);
  out->number64(kKeys);
  out->string("general.architecture");
  out->number32(kString);
  out->string("llama");
  out->key("llama.block_count", shape.n_layers);
  out->key("llama.embedding_length", shape.n_embd);
  out->key("llama.feed_forward_length", shape.n_ff);
  out->key("llama.attention.head_count", shape.n_heads);
  out->key("llama.attention.head_count_kv", shape.n_kv_heads);
  out->key("llama.attention.key_length", shape.head_dim);
  out->key("llama.attention.value_length", shape.head_dim);
  out->key("llama.rope.dimension_count", shape.head_dim);
  out->key("llama.context_length", 4096);
  out->string("llama.attention.layer_norm_rms_epsilon");
  out->number32(kFloat32);
  const float epsilon = 1e-5f;
  out->raw(&epsilon, sizeof(epsilon));

  // All layers share the first one's data, so the file is small; on the device each layer has a copy.
  uint64_t offsets[kTensorsOfLayer + 2];
  uint64_t offset = 0;
  uint64_t index = 0;
  bool possible = true;
  forEachTensor(shape, [&](const char* name, uint64_t rows, uint64_t cols, uint32_t layer) {
    uint64_t bytes = 0;
    possible = possible && tensorBytes(typeOf(shape, rows), rows, cols, &bytes);
    out->string(name);
    out->number32(rows == 1 ? 1 : 2);
    out->number64(cols);
    if (rows != 1) {
      out->number64(rows);
    }
    out->number32(typeOf(shape, rows));
    if (layer == 0) {
      offsets[index] = offset;
      offset += alignUp(bytes, kDataAlignment);
    }
    out->number64(offsets[index - uint64_t{layer} * kTensorsOfLayer]);
    ++index;
  });
  out->align();
  forEachTensor(shape, [&](const char*, uint64_t rows, uint64_t cols, uint32_t layer) {
    if (layer != 0) {
      return;
    }
    uint64_t bytes = 0;
    possible = possible && tensorBytes(typeOf(shape, rows), rows, cols, &bytes);
    if (rows != 1) {
      out->weights(bytes, shape.tensor_type);
    } else {
      for (uint64_t i = 0; i < cols; ++i) {
        out->raw(&kNormWeight, sizeof(kNormWeight));
      }
    }
    out->align();
  });
  return possible;
}

}  // namespace

uint64_t probeFileBytes(const ProbeShape& shape) {
  Writer counter(nullptr);
  return write(shape, &counter) ? counter.bytes() : 0;
}

void writeProbeFile(const ProbeShape& shape, uint8_t* out) {
  Writer writer(out);
  (void)write(shape, &writer);
}

}  // namespace oriel_internal
