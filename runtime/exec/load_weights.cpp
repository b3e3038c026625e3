#include "exec/load_weights.h"

#include <algorithm>
#include <cstring>

#include "base/arena.h"
#include "base/half.h"
#include "base/hash.h"
#include "exec/host_executor.h"
#include "plan/codebooks.h"
#include "plan/repack.h"
#include "plan/weight_placement.h"

namespace oriel_internal {
namespace {

/// Unit of reading: stays in a processor's L2 cache until it has been hashed and repacked.
constexpr uint64_t kReadBytes = 256 << 10;

/// Interval of hashed rows in tensors that may stay in the file, from the first row on. It also applies if they do not
/// stay, because snapshots do not depend on the place of weights.
constexpr uint32_t kHashedRowStep = 1024;

bool sameSlice(const BufferRef& a, const BufferRef& b) {
  return a.segment == b.segment && a.offset_bytes == b.offset_bytes;
}

/// A hash of tensors in any order: each contributes with its file offset.
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

/// Calls visit(const Upload&) for every tensor that stays in the file, as if all its rows were uploaded.
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
      if (part.rows == 0) {
        continue;
      }
      item.tensor_offset = part.tensor_offset;
      item.tensor_type = part.tensor_type;
      item.rows = part.rows * plan.expert_layers[layer].count;
      item.cols = part.cols;
      ORIEL_TRY(visit(item));
    }
  }
  return kOk;
}

// The end of the uploads to the same slice as `slice`.
const Upload* endOfSlice(const Plan& plan, const Upload* slice) {
  const Upload* next = slice + 1;
  while (next != plan.uploads + plan.n_uploads && sameSlice(next->slice, slice->slice)) {
    ++next;
  }
  return next;
}

class Loader {
 public:
  Loader(const WeightFiles& files, const Plan& plan, const LoadProgress& progress, const Log& log,
         Executor* executor, bool hashes, bool tells_reads)
      : files_(files),
        plan_(plan),
        progress_(progress),
        log_(log),
        executor_(executor),
        hashes_(hashes),
        tells_reads_(tells_reads),
        end_(plan.uploads + plan.n_uploads) {}

  /// Size of run()'s room, out of `given` available bytes.
  uint64_t roomBytes(uint64_t given) const {
    uint64_t bytes = std::min(kReadBytes, given);
    for (const Upload* item = plan_.uploads; item != end_; ++item) {
      const uint64_t row_bytes = fileRowBytes(item->tensor_type, item->cols);
      bytes = std::max(bytes, item->transposed ? row_bytes * item->rows : row_bytes);
    }
    (void)forEachOnFile(plan_, [&](const Upload& item) {
      bytes = std::max(bytes, fileRowBytes(item.tensor_type, item.cols));
      return kOk;
    });
    return bytes;
  }

  /// Size of run()'s room for transposing matrices.
  uint64_t turningBytes() const {
    uint64_t bytes = 0;
    for (const Upload* item = plan_.uploads; item != end_; ++item) {
      bytes = std::max(bytes, item->transposed ? Turning(*item).bytes() : 0);
    }
    return bytes;
  }

  Status run(void* room, uint64_t room_bytes, void* turning) {
    room_ = room;
    room_bytes_ = room_bytes;
    turning_ = static_cast<uint8_t*>(turning);
    progress_.done = 0;
    progress_.total = std::max<uint64_t>(uploadBytes(plan_), 1);
    const Upload* next = nullptr;
    if (plan_.codebooks.size_bytes != 0) {
      ORIEL_TRY(sendCodebooks());
    }
    for (const Upload* slice = plan_.uploads; slice != end_; slice = next) {
      next = endOfSlice(plan_, slice);
      ORIEL_TRY(slice->is_vector         ? sendVector(*slice)
                : slice->stack_step != 0 ? sendStack(*slice)
                                         : sendMatrix(slice, next));
    }
    return hashes_ ? forEachOnFile(plan_, [&](const Upload& item) { return hashOnFile(item); })
                   : kOk;
  }

  uint64_t hash() const { return tensors_.finish(); }
  uint64_t adapterHash(uint32_t adapter) const { return adapters_[adapter].finish(); }

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

