#include "exec/snapshot.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/arena.h"
#include "base/hash.h"
#include "chat/turn.h"
#include "exec/session_context.h"
#include "gguf/gguf.h"
#include "model/keys.h"
#include "plan/memory_layout.h"

namespace oriel_internal {

uint64_t SessionContext::prefixTokens() const { return prefix != nullptr ? prefix->tokens : 0; }

Prefix* Prefix::create(uint32_t capacity, uint64_t transcript_bytes, const PictureInput* pictures,
                       uint32_t n_embd, Arena* arena) {
  Prefix* const prefix = arena->take<Prefix>(1);
  int32_t* const ids = arena->take<int32_t>(capacity);
  Transcript transcript;
  transcript.init(transcript_bytes, arena);
  PictureStore* const store =
      pictures != nullptr
          ? PictureStore::create(*pictures, n_embd, std::min(capacity, pictures->rows_held), arena)
          : nullptr;
  if (prefix == nullptr || ids == nullptr) {
    return nullptr;
  }
  new (prefix) Prefix();
  prefix->capacity = capacity;
  prefix->ids = ids;
  prefix->transcript = transcript;
  prefix->pictures = store;
  return prefix;
}

void Prefix::forget() {
  std::fill_n(ids, capacity, 0);
  transcript.forget();
  if (pictures != nullptr) {
    pictures->forget();
  }
  Prefix empty;
  empty.capacity = capacity;
  empty.ids = ids;
  empty.transcript = transcript;
  empty.pictures = pictures;
  *this = empty;
}

namespace {

constexpr char kFormat[] = "oriel-prefix";
constexpr uint64_t kVersion = 1;
/// Unit of reading and writing.
constexpr uint64_t kPrefixPieceBytes = 64 << 10;
constexpr uint64_t kF16Bytes = 2;

// The integer value of `key`, at most UINT32_MAX.
Status readNumber(const GgufFile& file, const char* key, const Log& log, uint64_t* value) {
  if (!file.getUint(key, value) || *value > UINT32_MAX) {
    return log.fail(ORIEL_ERROR_FORMAT, "the prefix has no number %s: make it again", key);
  }
  return kOk;
}

Status readTokens(const GgufFile& file, const Log& log, uint32_t* tokens) {
  GgufString format;
  if (!file.getString("general.architecture", &format) || !format.equals(kFormat)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "this is a GGUF file, but no prefix: give one that was trained for the model");
  }
  uint64_t version = 0;
  ORIEL_TRY(readNumber(file, "oriel.prefix.version", log, &version));
  if (version != kVersion) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "the prefix has version %llu, this build reads version %llu: make it again",
                    static_cast<unsigned long long>(version),
                    static_cast<unsigned long long>(kVersion));
  }
  uint64_t count = 0;
  ORIEL_TRY(readNumber(file, "oriel.prefix.tokens", log, &count));
  if (count == 0) {
    return log.fail(ORIEL_ERROR_FORMAT, "the prefix has no tokens: make it again");
  }
  *tokens = static_cast<uint32_t>(count);
  return kOk;
}

// A file can hold only the contents of sinks.
Status checkMemories(const PrefixTarget& target, const Log& log) {
  const char* found = nullptr;
  forEachMemory(target.model, target.cache, target.plan.formats, [&](const Memory& memory) {
    if (memory.kind == MemoryKind::kLatent) {
      found = "latents";
    } else if (memory.kind == MemoryKind::kColumns) {
      found = "convolutions";
    } else if (memory.kind == MemoryKind::kState) {
      found = "recurrent states";
    } else if (memory.seen.kind != ViewKind::kSession) {
      found = "sliding windows";
    }
  });
  if (found != nullptr) {
    return log.fail(ORIEL_ERROR_UNSUPPORTED,
                    "a prefix of keys and values cannot stand for what a %s model with %s "
                    "remembers: give the text, or a snapshot of it",
                    target.model.architecture, found);
  }
  return kOk;
}

Status checkNumber(const GgufFile& file, const char* key, const char* what, uint64_t wanted,
                   const Log& log) {
  uint64_t value = 0;
  ORIEL_TRY(readNumber(file, key, log, &value));
  if (value != wanted) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the prefix is of a model with %llu %s, this one has %llu: load that model, or "
                    "train a prefix for this one",
                    static_cast<unsigned long long>(value), what,
                    static_cast<unsigned long long>(wanted));
  }
  return kOk;
}

