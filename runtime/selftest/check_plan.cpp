#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iterator>

#include "base/checked.h"
#include "plan/codebooks.h"
#include "plan/weight_placement.h"
#include "selftest/check_plan.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kOutputTokens[kOutputs] = {5, 0, 3};
constexpr uint32_t kTailToken = 3;
constexpr uint64_t kUploadHalf = 128 << 10;
constexpr uint32_t kChecksOfWeights = 10;  // limit per type

// A reproducible number for each word of an input (Steele et al., SplitMix, 2014).
uint32_t noise(uint64_t seed, uint64_t index) {
  uint64_t x = (seed << 40) + (index + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>((x ^ (x >> 31)) >> 16);
}

// Random quants. The exponents of values and scales are limited so that sums stay ordinary. The halves of a side word
// are small f16 numbers, whose bytes also serve as block scales.
uint32_t weightWord(WeightType type, bool side, uint32_t word) {
  switch (type) {
    case WeightType::kF32:
      return (word & 0x807fffffu) | 0x3d800000u;
    case WeightType::kBf16:
      return (word & 0x807f807fu) | 0x3d803d80u;
    case WeightType::kF16:
      return (word & 0x83ff83ffu) | 0x2c002c00u;
    case WeightType::kMxfp4:  // bytes of exponents
      return side ? (word & 0x07070707u) | 0x70707070u : word;
    case WeightType::kNvfp4:
      return side ? (word & 0x07070707u) | 0x30303030u : word;
    default:
      return side ? (word & 0x83ff83ffu) | 0x24002400u : word;
  }
}

}  // namespace

BufferRef CheckPlan::take(ArenaKind kind, uint64_t words) {
  uint64_t* const bytes = &bytes_[static_cast<uint32_t>(kind)];
  const BufferRef piece = {kind, 0, *bytes, 4 * words};
  *bytes = alignUp(*bytes + piece.size_bytes, kBufferAlignment);
  return piece;
}

BufferRef CheckPlan::vector(uint64_t words, Fill what) {
  const BufferRef piece = take(ArenaKind::kWeights, words);
  inputs_[n_inputs_++] = {piece, WeightType::kF32, what};
  return piece;
}

BufferRef CheckPlan::matrix(WeightType type) {
  const uint64_t bytes = weightGeometry(type, kCols).sliceBytes(kRows);
  const BufferRef piece = take(ArenaKind::kWeights, bytes / 4);
  inputs_[n_inputs_++] = {piece, type, Fill::kMatrix};
  uint32_t offset_bytes = 0, book_bytes = 0;
  if (plan_.codebooks.size_bytes == 0 && codebookOf(type, &offset_bytes, &book_bytes)) {
    plan_.codebooks = take(ArenaKind::kWeights, kCodebookBytes / 4);
  }
  return piece;
}

Check* CheckPlan::expect(StepList list, const char* name, const BufferRef& out, double limit) {
  Check* const check = &checks_[n_checks_++];
  std::snprintf(check->name, sizeof(check->name), "%s%s", name,
                list == StepList::kChunk ? " of a chunk" : "");
  check->list = list;
  check->out = out;
  check->limit = limit;
  const uint32_t l = static_cast<uint32_t>(list);
  if (plan_.n_ops[l] != seen_ops_[l]) {
    first_op_[l] = seen_ops_[l];
    seen_ops_[l] = plan_.n_ops[l];
  }
  check->first_op = static_cast<uint8_t>(first_op_[l]);
  check->n_ops = static_cast<uint8_t>(seen_ops_[l] - first_op_[l]);
  return check;
}

KernelsOf::KernelsOf(const Plan& plan) {
  for (uint32_t l = 0; l < kStepLists; ++l) {
    for (uint32_t i = 0; i < plan.n_ops[l]; ++i) {
      const Op& op = plan.ops[l][i];
      const uint32_t kind = static_cast<uint32_t>(op.kind);
      kinds |= 1u << kind;
      weights[kind] |= 1u << static_cast<uint32_t>(op.weights);
      const uint32_t k = static_cast<uint32_t>(op.k_format);
      if (op.kind == OpKind::kAttention) {
        caches |= 1u << (3 * k + static_cast<uint32_t>(op.v_format));
      } else if (op.kind == OpKind::kLatentAttention) {
        latents |= 1u << k;
      }
    }
  }
}

