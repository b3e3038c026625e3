#include "exec/load_weights.h"

#include <algorithm>

#include "base/hash.h"
#include "base/workspace.h"
#include "plan/codebooks.h"
#include "plan/repack.h"
#include "plan/weight_layout.h"

namespace oriel {
namespace {

/// Most that is read at a time: stays in a processor's second cache until it has been hashed and repacked.
constexpr uint64_t kReadBytes = 256 << 10;

/// Of tensors that may stay in the file every so many-th row is hashed, from the first on, also where they do not stay:
/// a snapshot does not ask where weights are.
constexpr uint32_t kHashedRowStep = 1024;

bool sameSlice(const BufferRef& a, const BufferRef& b) {
  return a.segment == b.segment && a.offset_bytes == b.offset_bytes;
}

/// A hash of tensors in any order: each counts by where it lies in the file.
class TensorHashes {
 public:
  void add(const Upload& item, uint32_t row, const uint8_t* data, uint64_t bytes) {
    if (row == 0) {
      sum_ += tensor_.finish();
      tensor_ = StreamHash(item.tensor_offset);
    }
    tensor_.add(data, bytes);
  }
  uint64_t finish() const { return sum_ + tensor_.finish(); }

 private:
  uint64_t sum_ = 0;
  StreamHash tensor_{0};
};

/// visit(const Upload&) for every tensor that stays in the file, as if all its rows were sent somewhere.
template <typename Visit>
Status forEachOnFile(const Plan& plan, const Visit& visit) {
  Upload item;
  item.may_stay = true;
  if (plan.file_rows.place.size_bytes != 0) {
    item.tensor_offset = plan.file_rows.tensor_offset;
    item.tensor_type = plan.file_rows.tensor_type;
    item.rows = plan.file_rows.rows;
    item.cols = plan.file_rows.cols;
    ORIEL_TRY(visit(item));
  }
  for (uint32_t layer = 0; layer < plan.n_expert_layers; ++layer) {
    for (const ExpertsOnFile::Part& part : plan.expert_layers[layer].parts) {
      item.tensor_offset = part.tensor_offset;
      item.tensor_type = part.tensor_type;
      item.rows = part.rows * plan.expert_layers[layer].count;
      item.cols = part.cols;
      ORIEL_TRY(visit(item));
    }
  }
  return kOk;
}

class Loader {
 public:
  Loader(const GgufFile& file, const Plan& plan, const LoadProgress& progress, const Log& log,
         Executor* executor, bool hashes)
      : file_(file),
        plan_(plan),
        progress_(progress),
        log_(log),
        executor_(executor),
        hashes_(hashes),
        end_(plan.uploads + plan.n_uploads) {}

  /// What run() takes as room, of so many bytes that there are.
  uint64_t roomBytes(uint64_t given) const {
    uint64_t bytes = std::min(kReadBytes, given);
    for (const Upload* item = plan_.uploads; item != end_; ++item) {
      bytes = std::max(bytes, fileRowBytes(item->tensor_type, item->cols));
    }
    (void)forEachOnFile(plan_, [&](const Upload& item) {
      bytes = std::max(bytes, fileRowBytes(item.tensor_type, item.cols));
      return kOk;
    });
    return bytes;
  }

  Status run(void* room, uint64_t room_bytes) {
    room_ = room;
    room_bytes_ = room_bytes;
    const Upload* next = nullptr;
    for (const Upload* slice = plan_.uploads; slice != end_; slice = next) {
      next = slice + 1;
      while (next != end_ && sameSlice(next->slice, slice->slice)) {
        ++next;
      }
      total_ += slice->slice.size_bytes;
    }
    total_ += plan_.codebooks.size_bytes;
    if (plan_.codebooks.size_bytes != 0) {
      ORIEL_TRY(sendCodebooks());
    }
    for (const Upload* slice = plan_.uploads; slice != end_; slice = next) {
      next = slice + 1;
      while (next != end_ && sameSlice(next->slice, slice->slice)) {
        ++next;
      }
      ORIEL_TRY(slice->is_vector ? sendVector(*slice) : sendMatrix(slice, next));
    }
    return hashes_ ? forEachOnFile(plan_, [&](const Upload& item) { return hashOnFile(item); })
                   : kOk;
  }

  uint64_t hash() const { return tensors_.finish(); }

 private:
  Status sendCodebooks() {
    void* piece = nullptr;
    ORIEL_TRY(executor_->beginWrite(kCodebookBytes, &piece));
    copyCodebooks(piece);
    return endWrite(plan_.codebooks, 0, kCodebookBytes);
  }

  Status sendVector(const Upload& item) {
    void* piece = nullptr;
    const uint64_t bytes = vectorBytes(item.cols);
    ORIEL_TRY(executor_->beginWrite(bytes, &piece));
    const uint8_t* data = nullptr;
    if (item.rows == 0) {
      std::fill_n(static_cast<float*>(piece), bytes / sizeof(float), 1.0f);
    } else {
      ORIEL_TRY(readRows(item, 0, 1, &data));
      repackVector(item.tensor_type, data, item.cols, static_cast<float*>(piece));
    }
    return endWrite(item.slice, 0, std::min<uint64_t>(bytes, item.slice.size_bytes));
  }