Status checkModel(const GgufFile& file, const PrefixTarget& target, const Log& log) {
  const ModelDesc& model = target.model;
  GgufString text;
  if (!file.getString("oriel.prefix.model_architecture", &text)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the prefix does not say for which model: make it again");
  }
  if (!text.equals(model.architecture)) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the prefix is of a %s model, this is %s: load that model, or train a prefix "
                    "for this one",
                    PrintableText(text).text, model.architecture);
  }
  ORIEL_TRY(checkNumber(file, "oriel.prefix.layers", "layers", model.n_layers, log));
  ORIEL_TRY(
      checkNumber(file, "oriel.prefix.vocab_size", "tokens in its vocabulary", model.n_vocab, log));
  uint64_t fingerprint = 0;
  if (!file.getUint("oriel.prefix.fingerprint", &fingerprint) ||
      fingerprint != target.fingerprint) {
    if (!file.getString("oriel.prefix.model_name", &text)) {
      text = {"?", 1};
    }
    return log.fail(ORIEL_ERROR_FORMAT,
                    "the prefix was trained for other weights of this shape (\"%s\"): load that "
                    "model, or train a prefix for this one",
                    PrintableText(text).text);
  }
  return kOk;
}

/// "prefix.k.17"
struct SideName {
  SideName(uint32_t side, uint32_t layer) {
    std::snprintf(text, sizeof(text), "prefix.%c.%u", side == 0 ? 'k' : 'v', layer);
  }
  char text[32];
};

Status findSide(const GgufFile& file, const Memory& memory, uint32_t side, uint32_t tokens,
                const Log& log, GgufTensor* tensor) {
  const SideName name(side, memory.layer);
  if (!file.findTensor(name.text, tensor)) {
    return log.fail(ORIEL_ERROR_FORMAT, "the prefix has no %s: make it again", name.text);
  }
  const CacheShape& shape = memory.shape;
  if (tensor->type != static_cast<uint32_t>(TensorType::kF16) || tensor->n_dims != 3 ||
      tensor->dims[0] != shape.head_dim || tensor->dims[1] != tokens ||
      tensor->dims[2] != shape.n_kv_heads) {
    return log.fail(ORIEL_ERROR_FORMAT,
                    "%s of the prefix is not f16 of %u heads, %u tokens and %u values: load the "
                    "model that it was trained for, or make it again",
                    name.text, shape.n_kv_heads, tokens, shape.head_dim);
  }
  return kOk;
}

// Calls visit(tensor, memory, side) for all tensors of a prefix; `memory`: the destination.
template <typename Visit>
Status forEachSide(const GgufFile& file, const PrefixTarget& target, uint32_t tokens,
                   const Log& log, const Visit& visit) {
  Status status = kOk;
  forEachPlacedMemory(target.model, target.cache, target.plan.formats,
                      [&](const Memory& memory, const BufferRef(&sides)[2]) {
                        for (uint32_t side = 0; side < memory.sides() && status.ok(); ++side) {
                          GgufTensor tensor;
                          status = findSide(file, memory, side, tokens, log, &tensor);
                          if (status.ok()) {
                            status = visit(tensor, memory, sides[side]);
                          }
                        }
                      });
  return status;
}

bool allFinite(const uint8_t* values, uint64_t bytes) {
  constexpr uint16_t kExponent = 0x7c00;
  bool finite = true;
  for (uint64_t at = 0; at < bytes; at += kF16Bytes) {
    uint16_t bits = 0;
    std::memcpy(&bits, values + at, sizeof(bits));
    finite = finite && (bits & kExponent) != kExponent;
  }
  return finite;
}

// Calls visit(head, done, bytes) with each piece of the side in `room`, and adds them to a checksum.
template <typename Visit>
Status readSide(const ModelFile& file, const GgufTensor& tensor, const PrefixTarget& target,
                void* room, const Log& log, uint64_t* sum, const Visit& visit) {
  const uint64_t head_bytes = tensor.dims[0] * tensor.dims[1] * kF16Bytes;
  const uint64_t most = std::min<uint64_t>(kPrefixPieceBytes, target.plan.upload.size_bytes / 2);
  for (uint64_t head = 0; head < tensor.dims[2]; ++head) {
    for (uint64_t done = 0; done < head_bytes; done += most) {
      const uint64_t bytes = std::min(most, head_bytes - done);
      ORIEL_TRY(file.read(tensor.offset + head * head_bytes + done, room, bytes, log));
      if (!allFinite(static_cast<const uint8_t*>(room), bytes)) {
        return log.fail(ORIEL_ERROR_FORMAT, "the prefix holds what is no number: make it again");
      }
      *sum = hashBytes(room, bytes, *sum);
      ORIEL_TRY(visit(static_cast<uint32_t>(head), done, bytes));
    }
  }
  return kOk;
}

// A head's tokens are consecutive, both in the file and in its sinks.
Status writeSide(const ModelFile& file, const GgufTensor& tensor, const Memory& memory,
                 const BufferRef& side, const PrefixTarget& target, void* room, const Log& log,
                 uint64_t* sum) {
  const uint64_t slot_bytes = 4ull * kvValueWords(KvFormat::kF16, memory.shape.head_dim);
  return readSide(file, tensor, target, room, log, sum,
                  [&](uint32_t head, uint64_t done, uint64_t bytes) -> Status {
                    void* piece = nullptr;
                    ORIEL_TRY(target.executor->beginWrite(bytes, &piece));
                    std::memcpy(piece, room, static_cast<size_t>(bytes));
                    const uint64_t begin = memory.shape.sinkRow(head, 0) * slot_bytes;
                    return target.executor->endWrite(side, begin + done, bytes);
                  });
}

