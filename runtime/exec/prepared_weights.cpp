#include "exec/load_weights.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "base/arena.h"
#include "base/hash.h"
#include "exec/executor.h"
#include "plan/repack.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

constexpr char kMagic[8] = {'O', 'r', 'i', 'e', 'l', 'W', '0', '1'};
constexpr char kTextMagic[8] = {'O', 'r', 'i', 'e', 'l', 'T', '0', '1'};
constexpr uint64_t kBlockBytes = 1 << 20;
constexpr uint64_t kSegmentAlignment = 64 << 10;  // the largest page of the supported systems

struct Header {
  char magic[8];
  uint64_t model;
  uint64_t layout;
  uint64_t model_hash;
  uint64_t adapter_hashes[kMaxAdapters];
  uint64_t file_bytes;
  uint64_t table_hash;
  uint64_t header_hash;  ///< of all fields before it
};

uint64_t hashOf(const Header& header) { return hashBytes(&header, offsetof(Header, header_hash)); }

/// The layout of the file: header, hashes of the blocks, weights.
struct Places {
  explicit Places(const Plan& plan) {
    for (uint32_t s = 0; s < plan.weight_segments; ++s) {
      weights += alignUp(plan.weight_segment_bytes[s], kSegmentAlignment);
    }
    n_blocks = static_cast<uint32_t>(ceilDiv(weights, kBlockBytes));
    first = alignUp(sizeof(Header) + uint64_t{n_blocks} * sizeof(uint64_t), kSegmentAlignment);
  }
  uint64_t bytes() const { return first + weights; }
  uint64_t blockBytes(uint32_t block) const {
    return std::min(kBlockBytes, weights - uint64_t{block} * kBlockBytes);
  }

  uint64_t weights = 0;
  uint32_t n_blocks = 0;
  uint64_t first = 0;  ///< of the weights
};

uint64_t segmentOffset(const Plan& plan, uint32_t segment) {
  uint64_t offset = 0;
  for (uint32_t s = 0; s < segment; ++s) {
    offset += alignUp(plan.weight_segment_bytes[s], kSegmentAlignment);
  }
  return offset;
}

uint64_t hashOfBlock(const void* data, uint64_t bytes) {
  StreamHash hash(bytes);
  hash.add(data, bytes);
  return hash.finish();
}

/// Writes uploads to their places in the file.
class Writer final : public NoExecutor {
 public:
  Writer(const Plan& plan, const Places& places, void* piece, FileInParts* file, const Log& log)
      : plan_(plan), places_(places), piece_(piece), file_(file), log_(log) {}
  Status beginWrite(uint64_t, void** piece) override {
    *piece = piece_;
    return kOk;
  }
  Status endWrite(const BufferRef& to, uint64_t offset_bytes, uint64_t bytes) override {
    const uint64_t at = places_.first + segmentOffset(plan_, to.segment) + to.offset_bytes;
    return file_->write(at + offset_bytes, piece_, bytes, log_);
  }

 private:
  const Plan& plan_;
  const Places& places_;
  void* const piece_;
  FileInParts* const file_;
  const Log& log_;
};

Status borrowed(const BorrowedBytes& memory, uint64_t bytes, const Log& log) {
  return memory.data() != nullptr
             ? Status(kOk)
             : log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                        "the system refused %llu bytes to prepare weights with: close other "
                        "programs",
                        static_cast<unsigned long long>(bytes));
}

}  // namespace

Status hashLayout(const Plan& plan, const oriel_allocator& allocator, const Log& log,
                  uint64_t* hash) {
  constexpr uint32_t kCols = 256;
  constexpr uint32_t kMostTypes = 256;
  StreamHash layout(0);
  const auto add = [&](uint64_t value) { layout.add(&value, sizeof(value)); };
  const auto addPlace = [&](const BufferRef& place) {
    add(place.segment);
    add(place.offset_bytes);
    add(place.size_bytes);
  };
  for (uint32_t s = 0; s < plan.weight_segments; ++s) {
    add(plan.weight_segment_bytes[s]);
  }
  addPlace(plan.codebooks);
  for (uint32_t i = 0; i < plan.n_uploads; ++i) {
    const Upload& item = plan.uploads[i];
    for (const uint64_t value :
         {item.tensor_offset, uint64_t{item.tensor_type}, uint64_t{item.source_row},
          uint64_t{item.rows}, uint64_t{item.cols}, static_cast<uint64_t>(item.type),
          uint64_t{item.file}, uint64_t{item.is_vector}, uint64_t{item.transposed},
          uint64_t{item.slice_row}, uint64_t{item.stack_step}}) {
      add(value);
    }
    addPlace(item.slice);
  }
  Workspace workspace(nullptr, 0, &allocator);
  const uint64_t most = uint64_t{kGroupRows} * kCols * sizeof(float) * 2;
  const BorrowedBytes source(&workspace, most);
  const BorrowedBytes packed(&workspace, most);
  ORIEL_TRY(borrowed(source, most, log));
  ORIEL_TRY(borrowed(packed, most, log));
  for (uint32_t file_type = 0; file_type < kMostTypes; ++file_type) {
    WeightType type = WeightType::kF32;
    if (!weightTypeOf(file_type, &type)) {
      continue;
    }
    uint8_t* const rows = source.as<uint8_t>();
    const uint64_t bytes = kGroupRows * fileRowBytes(file_type, kCols);
    uint32_t state = file_type;
    for (uint64_t i = 0; i < bytes; ++i) {
      state = state * 1664525u + 1013904223u;
      rows[i] = static_cast<uint8_t>(state >> 24);
    }
    std::memset(packed.data(), 0, static_cast<size_t>(most));
    repackRows(type, rows, kGroupRows, kCols, 0, packed.as<uint32_t>());
    layout.add(packed.data(), weightGeometry(type, kCols).groupBytes());
  }
  *hash = layout.finish();
  return kOk;
}