CheckPlan::CheckPlan(const KernelsOf& wanted) {
  begin();
  const auto add = [&](OpKind kind, void (CheckPlan::*what)()) {
    if (wanted.has(kind)) {
      (this->*what)();
    }
  };
  add(OpKind::kRmsNorm, &CheckPlan::addNorms);
  add(OpKind::kAddBias, &CheckPlan::addBias);
  add(OpKind::kGatedActivation, &CheckPlan::addActivations);
  add(OpKind::kTopBlocks, &CheckPlan::addTop);
  add(OpKind::kSoftCap, &CheckPlan::addOutputs);
  add(OpKind::kShortConv, &CheckPlan::addConv);
  add(OpKind::kStateScan, &CheckPlan::addStates);
  add(OpKind::kGatedNorm, &CheckPlan::addGatedNorms);
  add(OpKind::kRoute, &CheckPlan::addExperts);
  add(OpKind::kTail, &CheckPlan::addTail);
  constexpr OpKind kOfWeights[] = {OpKind::kEmbed, OpKind::kMatmul, OpKind::kExpertMatmul,
                                   OpKind::kHeadMatmul};
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    const WeightType type = static_cast<WeightType>(i);
    const bool used = std::any_of(std::begin(kOfWeights), std::end(kOfWeights),
                                  [&](OpKind kind) { return wanted.has(kind, type); });
    if (!used || n_checks_ + kChecksOfWeights > kMaxChecks) {
      continue;
    }
    const BufferRef weights = matrix(type);
    if (wanted.has(OpKind::kEmbed, type)) {
      addEmbed(type, weights);
    }
    if (wanted.has(OpKind::kMatmul, type)) {
      addProduct(type, weights, 0);
    }
    if (wanted.has(OpKind::kExpertMatmul, type)) {
      addExpertProduct(type, weights);
    }
    if (wanted.has(OpKind::kHeadMatmul, type)) {
      addHeadProduct(type, weights);
    }
  }
  if ((wanted.caches | wanted.latents) != 0) {
    qkv_ = vector(kChunk * kQkvStride);
  }
  for (uint32_t i = 0; i < 9; ++i) {
    if ((wanted.caches >> i & 1u) != 0) {
      addCache(static_cast<KvFormat>(i / 3), static_cast<KvFormat>(i % 3), false);
    }
  }
  if (wanted.latents != 0) {
    addLatents();
  }
  end();
}

CheckPlan::CheckPlan(CheckPart part) {
  begin();
  switch (part) {
    case CheckPart::kNorms:
      addNorms();
      break;
    case CheckPart::kSmallOps:
      addNorms();
      addBias();
      addActivations();
      addTop();
      addOutputs();
      addConv();
      addStates();
      addGatedNorms();
      addExperts();
      addTail();
      break;
    case CheckPart::kWeights0:
    case CheckPart::kWeights1:
    case CheckPart::kWeights2:
    case CheckPart::kWeights3:
    case CheckPart::kWeights4:
      for (uint32_t type =
               static_cast<uint32_t>(part) - static_cast<uint32_t>(CheckPart::kWeights0);
           type < kWeightTypes; type += kWeightParts) {
        addMatrix(static_cast<WeightType>(type));
      }
      break;
    case CheckPart::kCache:
      qkv_ = vector(kChunk * kQkvStride);
      for (const KvFormat k : {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4}) {
        for (const KvFormat v : {KvFormat::kF16, KvFormat::kInt8, KvFormat::kInt4}) {
          addCache(k, v, false);
        }
      }
      norms_ = vector(2 * kHeadDim);
      addCache(KvFormat::kF16, KvFormat::kF16, true);
      addCache(KvFormat::kInt8, KvFormat::kInt4, true);
      addLatents();
      break;
  }
  end();
}

void CheckPlan::begin() {
  plan_.chunk_tokens = kChunk;
  plan_.output_rows = kOutputs;
  plan_.n_views = kViews;
  const uint64_t step_words = stepBytes(kChunk, kViews, kRotationWords) / 4;
  plan_.step = take(ArenaKind::kIo, step_words);
  plan_.device_step = take(ArenaKind::kActivations, step_words);
  plan_.step_decode_bytes = 4 * stepRotationWord(kChunk, kViews, kRotationWords, 1);
  staged_ = take(ArenaKind::kActivations, kChunk * kStagedUnitWords * (kCols / kUnit));
  plan_.upload = take(ArenaKind::kIo, 2 * kUploadHalf / 4);
  in_ = vector(kChunk * kCols);
}