  // The uploads of one slice, as many whole groups at a time as fit half the upload ring.
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

  // Matrix by matrix.
  Status sendStack(const Upload& item) {
    const uint32_t rows = item.transposed ? item.cols : item.rows;
    const WeightGeometry geometry =
        weightGeometry(item.type, item.transposed ? item.rows : item.cols);
    const uint64_t matrix_bytes = geometry.sliceBytes(rows);
    const uint32_t count = static_cast<uint32_t>(item.slice.size_bytes / matrix_bytes);
    Upload matrix = item;
    for (uint32_t i = 0; i < count; ++i, matrix.source_row += item.stack_step) {
      void* piece = nullptr;
      ORIEL_TRY(executor_->beginWrite(matrix_bytes, &piece));
      uint32_t* const words = static_cast<uint32_t*>(piece);
      ORIEL_TRY(item.transposed ? turn(matrix, words) : fill(matrix, 0, rows, words));
      const uint32_t end = static_cast<uint32_t>(ceilDiv(rows, kGroupRows)) * kGroupRows;
      clearRows(item.type, end - rows, item.transposed ? item.rows : item.cols, rows, words);
      ORIEL_TRY(endWrite(item.slice, i * matrix_bytes, matrix_bytes));
    }
    return kOk;
  }

  // Memory for transposing: packed rows of a matrix, one unit of all rows as floats, and one output row.
  struct Turning {
    explicit Turning(const Upload& item) {
      (void)weightTypeOf(item.tensor_type, &type);
      geometry = weightGeometry(type, item.cols);
      packed_bytes = alignUp(geometry.sliceBytes(item.rows), sizeof(float));
      values_bytes = uint64_t{sizeof(float)} * kUnit * item.rows;
      row_bytes = sizeof(float) * uint64_t{item.rows};
    }
    uint64_t bytes() const { return packed_bytes + values_bytes + row_bytes; }
    WeightType type = WeightType::kF32;
    WeightGeometry geometry;
    uint64_t packed_bytes = 0;
    uint64_t values_bytes = 0;
    uint64_t row_bytes = 0;
  };

  Status turn(const Upload& matrix, uint32_t* words) {
    const Turning turning(matrix);
    const uint8_t* data = nullptr;
    ORIEL_TRY(readRows(matrix, matrix.source_row, matrix.rows, &data));
    uint32_t* const packed = reinterpret_cast<uint32_t*>(turning_);
    float* const values = reinterpret_cast<float*>(turning_ + turning.packed_bytes);
    uint8_t* const row = turning_ + turning.packed_bytes + turning.values_bytes;
    repackRows(turning.type, data, matrix.rows, matrix.cols, 0, packed);
    const WeightRows unpacked = {turning.type, packed, turning.geometry.groupWords(),
                                 turning.geometry.sideWord()};
    for (uint32_t c = 0; c < matrix.cols; ++c) {
      ORIEL_TRY(c % kUnit == 0 ? askBetween() : kOk);
      for (uint32_t r = 0; c % kUnit == 0 && r < matrix.rows; ++r) {
        float unit[kUnit];
        unpacked.unpack(r, c / kUnit, unit);
        std::copy(unit, unit + kUnit, values + uint64_t{kUnit} * r);
      }
      for (uint32_t r = 0; r < matrix.rows; ++r) {
        putValue(matrix.type, values[uint64_t{kUnit} * r + c % kUnit], r, row);
      }
      repackRows(matrix.type, row, 1, matrix.rows, c, words);
    }
    return kOk;
  }

  // Value `i` of a file row of a type that transposedType() accepts.
  static void putValue(WeightType type, float value, uint32_t i, uint8_t* row) {
    if (type == WeightType::kF32) {
      std::memcpy(row + sizeof(float) * i, &value, sizeof(value));
      return;
    }
    const uint16_t bits = type == WeightType::kF16
                              ? floatToHalf(value)
                              : static_cast<uint16_t>(floatToBits(value) >> 16);
    std::memcpy(row + sizeof(bits) * i, &bits, sizeof(bits));
  }