void preparedPath(const char* folder, const PreparedId& id, char* path) {
  std::snprintf(path, kPreparedPathBytes, "%s/%016" PRIx64 "-%016" PRIx64 "%s", folder, id.model,
                id.layout, kPreparedEnd);
}

Status writePrepared(const char* folder, const char* path, const PreparedId& id,
                     uint64_t most_bytes, const WeightFiles& files, const Plan& plan,
                     const LoadProgress& progress, const LoadRoom& room, const Log& log,
                     uint64_t* hash, Adapters* adapters) {
  const Places places(plan);
  if (places.bytes() > most_bytes) {
    return log.fail(
        ORIEL_ERROR_IO,
        "the prepared weights take %llu bytes, and \"prepared_bytes\" is %llu: raise it",
        static_cast<unsigned long long>(places.bytes()),
        static_cast<unsigned long long>(most_bytes));
  }
  removeOldest(folder, kPreparedEnd, most_bytes - places.bytes());
  Workspace workspace(nullptr, 0, &room.allocator);
  const uint64_t piece_bytes = std::max<uint64_t>(plan.upload.size_bytes / 2, kBlockBytes);
  const uint64_t table_bytes = uint64_t{places.n_blocks} * sizeof(uint64_t);
  const BorrowedBytes piece(&workspace, piece_bytes);
  const BorrowedBytes table(&workspace, table_bytes);
  ORIEL_TRY(borrowed(piece, piece_bytes, log));
  ORIEL_TRY(borrowed(table, table_bytes, log));

  FileInParts file;
  ORIEL_TRY(file.create(path, places.bytes(), log));
  Writer writer(plan, places, piece.data(), &file, log);
  ORIEL_TRY(loadWeights(files, plan, progress, room, log, &writer, hash, true, adapters));
  uint64_t* const hashes = table.as<uint64_t>();
  for (uint32_t block = 0; block < places.n_blocks; ++block) {
    const uint64_t bytes = places.blockBytes(block);
    ORIEL_TRY(file.read(places.first + block * kBlockBytes, piece.data(), bytes, log));
    hashes[block] = hashOfBlock(piece.data(), bytes);
    ORIEL_TRY(progress.tell());
  }
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.model = id.model;
  header.layout = id.layout;
  header.model_hash = *hash;
  for (uint32_t i = 0; adapters != nullptr && i < adapters->count; ++i) {
    header.adapter_hashes[i] = adapters->list[i].hash;
  }
  header.file_bytes = places.bytes();
  header.table_hash = hashOfBlock(hashes, table_bytes);
  header.header_hash = hashOf(header);
  ORIEL_TRY(file.write(sizeof(Header), hashes, table_bytes, log));
  ORIEL_TRY(file.write(0, &header, sizeof(header), log));
  return file.finish(log);
}

// ---- PreparedText ---------------------------------------------------------------------------------

namespace {

struct TextHeader {
  char magic[8];
  uint64_t model;
  uint64_t layout;
  struct Block {
    uint64_t bytes;  ///< 0: none
    uint64_t hash;
  } blocks[PreparedText::kBlocks];
  uint64_t header_hash;  ///< of all fields before it
};
static_assert(sizeof(TextHeader) % Arena::kAlignment == 0, "blocks are aligned as in an arena");

uint64_t hashOf(const TextHeader& header) {
  return hashBytes(&header, offsetof(TextHeader, header_hash));
}

}  // namespace