// Must equal the loaded one.
Status checkSame(const ModelFile& file, const PrefixTarget& target, uint32_t tokens, void* room,
                 const Log& log, const Prefix& prefix) {
  uint64_t sum = hashBytes(nullptr, 0);
  const auto nothing = [](uint32_t, uint64_t, uint64_t) -> Status { return kOk; };
  ORIEL_TRY(forEachSide(file.gguf(), target, tokens, log,
                        [&](const GgufTensor& tensor, const Memory&, const BufferRef&) {
                          return readSide(file, tensor, target, room, log, &sum, nothing);
                        }));
  return tokens == prefix.tokens && sum == prefix.sum
             ? Status(kOk)
             : log.fail(ORIEL_ERROR_IO,
                        "this is another prefix than the one that was loaded: put that back, or "
                        "load the model again");
}

Status openPrefix(const char* path, const oriel_allocator& allocator, const Log& log,
                  ModelFile* file, uint32_t* tokens) {
  ORIEL_TRY(file->open(path, allocator, log));
  NamingLog named(log, path);
  return readTokens(file->gguf(), named.log(), tokens);
}

// It ends like the assistant's turn, including the closing text: a message may follow.
void describe(uint32_t tokens, Prefix* prefix) {
  prefix->tokens = tokens;
  prefix->trained = true;
  std::fill_n(prefix->ids, tokens, TokenIds::kUnknown);
  prefix->at = Conversation::empty(0, tokens);
  prefix->at.position = prefix->at.stored = tokens;
  prefix->transcript.forget();
  prefix->transcript.addClosedReply(tokens);
}

}  // namespace

Status prefixFingerprint(const GgufFile& file, const GgufTensor& output_norm, const Log& log,
                         uint64_t* fingerprint) {
  uint64_t hash = hashBytes(nullptr, 0);
  double values[kMostTensorValues];
  for (uint64_t first = 0; first < output_norm.dims[0]; first += kMostTensorValues) {
    const uint32_t count =
        static_cast<uint32_t>(std::min<uint64_t>(kMostTensorValues, output_norm.dims[0] - first));
    ORIEL_TRY(readValues(file, output_norm, first, count, log, values));
    for (uint32_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(values[i]);
      hash = hashBytes(&value, sizeof(value), hash);
    }
  }
  *fingerprint = hash;
  return kOk;
}

Status countPrefixFile(const char* path, const oriel_allocator& allocator, const Log& log,
                       uint32_t* tokens) {
  ModelFile file;
  return openPrefix(path, allocator, log, &file, tokens);
}

Status loadPrefixFile(const char* path, const PrefixTarget& target, const Log& log,
                      Prefix* prefix) {
  ModelFile file;
  uint32_t tokens = 0;
  ORIEL_TRY(openPrefix(path, target.allocator, log, &file, &tokens));
  NamingLog named(log, path);
  ORIEL_TRY(checkMemories(target, named.log()));
  ORIEL_TRY(checkModel(file.gguf(), target, named.log()));
  const uint32_t most = std::min(target.cache.sinkRoom(), prefix->capacity);
  if (tokens > most) {
    return named.log().fail(ORIEL_ERROR_CONTEXT,
                            "the prefix has %u tokens and there is room for %u: give it more",
                            tokens, most);
  }
  const auto nothing = [](const GgufTensor&, const Memory&, const BufferRef&) { return kOk; };
  ORIEL_TRY(forEachSide(file.gguf(), target, tokens, named.log(), nothing));
  Scratch scratch(target.allocator, 2 * kPrefixPieceBytes);
  void* const room = scratch.takeText(kPrefixPieceBytes);
  if (room == nullptr) {
    return named.log().fail(ORIEL_ERROR_OUT_OF_MEMORY,
                            "no memory to read the prefix: close other programs");
  }
  ORIEL_TRY(prefix->trained ? checkSame(file, target, tokens, room, named.log(), *prefix) : kOk);
  uint64_t sum = hashBytes(nullptr, 0);
  ORIEL_TRY(forEachSide(file.gguf(), target, tokens, named.log(),
                        [&](const GgufTensor& tensor, const Memory& memory, const BufferRef& side) {
                          return writeSide(file, tensor, memory, side, target, room, named.log(),
                                           &sum);
                        }));
  ORIEL_TRY(target.executor->finishWrites());
  ORIEL_TRY(file.expectUnchanged(log));
  describe(tokens, prefix);
  prefix->sum = sum;
  return kOk;
}

}  // namespace oriel_internal