  // The item's part of the slice's rows first .. last - 1.
  Status fill(const Upload& item, uint32_t first, uint32_t last, uint32_t* words) {
    const uint32_t to = std::min(last, item.slice_row + item.rows);
    const uint64_t most = room_bytes_ / fileRowBytes(item.tensor_type, item.cols);
    uint32_t next = 0;
    for (uint32_t row = std::max(first, item.slice_row); row < to; row = next) {
      next = static_cast<uint32_t>(std::min<uint64_t>(to, row + most));
      if (next < to && next - row > kGroupRows) {
        next -= (next - first) % kGroupRows;  // the rest of a group is faster in one piece
      }
      const uint8_t* data = nullptr;
      ORIEL_TRY(readRows(item, item.source_row + (row - item.slice_row), next - row, &data));
      repackRows(item.type, data, next - row, item.cols, row - first, words);
    }
    return kOk;
  }

  Status readRows(const Upload& item, uint32_t row, uint32_t rows, const uint8_t** data) {
    ORIEL_TRY(askBetween());
    const uint64_t row_bytes = fileRowBytes(item.tensor_type, item.cols);
    ORIEL_TRY(files_.of[item.file]->read(item.tensor_offset + row * row_bytes, rows * row_bytes,
                                         room_, log_, data));
    if (item.file >= kAdapterFile) {
      adapters_[item.file - kAdapterFile].add(item, row, *data, rows * row_bytes);
    }
    if (!hashes_ || item.file != 0) {  // snapshots do not depend on the draft model
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

  Status askBetween() const { return tells_reads_ ? progress_.tell() : kOk; }

  Status endWrite(const BufferRef& slice, uint64_t offset_bytes, uint64_t bytes) {
    ORIEL_TRY(executor_->endWrite(slice, offset_bytes, bytes));
    progress_.done += bytes;
    return progress_.tell();
  }

  const WeightFiles files_;
  const Plan& plan_;
  LoadProgress progress_;
  const Log& log_;
  Executor* executor_;
  const bool hashes_;
  const bool tells_reads_;
  const Upload* end_;
  TensorHashes tensors_;
  TensorHashes adapters_[kMaxAdapters];
  void* room_ = nullptr;
  uint8_t* turning_ = nullptr;
  uint64_t room_bytes_ = 0;
};

}  // namespace

uint64_t uploadBytes(const Plan& plan) {
  uint64_t bytes = plan.codebooks.size_bytes;
  const Upload* const end = plan.uploads + plan.n_uploads;
  for (const Upload* slice = plan.uploads; slice != end; slice = endOfSlice(plan, slice)) {
    bytes += slice->slice.size_bytes;
  }
  return bytes;
}

Status loadWeights(const WeightFiles& files, const Plan& plan, const LoadProgress& progress,
                   const LoadRoom& room, const Log& log, Executor* executor, uint64_t* hash,
                   bool tells_reads, Adapters* adapters) {
  Loader loader(files, plan, progress, log, executor, hash != nullptr, tells_reads);
  const uint64_t bytes = loader.roomBytes(room.bytes);
  Workspace memory(nullptr, 0, &room.allocator);
  const BorrowedBytes borrowed(&memory, files.inMemory() ? 0 : bytes);
  if (!files.inMemory() && borrowed.data() == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes to read weights with: close other programs",
                    static_cast<unsigned long long>(bytes));
  }
  const uint64_t turning_bytes = loader.turningBytes();
  const BorrowedBytes turning(&memory, turning_bytes);
  if (turning_bytes != 0 && turning.data() == nullptr) {
    return log.fail(ORIEL_ERROR_OUT_OF_MEMORY,
                    "the system refused %llu bytes to turn weights in: close other programs",
                    static_cast<unsigned long long>(turning_bytes));
  }
  ORIEL_TRY(loader.run(borrowed.data(), bytes, turning.data()));
  for (uint32_t i = 0; adapters != nullptr && i < adapters->count; ++i) {
    const uint64_t tensors = loader.adapterHash(i);
    adapters->list[i].hash = hashBytes(&tensors, sizeof(tensors), adapters->list[i].hash);
  }
  if (hash != nullptr) {
    const uint64_t tensors = loader.hash();
    *hash = hashBytes(&tensors, sizeof(tensors), *hash);
  }
  return kOk;
}

}  // namespace oriel_internal