Status writePreparedText(const char* folder, const PreparedId& id, uint64_t most_bytes,
                         const BuiltText& text, const Log& log) {
  char path[kPreparedPathBytes];
  preparedPath(folder, id, path);
  // No file is removed for tables: a model whose weights fill the folder would write both at every load.
  const uint64_t file_bytes = sizeof(TextHeader) + text.tokenizer_bytes + text.trie_bytes;
  if (bytesOfFiles(folder, kPreparedEnd) + file_bytes > most_bytes) {
    return kOk;
  }
  FileInParts file;
  ORIEL_TRY(file.create(path, file_bytes, log));
  TextHeader header = {};
  uint64_t at = sizeof(header);
  // `facts`: the object without addresses; its tables follow the object.
  const auto write = [&](const void* object, const void* facts, uint64_t facts_bytes,
                         uint64_t bytes, TextHeader::Block* block) -> Status {
    const auto* const tables = static_cast<const uint8_t*>(object) + facts_bytes;
    const uint64_t table_bytes = bytes - facts_bytes;
    StreamHash hash(bytes);
    hash.add(facts, facts_bytes);
    hash.add(tables, table_bytes);
    *block = {bytes, hash.finish()};
    ORIEL_TRY(file.write(at, facts, facts_bytes, log));
    ORIEL_TRY(file.write(at + facts_bytes, tables, table_bytes, log));
    at += bytes;
    return kOk;
  };
  const Tokenizer tokenizer = text.tokenizer.withoutTables();
  ORIEL_TRY(write(&text.tokenizer, &tokenizer, sizeof(tokenizer), text.tokenizer_bytes,
                  &header.blocks[0]));
  if (text.trie != nullptr) {
    const TokenTrie trie = text.trie->withoutTables();
    ORIEL_TRY(write(text.trie, &trie, sizeof(trie), text.trie_bytes, &header.blocks[1]));
  }
  std::memcpy(header.magic, kTextMagic, sizeof(kTextMagic));
  header.model = id.model;
  header.layout = id.layout;
  header.header_hash = hashOf(header);
  ORIEL_TRY(file.write(0, &header, sizeof(header), log));
  return file.finish(log);
}

bool PreparedText::open(const char* folder, const PreparedId& id, bool with_trie) {
  char path[kPreparedPathBytes];
  preparedPath(folder, id, path);
  if (!file_.open(path)) {
    return false;
  }
  TextHeader header = {};
  bool fits = file_.bytes() >= sizeof(header);
  if (fits) {
    std::memcpy(&header, file_.data(), sizeof(header));
    fits = std::memcmp(header.magic, kTextMagic, sizeof(kTextMagic)) == 0 &&
           header.model == id.model && header.layout == id.layout &&
           header.header_hash == hashOf(header) && header.blocks[0].bytes != 0 &&
           file_.bytes() == sizeof(header) + header.blocks[0].bytes + header.blocks[1].bytes &&
           (header.blocks[1].bytes != 0 || !with_trie);
  }
  for (uint32_t i = 0; fits && i < (with_trie ? kBlocks : 1); ++i) {
    const TokenizerBlock kept = i == 0 ? tokenizer() : trie();
    fits = header.blocks[i].hash == hashOfBlock(kept.data, kept.bytes);
  }
  if (!fits) {
    file_.close();
  }
  return fits;
}

TokenizerBlock PreparedText::block(uint32_t i, uint64_t offset) const {
  if (!file_.isOpen()) {
    return {};
  }
  TextHeader header;
  std::memcpy(&header, file_.data(), sizeof(header));
  return {file_.data() + sizeof(header) + offset, header.blocks[i].bytes};
}

// ---- PreparedWeights ------------------------------------------------------------------------------

bool PreparedWeights::open(const char* path, const PreparedId& id, const Plan& plan) {
  const Places places(plan);
  if (!file_.open(path) || file_.bytes() != places.bytes()) {
    return false;
  }
  Header header;
  std::memcpy(&header, file_.data(), sizeof(header));
  const uint64_t table_bytes = uint64_t{places.n_blocks} * sizeof(uint64_t);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.model != id.model ||
      header.layout != id.layout || header.file_bytes != file_.bytes() ||
      header.header_hash != hashOf(header) ||
      header.table_hash != hashOfBlock(file_.data() + sizeof(Header), table_bytes)) {
    return false;
  }
  blocks_ = file_.data() + places.first;
  path_ = path;
  plan_ = &plan;
  n_blocks_ = places.n_blocks;
  return true;
}

const uint8_t* PreparedWeights::segment(uint32_t s) const {
  return blocks_ + segmentOffset(*plan_, s);
}

uint64_t PreparedWeights::modelHash() const {
  Header header;
  std::memcpy(&header, file_.data(), sizeof(header));
  return header.model_hash;
}

void PreparedWeights::takeAdapterHashes(Adapters* adapters) const {
  Header header;
  std::memcpy(&header, file_.data(), sizeof(header));
  for (uint32_t i = 0; adapters != nullptr && i < adapters->count; ++i) {
    adapters->list[i].hash = header.adapter_hashes[i];
  }
}

void PreparedWeights::checkBlock(uint32_t block) {
  uint64_t expected = 0;
  std::memcpy(&expected, file_.data() + sizeof(Header) + uint64_t{block} * sizeof(expected),
              sizeof(expected));
  const Places places(*plan_);
  if (hashOfBlock(blocks_ + block * kBlockBytes, places.blockBytes(block)) != expected) {
    differs_.store(true, std::memory_order_relaxed);
  }
}

Status PreparedWeights::endCheck(const Log& log) {
  if (differs_.load(std::memory_order_relaxed)) {
    removeFile(path_);
    return log.fail(
        ORIEL_ERROR_IO,
        "the prepared weights %.600s were changed and are removed: load the model again", path_);
  }
  checked_.store(true, std::memory_order_release);
  return kOk;
}

}  // namespace oriel_internal