  // The uploads of one slice, as many whole groups at a time as half the upload ring holds.
  Status sendMatrix(const Upload* begin, const Upload* end) {
    const WeightGeometry geometry = weightGeometry(begin->type, begin->cols);
    const uint64_t group_bytes = geometry.groupBytes();
    const uint32_t rows = end[-1].slice_row + end[-1].rows;
    uint32_t filled = 0;
    for (const Upload* item = begin; item != end; ++item) {
      filled += item->rows;
    }
    const bool has_gaps = filled != rows;  // matrices of a stack end in rows of zeros
    const uint32_t groups = static_cast<uint32_t>(ceilDiv(rows, kGroupRows));
    const uint32_t most = static_cast<uint32_t>(plan_.upload.size_bytes / 2 / group_bytes);
    for (uint32_t group = 0; group < groups; group += most) {
      const uint32_t n = std::min(most, groups - group);
      void* piece = nullptr;
      ORIEL_TRY(executor_->beginWrite(n * group_bytes, &piece));
      const uint32_t first = group * kGroupRows;
      const uint32_t last = std::min((group + n) * kGroupRows, rows);
      uint32_t* words = static_cast<uint32_t*>(piece);
      if (has_gaps) {
        clearRows(begin->type, n * kGroupRows, begin->cols, 0, words);
      }
      for (const Upload* item = begin; item != end; ++item) {
        ORIEL_TRY(fill(*item, first, last, words));
      }
      clearRows(begin->type, (group + n) * kGroupRows - last, begin->cols, last - first, words);
      ORIEL_TRY(endWrite(begin->slice, group * group_bytes, n * group_bytes));
    }
    return kOk;
  }

  // The item's share of the slice's rows first .. last - 1.
  Status fill(const Upload& item, uint32_t first, uint32_t last, uint32_t* words) {
    const uint32_t to = std::min(last, item.slice_row + item.rows);
    const uint64_t most = room_bytes_ / fileRowBytes(item.tensor_type, item.cols);
    uint32_t next = 0;
    for (uint32_t row = std::max(first, item.slice_row); row < to; row = next) {
      next = static_cast<uint32_t>(std::min<uint64_t>(to, row + most));
      if (next < to && next - row > kGroupRows) {
        next -= (next - first) % kGroupRows;  // the rest of a group is quicker done at once
      }
      const uint8_t* data = nullptr;
      ORIEL_TRY(readRows(item, item.source_row + (row - item.slice_row), next - row, &data));
      repackRows(item.type, data, next - row, item.cols, row - first, words);
    }
    return kOk;
  }

  Status readRows(const Upload& item, uint32_t row, uint32_t rows, const uint8_t** data) {
    const uint64_t row_bytes = fileRowBytes(item.tensor_type, item.cols);
    ORIEL_TRY(
        file_.read(item.tensor_offset + row * row_bytes, rows * row_bytes, room_, log_, data));
    if (!hashes_) {
      return kOk;
    }
    if (!item.may_stay) {
      tensors_.add(item, row, *data, rows * row_bytes);
      return kOk;
    }
    for (uint64_t r = alignUp(row, kHashedRowStep); r < uint64_t{row} + rows; r += kHashedRowStep) {
      tensors_.add(item, static_cast<uint32_t>(r), *data + (r - row) * row_bytes, row_bytes);
    }
    return kOk;
  }

  Status hashOnFile(const Upload& item) {
    for (uint32_t row = 0; row < item.rows; row += kHashedRowStep) {
      const uint8_t* data = nullptr;
      ORIEL_TRY(readRows(item, row, 1, &data));
    }
    return kOk;
  }

  Status endWrite(const BufferRef& slice, uint64_t offset_bytes, uint64_t bytes) {
    ORIEL_TRY(executor_->endWrite(slice, offset_bytes, bytes));
    done_ += bytes;
    if (progress_.callback != nullptr && progress_.callback(done_, total_, progress_.user) != 0) {
      return ORIEL_ERROR_CANCELLED;
    }
    return kOk;
  }

  const GgufFile& file_;
  const Plan& plan_;
  const LoadProgress& progress_;
  const Log& log_;
  Executor* executor_;
  const bool hashes_;
  const Upload* end_;
  TensorHashes tensors_;
  void* room_ = nullptr;
  uint64_t room_bytes_ = 0;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

Status loadWeights(const GgufFile& file, const Plan& plan, const LoadProgress& progress,
                   const LoadRoom& room, const Log& log, Executor* executor, uint64_t* hash) {
  Loader loader(file, plan, progress, log, executor, hash != nullptr);
  const uint64_t bytes = loader.roomBytes(room.bytes);
  Workspace memory(nullptr, 0, &room.allocator);
  const BorrowedBytes borrowed(&memory, file.inMemory() ? 0 : bytes);
  if (!file.inMemory() && borrowed.data() == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes to read weights with: close other programs",
                    static_cast<unsigned long long>(bytes));
  }
  ORIEL_TRY(loader.run(borrowed.data(), bytes));
  if (hash != nullptr) {
    const uint64_t tensors = loader.hash();
    *hash = hashBytes(&tensors, sizeof(tensors), *hash);
  }
  return kOk;
}

}  // namespace oriel