void CheckPlan::end() {
  for (uint64_t& bytes : bytes_) {
    bytes = alignUp(bytes, kArenaGranularity);
  }
  const auto bytesOf = [this](ArenaKind kind) { return bytes_[static_cast<uint32_t>(kind)]; };
  weight_bytes_ = bytesOf(ArenaKind::kWeights);
  plan_.weight_segments = 1;
  plan_.weight_segment_bytes = &weight_bytes_;
  plan_.weights_bytes = weight_bytes_;
  plan_.cache_bytes = bytesOf(ArenaKind::kCache);
  plan_.activation_bytes = bytesOf(ArenaKind::kActivations);
  plan_.io_bytes = bytesOf(ArenaKind::kIo);
  plan_.n_ops[static_cast<uint32_t>(StepList::kOutputs)] =
      plan_.n_ops[static_cast<uint32_t>(StepList::kHead)];
  for (uint32_t l = 0; l < kStepLists; ++l) {
    plan_.ops[l] = ops_[std::min(l, static_cast<uint32_t>(StepList::kHead))];
    plan_.op_capacity += plan_.n_ops[l];
  }
}

void CheckPlan::fill(const Input& input, uint64_t first_word, uint32_t* words,
                     uint64_t count) const {
  const WeightGeometry geometry = weightGeometry(input.type, kCols);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t at = first_word + i;
    const uint32_t word = noise(input.piece.offset_bytes, at);
    if (input.what == Fill::kMatrix) {
      words[i] = weightWord(input.type, at % geometry.groupWords() >= geometry.sideWord(), word);
    } else {
      float number = static_cast<float>(static_cast<int32_t>(word)) / 1073741824.0f;
      if (input.what == Fill::kBelowZero) {
        number = -std::fabs(number);
      }
      std::memcpy(&words[i], &number, sizeof(number));
    }
  }
}

Status CheckPlan::load(Executor* executor) const {
  if (plan_.codebooks.size_bytes != 0) {
    void* ring = nullptr;
    ORIEL_TRY(executor->beginWrite(kCodebookBytes, &ring));
    copyCodebooks(ring);
    ORIEL_TRY(executor->endWrite(plan_.codebooks, 0, kCodebookBytes));
  }
  for (uint32_t i = 0; i < n_inputs_; ++i) {
    const Input& input = inputs_[i];
    for (uint64_t done = 0; done < input.piece.size_bytes;) {
      const uint64_t bytes = std::min(kUploadHalf, input.piece.size_bytes - done);
      void* ring = nullptr;
      ORIEL_TRY(executor->beginWrite(bytes, &ring));
      fill(input, done / 4, static_cast<uint32_t*>(ring), bytes / 4);
      ORIEL_TRY(executor->endWrite(input.piece, done, bytes));
      done += bytes;
    }
  }
  return executor->finishLoad();
}

void CheckPlan::writeStep(uint32_t chunk, void* step) const {
  std::memset(step, 0, static_cast<size_t>(plan_.step.size_bytes));
  const StepBlock block(step);
  block.header().n_tokens = chunk < kChunks ? kChunk : 1;
  block.header().n_outputs = 1;
  block.header().token_words = tokenWords(kViews);
  block.header().tail = chunk < kChunks ? kTailToken : 0;
  for (uint32_t t = 0; t < block.header().n_tokens; ++t) {
    const uint32_t position = chunk * kChunk + t;
    block.token(t).token = (7 * position + 3) % kRows;
    const uint32_t n_sinks = std::min(position + 1, kSinks);
    // The ring never wraps.
    block.view(t, 0) = {position, n_sinks, 0, position + 1 - n_sinks, kRing, 0, 0, kRing};
    const uint32_t columns = std::min(position + 1, kTaps);
    block.view(t, kConvView) = {position % kConvRing,
                                0,
                                (position + 1 - columns) % kConvRing,
                                columns,
                                kConvRing,
                                0,
                                0,
                                kConvRing};
    block.view(t, kStateView) = {(chunk + 1) % kCheckedSlots,
                                 0,
                                 chunk % kCheckedSlots,
                                 chunk != 0 ? 1u : 0u,
                                 kCheckedSlots,
                                 0,
                                 0,
                                 kCheckedSlots};
    float* const rotations = block.floats(stepRotationWord(kChunk, kViews, kRotationWords, t));
    for (uint32_t pair = 0; pair < kHeadDim; ++pair) {  // in both tables
      const double angle = position * 0.37 / (1 + pair % (kHeadDim / 2));
      rotations[2 * pair] = static_cast<float>(std::cos(angle));
      rotations[2 * pair + 1] = static_cast<float>(std::sin(angle));
    }
  }
}

Status CheckPlan::run(Executor* executor) const {
  for (uint32_t chunk = 0; chunk <= kChunks; ++chunk) {
    writeStep(chunk, executor->step());
    ORIEL_TRY(executor->run(chunk < kChunks ? StepRun::kChunk : StepRun::kDecode));
  }
  const StepBlock block(executor->step());
  block.header().n_outputs = kOutputs;
  for (uint32_t i = 0; i < kOutputs; ++i) {
    block.token(i).output = kOutputTokens[i];
  }
  return executor->run(StepRun::kHead);
}

}  // namespace oriel_internal
