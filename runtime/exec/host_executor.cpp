#include "exec/host_executor.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/arena.h"
#include "base/hash.h"
#include "exec/sampler.h"
#include "os/os.h"
#include "plan/memory_layout.h"

namespace oriel_internal {
namespace {

constexpr uint32_t kAllFeatures = (1u << kVulkanFeatures) - 1;

bool isName(const char* name, size_t length, const char* known) {
  return std::strlen(known) == length && std::memcmp(known, name, length) == 0;
}

uint32_t bitsOf(const char* name, size_t length, bool overrides) {
  if (isName(name, length, "all")) {
    return kAllFeatures;
  }
  for (uint32_t i = 0; overrides && i < sizeof(kOverrideNames) / sizeof(kOverrideNames[0]); ++i) {
    if (isName(name, length, kOverrideNames[i])) {
      return 1u << (kVulkanFeatures + i);
    }
  }
  for (uint32_t i = 0; i < kVulkanFeatures; ++i) {
    if (isName(name, length, kVulkanFeatureNames[i])) {
      return 1u << i;
    }
  }
  return 0;
}

Status readNames(const char* names, bool overrides, const Log& log, uint32_t* bits) {
  *bits = 0;
  for (const char* name = names != nullptr ? names : ""; *name != '\0';) {
    const size_t length = std::strcspn(name, ", ");
    const uint32_t found = bitsOf(name, length, overrides);
    if (length != 0 && found == 0) {
      char known[256];
      writeFeatureNames(kAllFeatures, known, sizeof(known));
      for (uint32_t i = 0; overrides && i < 2; ++i) {
        appendToList(kOverrideNames[i], known, sizeof(known));
      }
      return log.fail(
          ORIEL_ERROR_ARGUMENT,
          "there is no optional Vulkan feature \"%.*s\" to turn %s: name some of %s, or all",
          static_cast<int>(length < 64 ? length : 64), name, overrides ? "on" : "off", known);
    }
    *bits |= found;
    name += length;
    name += std::strspn(name, ", ");
  }
  return kOk;
}

}  // namespace

Status readFeatureNames(const char* names, const Log& log, uint32_t* bits) {
  return readNames(names, false, log, bits);
}

Status readOverrideNames(const char* names, const Log& log, uint32_t* bits) {
  return readNames(names, true, log, bits);
}

void appendToList(const char* item, char* list, size_t capacity) {
  const size_t used = std::strlen(list);
  std::snprintf(list + used, capacity - used, "%s%s", used == 0 ? "" : ", ", item);
}

void writeFeatureNames(uint32_t bits, char* text, size_t capacity) {
  text[0] = '\0';
  for (uint32_t i = 0; i < kVulkanFeatures; ++i) {
    if ((bits >> i & 1u) != 0) {
      appendToList(kVulkanFeatureNames[i], text, capacity);
    }
  }
}

HostExecutor::HostExecutor(const Plan& plan, const ExecutorOptions& options)
    : plan_(plan), log_(options.log), prepared_(options.prepared), allocator_(*options.allocator) {
  stopBy(options.stop);
}

HostExecutor::~HostExecutor() { (void)HostExecutor::giveBack(kAllArenas); }

// Overwrites the data of conversations, then frees the arenas.
Status HostExecutor::giveBack(ArenaSet arenas) {
  for (const ArenaKind kind : {ArenaKind::kCache, ArenaKind::kActivations, ArenaKind::kIo}) {
    if (contains(arenas, kind)) {
      wipePiece(kind, 0, segmentBytes(static_cast<uint32_t>(kind), 0));
    }
  }
  for (uint32_t kind = 0; kind < kArenaKinds; ++kind) {
    for (uint32_t s = 0; contains(arenas, static_cast<ArenaKind>(kind)) && s < segmentCount(kind);
         ++s) {
      dropSegment(kind, s);
    }
  }
  return kOk;
}

void HostExecutor::dropSegment(uint32_t kind, uint32_t s) {
  uint8_t*& block = kind == 0 ? weights_[s] : single_[kind];
  if (kind == 0 && prepared_ != nullptr) {
    prepared_->forget();
  } else if (block != nullptr) {
    release(allocator_, block, segmentBytes(kind, s));
    allocated_[kind] -= segmentBytes(kind, s);
  }
  block = nullptr;
}

Status HostExecutor::takeAgain(ArenaSet arenas) {
  for (uint32_t kind = 0; kind < kArenaKinds; ++kind) {
    for (uint32_t s = 0; contains(arenas, static_cast<ArenaKind>(kind)) && s < segmentCount(kind);
         ++s) {
      ORIEL_TRY(segment(kind, s) == nullptr ? takeSegment(kind, s) : kOk);
    }
  }
  return kOk;
}

Status HostExecutor::takeSegment(uint32_t kind, uint32_t s) {
  constexpr uint64_t kMostAtOnce = 16 << 20;
  ORIEL_TRY(loadStop().check());
  if (kind == 0 && prepared_ != nullptr) {
    weights_[s] =
        const_cast<uint8_t*>(prepared_->segment(s));  // nothing writes weights after a load
    return kOk;
  }
  const uint64_t bytes = segmentBytes(kind, s);
  void* block = bytes <= SIZE_MAX / 2
                    ? allocator_.allocate(static_cast<size_t>(bytes), allocator_.user)
                    : nullptr;
  if (block == nullptr) {
    return log_.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                     "the system refused %llu bytes: close other programs or give less memory",
                     static_cast<unsigned long long>(bytes));
  }
  // Must come before the first write. Not for the cache, where the first token would need a large page for each head.
  if (static_cast<ArenaKind>(kind) != ArenaKind::kCache) {
    preferLargePages(block, bytes);
  }
  allocated_[kind] += bytes;
  uint8_t* const data = static_cast<uint8_t*>(block);
  (kind == 0 ? weights_[s] : single_[kind]) = data;
  for (uint64_t done = 0; done < bytes && !isDefault(allocator_); done += kMostAtOnce) {
    ORIEL_TRY(loadStop().check());
    std::memset(data + done, 0, static_cast<size_t>(std::min(kMostAtOnce, bytes - done)));
  }
  return kOk;
}

