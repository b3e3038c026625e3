// Loads weights: streams a file and repacks it, or maps a prepared file.
#pragma once

#include <algorithm>
#include <atomic>
#include <iterator>

#include "exec/executor.h"
#include "gguf/gguf.h"
#include "grammar/machine.h"
#include "model/adapters.h"
#include "os/os.h"
#include "text/tokenizer.h"

namespace oriel_internal {

// Streams a file's weights to an executor and repacks them on the way.

/// The files of a plan's weights, by GgufTensor::file.
struct WeightFiles {
  WeightFiles(const GgufFile& model,
              const GgufFile* draft_model = nullptr)  // NOLINT: implicit on purpose
      : of{&model, draft_model != nullptr ? draft_model : &model} {}
  const GgufFile* of[kAdapterFile + kMaxAdapters] = {};
  bool inMemory() const {
    return std::all_of(std::begin(of), std::end(of),
                       [](const GgufFile* file) { return file == nullptr || file->inMemory(); });
  }
};

/// Working memory for reading, for the duration of the call. A file in memory needs room only to transpose matrices.
struct LoadRoom {
  const oriel_allocator& allocator;
  uint64_t bytes = 256 << 10;  ///< limit, or one row of a matrix if that is larger
};

/// Bytes that loadWeights() uploads.
uint64_t uploadBytes(const Plan& plan);

/// Carries out plan.uploads, reading `files` piece by piece.
///
/// - `progress` runs after every uploaded piece and, if `tells_reads`, also before a read, with the previous values.
/// - *hash, unless null, is extended by every byte read from the model's file. For tensors that may stay in the file,
///   it is extended by a sample of their rows, read or not. The order and size of pieces do not change it.
/// - The hash of each of `adapters` is extended by its tensors.
/// - ORIEL_ERROR_CANCELLED: the callback asked to stop. ORIEL_ERROR_IO: the file was truncated meanwhile.
Status loadWeights(const WeightFiles& files, const Plan& plan, const LoadProgress& progress,
                   const LoadRoom& room, const Log& log, Executor* executor, uint64_t* hash,
                   bool tells_reads = false, Adapters* adapters = nullptr);

// Prepared files: data that a load makes of a model's files, kept in a private folder. A load then takes milliseconds.
//
// Weights in the order of the kernels are mapped for reading. The pages count as file cache, so the system may take
// them back. The file: a header, a hash of each block, and the plan's weight segments, each at a multiple of 64 KiB.
// - Header, table of hashes and size are checked when the file is opened. A block is checked before the first step.
// - A file belongs to one state of the model's files (sizes, times, headers), one plan of its weights and one build. To
//   identify the build, it holds this build's repacking of a sample of every type.
//
// The tables of a tokenizer are a second file, which is checked and copied. It belongs to one state of the model's file
// and one build.

/// Names of prepared files end so.
constexpr char kPreparedEnd[] = ".oriel-prepared";
/// Longest path of a prepared file, with NUL.
constexpr size_t kPreparedPathBytes = 1024;
constexpr size_t kLongestPreparedDir = kPreparedPathBytes - 64;

struct PreparedId {
  uint64_t model = 0;
  uint64_t layout = 0;
};

/// Hash of the places and forms of the plan's weights and of this build's repacking. Borrows about 100 KiB.
Status hashLayout(const Plan& plan, const oriel_allocator& allocator, const Log& log,
                  uint64_t* hash);

/// `folder` has at most kLongestPreparedDir bytes.
void preparedPath(const char* folder, const PreparedId& id, char* path);

/// Writes the file: a load without an executor. `hash` and `adapters` as in loadWeights(). Files of the folder are
/// removed, oldest first, until they have at most `most_bytes` with the new one.
Status writePrepared(const char* folder, const char* path, const PreparedId& id,
                     uint64_t most_bytes, const WeightFiles& files, const Plan& plan,
                     const LoadProgress& progress, const LoadRoom& room, const Log& log,
                     uint64_t* hash, Adapters* adapters);

/// The file of a tokenizer's tables and, unless `trie` is null, those of its trie. Both have just been built: sizes are
/// those in their arena. Writes nothing if the folder would then have more than `most_bytes`.
struct BuiltText {
  const Tokenizer& tokenizer;
  uint64_t tokenizer_bytes;
  const TokenTrie* trie;
  uint64_t trie_bytes;
};
Status writePreparedText(const char* folder, const PreparedId& id, uint64_t most_bytes,
                         const BuiltText& text, const Log& log);

class PreparedText {
 public:
  static constexpr uint32_t kBlocks = 2;

  /// False if the file is missing or damaged, or lacks the wanted trie.
  bool open(const char* folder, const PreparedId& id, bool with_trie);
  // Without data before open(), or if the file holds none.
  TokenizerBlock tokenizer() const { return block(0, 0); }
  TokenizerBlock trie() const { return block(1, tokenizer().bytes); }

 private:
  TokenizerBlock block(uint32_t i, uint64_t offset) const;

  MappedFile file_;
};

class PreparedWeights {
 public:
  /// False if the file is missing, damaged or made for another plan. `path` and `plan` must outlive this object.
  bool open(const char* path, const PreparedId& id, const Plan& plan);
  bool isOpen() const { return blocks_ != nullptr; }
  const uint8_t* segment(uint32_t s) const;
  /// Equals the hash that loadWeights() computes.
  uint64_t modelHash() const;
  void takeAdapterHashes(Adapters* adapters) const;
  void forget() const { file_.forget(); }

  // Before the first step. Any thread may check any block.
  bool isChecked() const { return checked_.load(std::memory_order_acquire); }
  uint32_t blockCount() const { return n_blocks_; }
  void checkBlock(uint32_t block);
  /// After all blocks. ORIEL_ERROR_IO if one differs: the file is removed, so that the next load writes it again.
  Status endCheck(const Log& log);

 private:
  MappedFile file_;
  const uint8_t* blocks_ = nullptr;  ///< block 0 in the file
  const char* path_ = nullptr;
  const Plan* plan_ = nullptr;
  uint32_t n_blocks_ = 0;
  std::atomic<bool> differs_{false};
  std::atomic<bool> checked_{false};
};

}  // namespace oriel_internal
