#include "exec/load_weights.h"

#include <algorithm>

#include "plan/repack.h"
#include "plan/weight_layout.h"

namespace oriel {
namespace {

/// How far before a piece its pages are dropped again: the one an earlier piece ended in is among
/// them.
constexpr uint64_t kPageReach = 64 << 10;

bool sameSlice(const BufferRef& a, const BufferRef& b) {
  return a.segment == b.segment && a.offset_bytes == b.offset_bytes;
}

class Loader {
 public:
  Loader(const MappedFile* mapping, const GgufFile& file, const ModelDesc& model, const Plan& plan,
         const LoadProgress& progress, Executor* executor)
      : mapping_(mapping), file_(file), model_(model), plan_(plan), progress_(progress),
        executor_(executor), end_(plan.uploads + plan.n_uploads) {}

  Status run() {
    const Upload* next = nullptr;
    for (const Upload* slice = plan_.uploads; slice != end_; slice = next) {
      next = slice + 1;
      while (next != end_ && sameSlice(next->slice, slice->slice)) {
        ++next;
      }
      total_ += slice->slice.size_bytes;
    }
    for (const Upload* slice = plan_.uploads; slice != end_; slice = next) {
      next = slice + 1;
      while (next != end_ && sameSlice(next->slice, slice->slice)) {
        ++next;
      }
      ORIEL_TRY(slice->is_vector ? sendVector(*slice) : sendMatrix(slice, next));
    }
    return kOk;
  }

 private:
  Status sendVector(const Upload& item) {
    void* piece = nullptr;
    const uint64_t bytes = vectorBytes(item.cols);
    ORIEL_TRY(executor_->beginWrite(bytes, &piece));
    const GgufTensor tensor = findTensor(file_, model_, item.role, item.layer);
    repackVector(tensor.type, tensor.data, item.cols, static_cast<float*>(piece));
    return endWrite(item.slice, 0, bytes);
  }

  // The uploads of one slice, as many whole groups at a time as half the upload ring holds.
  Status sendMatrix(const Upload* begin, const Upload* end) {
    const WeightGeometry geometry = weightGeometry(begin->type, begin->cols);
    const uint64_t group_bytes = geometry.groupBytes();
    const uint32_t rows = end[-1].slice_row + end[-1].rows;
    const uint32_t groups = static_cast<uint32_t>(ceilDiv(rows, kGroupRows));
    const uint32_t most = static_cast<uint32_t>(plan_.upload.size_bytes / 2 / group_bytes);
    for (uint32_t group = 0; group < groups; group += most) {
      const uint32_t n = std::min(most, groups - group);
      void* piece = nullptr;
      ORIEL_TRY(executor_->beginWrite(n * group_bytes, &piece));
      const uint32_t first = group * kGroupRows;
      const uint32_t last = std::min((group + n) * kGroupRows, rows);
      uint32_t* words = static_cast<uint32_t*>(piece);
      for (const Upload* item = begin; item != end; ++item) {
        fill(*item, first, last, words);
      }
      clearRows(begin->type, (group + n) * kGroupRows - last, begin->cols, last - first, words);
      ORIEL_TRY(endWrite(begin->slice, group * group_bytes, n * group_bytes));
    }
    return kOk;
  }

  // The item's share of the slice's rows first .. last - 1.
  void fill(const Upload& item, uint32_t first, uint32_t last, uint32_t* words) {
    const uint32_t from = std::max(first, item.slice_row);
    const uint32_t to = std::min(last, item.slice_row + item.rows);
    if (from >= to) {
      return;
    }
    const GgufTensor tensor = findTensor(file_, model_, item.role, item.layer);
    const uint64_t row_bytes = fileRowBytes(tensor.type, item.cols);
    const uint32_t source_row = item.source_row + (from - item.slice_row);
    const uint64_t begin = source_row * row_bytes;
    repackRows(item.type, tensor.data + begin, to - from, item.cols, from - first, words);
    if (mapping_ != nullptr) {
      // Pages of a mapping count as the process's memory until they are given back.
      const uint64_t reach = std::min(begin, kPageReach);
      mapping_->dropPages(static_cast<uint64_t>(tensor.data - mapping_->data()) + begin - reach,
                          reach + (to - from) * row_bytes);
    }
  }

  Status endWrite(const BufferRef& slice, uint64_t offset_bytes, uint64_t bytes) {
    ORIEL_TRY(executor_->endWrite(slice, offset_bytes, bytes));
    done_ += bytes;
    if (progress_.callback != nullptr && progress_.callback(done_, total_, progress_.user) != 0) {
      return ORIEL_ERROR_CANCELLED;
    }
    return kOk;
  }

  const MappedFile* mapping_;
  const GgufFile& file_;
  const ModelDesc& model_;
  const Plan& plan_;
  const LoadProgress& progress_;
  Executor* executor_;
  const Upload* end_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
};

}  // namespace

Status loadWeights(const MappedFile* mapping, const GgufFile& file, const ModelDesc& model,
                   const Plan& plan, const LoadProgress& progress, Executor* executor) {
  return Loader(mapping, file, model, plan, progress, executor).run();
}

}  // namespace oriel
