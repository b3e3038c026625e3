// Work per lane of a kernel, by device: as much as the device's compiler keeps in registers. A kernel that spills to
// memory is several times slower. scripts/gpu_compilers.sh checks the table's rows.
#pragma once

#include "vulkan/device_caps.h"

namespace oriel_internal {

/// How matmul divides its work (matmul.comp defines the numbers). More rows per lane reuse each
/// input more often; more tokens reuse each unpacked weight more often. Both leave fewer
/// workgroups and need registers.
struct MatmulShape {
  uint32_t lanes;
  uint32_t team_lanes;
  uint32_t rows;
  uint32_t tokens;
};

/// How attention divides its work: see shaders/attention.comp.
struct AttentionShape {
  uint32_t lanes;
  uint32_t lane_octets;  ///< at least
  /// Lanes that share a vector; twice as many for heads wider than kWideHead.
  uint32_t most_pieces;
  /// Upper limits per workgroup: heads of up to kNarrowHead values, of up to kWideHead, wider heads and latents.
  uint32_t queries[3];
  uint32_t widest_on_units;  ///< head for matrix units (attention_matrix.comp); 0: none
};
constexpr uint32_t kNarrowHead = 128;
constexpr uint32_t kWideHead = 256;

enum class MatmulKernel : uint8_t {
  kFloat,   ///< matmul.comp
  kDot,     ///< matmul_dot.comp: packed integer dot products
  kHalf,    ///< matmul.comp in half precision
  kMatrix,  ///< matmul_matrix.comp: matrix units
};
constexpr uint32_t kMatmulKernels = 4;
/// Best first; missing ones are kFloat.
struct KernelOrder {
  MatmulKernel kernels[kMatmulKernels];
};

struct DeviceShapes {
  uint32_t vendor_id;     ///< 0: any
  const char* name_part;  ///< of the device's name; "": any
  MatmulShape decode;     ///< one token, in float
  MatmulShape chunk;      ///< several tokens
  MatmulShape small;      ///< either, with a matrix of few rows (kSmallRows)
  /// Sums per lane, at most, by MatmulKernel: a candidate with more is not tried.
  uint32_t most_sums[kMatmulKernels];
  /// Kernels for chunks until a measurement finds the fastest: the first that the device has. Dot products count if the
  /// driver calls them accelerated.
  KernelOrder chunk_kernels;
  AttentionShape attention;

  uint32_t queries(uint32_t head_dim) const {
    return attention.queries[head_dim <= kNarrowHead ? 0 : head_dim <= kWideHead ? 1 : 2];
  }
};
/// A matrix with fewer rows is small.
constexpr uint32_t kSmallRows = 1024;

const DeviceShapes& shapesOf(const DeviceCaps& caps);

}  // namespace oriel_internal