Status HostExecutor::beginWrite(uint64_t bytes, void** piece) {
  if (bytes > plan_.upload.size_bytes / 2) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "an upload of %llu bytes exceeds the ring",
                     static_cast<unsigned long long>(bytes));
  }
  *piece = at(plan_.upload);
  return kOk;
}

Status HostExecutor::endWrite(const BufferRef& destination, uint64_t offset_bytes, uint64_t bytes) {
  std::memcpy(at(destination) + offset_bytes, at(plan_.upload), static_cast<size_t>(bytes));
  return kOk;
}

Status HostExecutor::read(const BufferRef& source, uint64_t offset_bytes, uint64_t,
                          const void** piece) {
  *piece = at(source) + offset_bytes;
  return kOk;
}

Status HostExecutor::logits(uint32_t output, const float** values) {
  if (output >= plan_.output_rows) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "no such output: please report it");
  }
  const uint64_t row_bytes = plan_.logits.size_bytes / plan_.output_rows;
  *values = reinterpret_cast<const float*>(at(plan_.logits) + output * row_bytes);
  return kOk;
}

Status HostExecutor::keptLogits(uint32_t session, const float** values) {
  if (session >= plan_.sessionCount()) {
    return log_.fail(ORIEL_ERROR_INTERNAL, "no such session: please report it");
  }
  const uint64_t row_bytes = plan_.kept_logits.size_bytes / plan_.sessionCount();
  *values = reinterpret_cast<const float*>(at(plan_.kept_logits) + session * row_bytes);
  return kOk;
}

Status HostExecutor::copy(const CopyPiece* pieces, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(at(pieces[i].to), at(pieces[i].from), pieces[i].from.size_bytes);
  }
  return kOk;
}

// Does nothing if the arena was freed.
void HostExecutor::wipePiece(ArenaKind kind, uint64_t begin, uint64_t end) {
  uint8_t* const arena = segment(static_cast<uint32_t>(kind), 0);
  if (arena == nullptr) {
    return;
  }
  if (isDefault(allocator_)) {
    wipePages(arena + begin, end - begin);
  } else {
    wipe(arena + begin, end - begin);
  }
}

