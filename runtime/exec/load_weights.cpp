#include "exec/load_weights.h"

#include <algorithm>

#include "plan/weight_layout.h"

namespace oriel {
namespace {

// Sends `rows` rows of `row_bytes` each, as many at a time as half the upload ring holds.
// fill(first_row, n_rows, piece) writes them.
template <typename Fill>
Status sendRows(Executor* executor, const BufferRef& slice, uint64_t offset_bytes, uint64_t row_bytes,
                uint32_t rows, uint64_t half_bytes, const Fill& fill) {
  const uint32_t most = static_cast<uint32_t>(std::min<uint64_t>(half_bytes / row_bytes, rows));
  for (uint32_t row = 0; row < rows; row += most) {
    const uint32_t n = std::min(most, rows - row);
    void* piece = nullptr;
    ORIEL_TRY(executor->beginWrite(n * row_bytes, &piece));
    fill(row, n, piece);
    ORIEL_TRY(executor->endWrite(slice, offset_bytes + row * row_bytes, n * row_bytes));
  }
  return kOk;
}

}  // namespace

Status loadWeights(const GgufFile& file, const ModelDesc& model, const Plan& plan,
                   const LoadProgress& progress, const Log& log, Executor* executor) {
  const uint64_t half_bytes = plan.upload.size_bytes / 2;
  uint64_t total = 0;
  for (uint32_t i = 0; i < plan.n_uploads; ++i) {
    const Upload& item = plan.uploads[i];
    total += weightGeometry(item.type, item.cols).sliceBytes(item.rows);
  }
  uint64_t done = 0;
  for (uint32_t i = 0; i < plan.n_uploads; ++i) {
    const Upload& item = plan.uploads[i];
    const GgufTensor tensor = findTensor(file, model, item.role, item.layer);
    const uint64_t file_row_bytes = fileRowBytes(tensor.type, item.cols);
    const uint8_t* source = tensor.data + item.source_row * file_row_bytes;
    const WeightGeometry geometry = weightGeometry(item.type, item.cols);

    const uint64_t row_bytes = 4ull * geometry.words_per_row;
    ORIEL_TRY(sendRows(executor, item.slice, item.slice_row * row_bytes, row_bytes, item.rows,
                       half_bytes, [&](uint32_t row, uint32_t n, void* piece) {
                         repackQuants(tensor.type, item.type, source + row * file_row_bytes, n,
                                      item.cols, static_cast<uint32_t*>(piece));
                       }));
    if (geometry.blocks_per_row != 0) {
      const uint64_t scale_row_bytes = 2ull * geometry.blocks_per_row;
      ORIEL_TRY(sendRows(executor, item.slice,
                         4ull * item.scales_word + item.slice_row * scale_row_bytes,
                         scale_row_bytes, item.rows, half_bytes,
                         [&](uint32_t row, uint32_t n, void* piece) {
                           repackScales(tensor.type, source + row * file_row_bytes, n, item.cols,
                                        static_cast<uint16_t*>(piece));
                         }));
    }
    done += geometry.sliceBytes(item.rows);
    if (progress.callback != nullptr && progress.callback(done, total, progress.user) != 0) {
      return log.fail(ORIEL_ERROR_CANCELLED, "loading was stopped by the app");
    }
  }
  return kOk;
}

}  // namespace oriel