Status HostExecutor::forget() {
  for (const ArenaKind kind : {ArenaKind::kCache, ArenaKind::kActivations, ArenaKind::kIo}) {
    wipePiece(kind, 0, segmentBytes(static_cast<uint32_t>(kind), 0));
  }
  return kOk;
}

Status HostExecutor::forget(const BufferRef* pieces, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t begin = arenaOffset(pieces[i]);
    wipePiece(pieces[i].arena, begin, begin + pieces[i].size_bytes);
  }
  forEachScratch(
      plan_, [this](const ScratchPiece& piece) { wipePiece(piece.arena, piece.begin, piece.end); });
  return kOk;
}

namespace {

// The output whose best tokens are needed: `output` if all have best tokens, else the last.
uint32_t topOutput(const TopPush& push, const StepHeader& header, uint32_t output) {
  return push.all_outputs != 0 ? output : std::max(header.n_outputs, 1u) - 1;
}
// The place of its keys.
uint64_t topKeys(const TopPush& push, uint32_t output) {
  return push.all_outputs != 0 ? uint64_t{output} * push.blocks : 0;
}

}  // namespace

void HostExecutor::findTopBlocks(const Op& op, const StepBlock& step, uint32_t output) const {
  const TopPush& push = op.push.top;
  const uint32_t of = topOutput(push, step.header(), output);
  topBlocks(floats(op, 0) + uint64_t{of} * push.n_vocab, push,
            words(op, kOpOut) + topKeys(push, output));
}

void HostExecutor::findTopTokens(const Op& op, const StepBlock& step, uint32_t output) const {
  const TopPush& push = op.push.top;
  const uint32_t of = topOutput(push, step.header(), output);
  const uint32_t place = step.token(step.token(of).output).place;
  topTokens(floats(op, 0) + uint64_t{of} * push.n_vocab, push, words(op, 3) + topKeys(push, output),
            reinterpret_cast<TopTokens*>(words(op, kOpOut)) + place);
}

void HostExecutor::keepOutput(const Op& op, const StepBlock& step, uint32_t output) const {
  const auto sessionOf = [&](uint32_t i) { return step.token(step.token(i).output).base; };
  const uint32_t session = sessionOf(output);
  if (output + 1 < step.header().n_outputs && sessionOf(output + 1) == session) {
    return;
  }
  const uint64_t n_vocab = op.push.keep_logits.n_vocab;
  std::memcpy(floats(op, kOpOut) + session * n_vocab, floats(op, 0) + output * n_vocab,
              static_cast<size_t>(n_vocab) * sizeof(float));
}

void HostExecutor::poolText(const Op& op, const StepBlock& step, uint32_t output) const {
  const PoolPush& p = op.push.pool;
  const uint32_t how = step.header().tail;
  const uint32_t last = step.token(output).output;
  const uint32_t begin = last - step.view(last, 0).slot;
  const uint32_t first = how == kPoolLast ? last : begin;
  const uint32_t end = how == kPoolFirst ? begin + 1 : last + 1;
  float* const out = floats(op, kOpOut) + uint64_t{output} * p.out_stride;
  for (uint32_t c = 0; c < p.cols; ++c) {
    double sum = 0;
    for (uint32_t t = first; t < end; ++t) {
      sum += double{floats(op, 0)[uint64_t{t} * p.in_stride + c]};
    }
    out[c] = static_cast<float>(sum / (end - first));
  }
}

uint64_t HostExecutor::segmentBytes(uint32_t kind, uint32_t s) const {
  switch (static_cast<ArenaKind>(kind)) {
    case ArenaKind::kWeights:
      return plan_.weight_segment_bytes[s];
    case ArenaKind::kCache:
      return plan_.cache_bytes;
    case ArenaKind::kActivations:
      return plan_.activation_bytes;
    case ArenaKind::kIo:
      return plan_.io_bytes;
  }
  return 0;
}

}  // namespace oriel_internal
