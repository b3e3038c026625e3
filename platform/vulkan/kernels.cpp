#include "vulkan/kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/checked.h"
#include "vulkan/device_caps.h"
#include "vulkan/shader_table.h"

namespace oriel_internal {
namespace {

/// Workgroup size of kernels that work on one value per lane; two to eight subgroups on most
/// devices.
constexpr uint32_t kLanes = 64;
/// Workgroup size on software devices of kernels with many barriers. Such a device switches subgroups at each
/// barrier, so that a small workgroup takes at most half the time.
constexpr uint32_t kSoftwareLanes = 8;
/// Workgroup size of kernels whose lanes each work on many values in turn.
constexpr uint32_t kTopBlocksLanes = 128;
/// Workgroup size of rms_norm.
constexpr uint32_t kNormLanes = 128;
/// Name suffixes of kernels.
constexpr const char* kSubgroups = "_subgroup";
constexpr const char* kShared = "_shared";
/// Workgroup size of routing kernels, which run a single workgroup: the most that every device allows.
constexpr uint32_t kRouteLanes = 128;
/// Workgroup size of gated_norm, whose rows may be long and few: the most that every device allows.
constexpr uint32_t kGatedNormLanes = 128;
/// Workgroups along one side of a grid that every device allows, rounded down.
constexpr uint32_t kMaxGridSide = 32768;
/// Tokens of a batch that share unpacked weights: with 8, a batch of 8 takes a seventh less time than with 4.
constexpr uint32_t kSoftwareBatch = 8;
/// Shared memory of a matmul_matrix with `rows` rows and tokens: a step's units and padding, as f16, and sums.
constexpr uint32_t matrixSharedBytes(uint32_t lanes, uint32_t rows) {
  return rows * 2 * (256 / lanes * kUnit + 8) + 4 * kMatrixSums * lanes / kMatrixLanes;
}
/// Largest tiles that divideMatrices() makes: see findMatrixShape().
static_assert(matrixSharedBytes(kMatrixLanes, 128 + 64) <= kMatrixSharedBytes, "small tiles");
static_assert(matrixSharedBytes(kLargeMatrixLanes, 256 + 16) <= kMatrixSharedBytes, "large tiles");
/// Workgroups that a GPU should have. A product that gives fewer takes smaller tiles.
constexpr uint32_t kEnoughTiles = 128;

/// Units that a workgroup of stage_input quantises, one per lane. Few, so that a GPU gets several groups.
constexpr uint32_t kSoftwareStagingLanes = 8;
constexpr uint32_t kGpuStagingLanes = 32;
/// Workgroup size of stage_half, which handles a token per workgroup.
constexpr uint32_t kHalvesLanes = 128;
/// Inputs are at most 2^(top + 1) in f16, so that 16 products with weights of at most 128 are in its range; matrix
/// units add up in float32.
constexpr uint32_t kHalvesTop = 3;
static_assert((2 << kHalvesTop) * 16 * 128 <= 65504, "weights_half.glsl's sums");
constexpr uint32_t kMatrixHalvesTop = 14;

static_assert(16 * kSpanUnits * kSpanPitch + 4 * 512 <= 16384,
              "a span and the partial sums of a product that makes its input");

/// Two halves of scores, or a workgroup's totals.
constexpr uint32_t attentionScratchWords(uint32_t lanes, uint32_t queries, uint32_t lane_octets) {
  return lanes * std::max(2 * 2 * queries, 8 * lane_octets);
}
constexpr uint32_t attentionSharedBytes(uint32_t lanes, uint32_t queries, uint32_t lane_octets) {
  return 4 * (attentionScratchWords(lanes, queries, lane_octets) + 2 * lanes * queries);
}
static_assert(attentionSharedBytes(128, 4, 2) <= 16384, "attention's scores and totals");
static_assert(attentionSharedBytes(8, 1, 8) <= 16384, "likewise");
/// attention_matrix.comp: slots at a time, and shared memory for `queries` of them with heads of `head_dim`.
constexpr uint32_t kMatrixSlots = 32;
constexpr uint32_t kMatrixSubgroups = 4;
constexpr uint32_t matrixAttentionBytes(uint32_t lanes, uint32_t queries, uint32_t head_dim) {
  return 2 * kMatrixSlots * 2 * (head_dim + 8) + queries * 2 * (kMatrixSlots + 8) +
         queries * 4 * (kMatrixSlots + 4 + 1) +
         lanes * 4;  // keys and values, weights, scores and corrections, sums
}
static_assert(matrixAttentionBytes(kMatrixLanes, 2 * kMatrixSlots, 128) <= kMatrixSharedBytes,
              "matrix units of 16 rows, heads of 128");
/// A latent and its key are longer than any head: minimum octets per lane, and maximum lanes that share them.
constexpr uint32_t kGpuLatentOctets = 2;
constexpr uint32_t kGpuLatentPieces = 40;
constexpr uint32_t kMostLatentOctets = (kMaxLatentDim + kMaxLatentRopeDim) / 8;
static_assert(kMostLatentOctets <= kGpuLatentOctets * kGpuLatentPieces, "two octets a lane");
/// Lanes that hold a CPU's vector: all of them.
constexpr uint32_t kSoftwareLatentPieces = 8;
static_assert(attentionSharedBytes(8, 1, 12) <= 16384, "likewise");
static_assert(kMostLatentOctets <= 12 * kSoftwareLatentPieces, "twelve octets a lane");

/// How state_scan divides its work: see shaders/state_scan.comp.
struct ScanShape {
  uint32_t lanes;
  uint32_t pieces;
  uint32_t rows;
  uint32_t tokens;
};
/// Few values per lane: the compiler takes too long with many.
constexpr ScanShape kSoftwareScan = {32, 4, 1, 8};
/// One token: as many lanes as possible, because reading and writing the state dominates.
constexpr ScanShape kGpuDecodeScan = {64, 8, 1, 1};
/// Tokens in sequence: fewer lanes take part in sums, and each does more work between them.
constexpr ScanShape kGpuChunkScan = {64, 4, 1, 8};
/// Lanes that fill a GPU. With more, each lane takes two rows, which halves the reads of keys and queries.
constexpr uint32_t kEnoughLanes = 16384;
/// For wider rows twice as many lanes share a row, and no lane holds two.
constexpr uint32_t kNarrowRow = 128;
/// Key values that are staged at a time, and the same number of query values.
constexpr uint32_t kScanStaged = 1024;

constexpr uint32_t scanSharedBytes(uint32_t key_dim, ScanShape shape) {
  const uint32_t rows = shape.lanes / shape.pieces * shape.rows;
  const uint32_t groups = key_dim / kUnit;
  return 4 * (2 * kScanStaged + shape.tokens * (rows + 2) + 2 * (2 * shape.rows + 1) * shape.lanes +
              rows * groups * (shape.pieces + 1) + 2);
}
static_assert(scanSharedBytes(kNarrowRow, {64, 4, 2, 8}) <= 16384, "state_scan's rows and tokens");
static_assert(scanSharedBytes(256, {64, 8, 1, 8}) <= 16384, "likewise");
static_assert(scanSharedBytes(256, kGpuDecodeScan) <= 16384, "likewise");

/// Inputs of a kernel choice in addition to the op.
struct Given {
  const Op* maker;  // of a product: the op whose work it does; or null
  uint32_t rows;    // most rows of the op
  bool apart;       // KernelRows
  const DeviceCaps& caps;
  const MatmulChoices& choices;
};

uint32_t workgroups(uint32_t items, uint32_t per_group) {
  return static_cast<uint32_t>(ceilDiv(items, per_group));
}

void divideRows(uint32_t rows, uint32_t tile_rows, Kernel* kernel) {
  const uint32_t row_groups = workgroups(rows, tile_rows);
  kernel->grid[1] = std::min(row_groups, kMaxGridSide);
  kernel->grid[2] = workgroups(row_groups, kernel->grid[1]);
}

MatmulShape matmulShape(uint32_t rows, bool many_tokens, const DeviceCaps& caps) {
  const DeviceShapes& shapes = shapesOf(caps);
  if (caps.isSoftware() && rows < kSmallRows) {
    return shapes.small;
  }
  return many_tokens ? shapes.chunk : shapes.decode;
}

/// Lanes of a workgroup for one vector on a discrete GPU, at most, and the units after each other that a team may have.
constexpr uint32_t kMostDecodeLanes = 512;
constexpr uint32_t kTeamUnits = 4;

// The longer a row, the more lanes share it, so that enough loads are in flight.
uint32_t decodeLanes(uint32_t units, const MatmulShape& shape, const DeviceCaps& caps) {
  const uint32_t most = caps.isDiscrete() ? std::min(kMostDecodeLanes, caps.most_lanes) : 0;
  uint32_t lanes = shape.lanes;
  while (2 * lanes <= most && units > kTeamUnits * lanes / shape.team_lanes) {
    lanes *= 2;
  }
  return lanes;
}

// Divides into tiles of at most the present or the chosen number of tokens. Returns the tokens per tile.
uint32_t divideTiles(uint32_t rows, uint32_t tokens, const MatmulShape& shape, Kernel* kernel) {
  uint32_t tile = 1;
  while (tile < shape.tokens && tile < tokens) {
    tile *= 2;
  }
  kernel->constants[0] = shape.lanes;
  kernel->constants[1] = shape.rows;
  kernel->constants[2] = tile;
  kernel->constants[3] = shape.team_lanes;
  kernel->grid[0] = workgroups(tokens, tile);
  divideRows(rows, shape.rows * shape.team_lanes, kernel);
  return tile;
}

// Makes each token of a batch come out as if it ran alone: the same teams and rows per lane. On software devices
// unpacked weights serve several tokens, because the compiler keeps their sums equal to a single token's. GPU compilers
// contract sums freely, so GPUs use the identical pipeline and read later tokens' weights from the cache.
void shapeApart(const DeviceCaps& caps, MatmulShape* shape) {
  shape->tokens = caps.isSoftware() ? kSoftwareBatch : 1;
}

void divideMatmul(const MatmulPush& push, const Given& given, const MatmulCandidate& candidate,
                  Kernel* kernel) {
  MatmulShape shape =
      candidate.lanes != 0
          ? MatmulShape{candidate.lanes, candidate.team_lanes, candidate.rows, candidate.tokens}
          : matmulShape(push.rows, given.rows > 1 && !given.apart, given.caps);
  if (given.apart) {
    shapeApart(given.caps, &shape);
  }
  if (candidate.lanes == 0 && (given.apart || given.rows == 1)) {
    shape.lanes = decodeLanes(push.units, shape, given.caps);
  }
  (void)divideTiles(push.rows, given.rows, shape, kernel);
}

// A tile belongs to one expert. It is as large as evenly spread routes would fill. Each expert may begin with a part of
// one more tile.
void divideExperts(const ExpertMatmulPush& push, const Given& given, Kernel* kernel) {
  const uint32_t routes = given.rows * push.n_used;
  const uint32_t of_expert = workgroups(routes, push.n_experts);
  MatmulShape shape = matmulShape(push.rows, of_expert > 1 && !given.apart, given.caps);
  if (given.apart) {
    shapeApart(given.caps, &shape);
  }
  const uint32_t tile = divideTiles(push.rows, of_expert, shape, kernel);
  const uint32_t experts = push.has_slots != 0 ? push.n_experts : push.count;
  kernel->grid[0] = tile == 1 ? routes : experts + workgroups(routes, tile) - 1;
}

// Tiles of the candidate's size, or fewer tokens if the op has fewer. Subgroups share a tile as squarely
// as possible, so that each loads few matrices for its products.
void divideMatrices(const MatmulPush& push, uint32_t tokens, const DeviceCaps& caps,
                    const MatmulCandidate& candidate, Kernel* kernel) {
  const MatrixShape& matrix = caps.matrix;
  uint32_t lanes = candidate.lanes;
  uint32_t rows = candidate.rows;
  uint32_t most_tokens = candidate.tokens;
  while (lanes > kMatrixLanes &&
         workgroups(push.rows, rows) * workgroups(tokens, most_tokens) < kEnoughTiles) {
    lanes /= 2;
    rows /= 2;
    most_tokens /= 2;
  }
  const uint32_t subgroups = lanes / caps.subgroup_size;
  uint32_t token_matrices = 1;
  while (token_matrices * matrix.n < std::min(tokens, most_tokens)) {
    token_matrices *= 2;
  }
  uint32_t across = 1;  // subgroups along the tokens
  while (4 * across * across <= subgroups && 2 * across <= token_matrices) {
    across *= 2;
  }
  const uint32_t down = subgroups / across;
  const uint32_t own_rows = std::max(1u, rows / matrix.m / down);
  const uint32_t own_tokens = token_matrices / across;
  const uint32_t constants[] = {lanes,    matrix.m,   matrix.n, matrix.k,
                                own_rows, own_tokens, down,     subgroups};
  static_assert(sizeof(constants) == sizeof(kernel->constants), "as matmul_matrix.comp has them");
  std::copy(constants, constants + kMaxSpecConstants, kernel->constants);
  kernel->subgroup_size = matrix.asks_for_size ? caps.subgroup_size : 0;
  kernel->full_subgroups = true;
  kernel->grid[0] = workgroups(tokens, token_matrices * matrix.n);
  divideRows(push.rows, down * own_rows * matrix.m, kernel);
}

// Octets of a key per lane.
uint32_t laneOctets(uint32_t head_dim, const AttentionShape& shape) {
  const uint32_t octets = workgroups(head_dim, 8);
  const uint32_t most_pieces = shape.most_pieces * (head_dim > kWideHead ? 2 : 1);
  return std::min(octets, std::max(shape.lane_octets, workgroups(octets, most_pieces)));
}

// The same for a latent and its key. A scale group spans whole lanes, or a lane spans whole groups.
uint32_t latentLaneOctets(uint32_t cols, const DeviceCaps& caps) {
  const uint32_t octets = workgroups(cols, 8);
  const uint32_t share = workgroups(octets, kSoftwareLatentPieces);
  const uint32_t wanted = caps.isSoftware()
                              ? std::max(shapesOf(caps).attention.lane_octets,
                                         static_cast<uint32_t>(alignUp(share, kKvGroup / 8)))
                              : kGpuLatentOctets;
  return std::min(octets, wanted);
}

void divideAttention(const AttentionPush& push, uint32_t lane_octets, const Given& given,
                     Kernel* kernel) {
  const uint32_t heads = push.n_heads / push.n_kv_heads;
  const uint32_t tokens = given.rows;
  const bool split = push.splits > 1;
  const bool apart = split || given.apart || tokens == 1;  // tiles of one token
  const DeviceShapes& shapes = shapesOf(given.caps);
  const uint32_t lanes = shapes.attention.lanes;
  const uint32_t queries = shapes.queries(push.head_dim);
  const uint32_t row = apart ? heads : heads * tokens;  // queries that may share a workgroup
  const uint32_t tiles = workgroups(row, queries);
  kernel->constants[0] = lanes;
  kernel->constants[1] = push.head_dim;
  kernel->constants[2] = split ? workgroups(row, tiles) : std::min(row, queries);
  kernel->constants[6] = apart ? 1 : 0;
  kernel->constants[3] = lane_octets;
  kernel->constants[4] = push.soft_cap != 0 ? 1 : 0;
  kernel->constants[7] = attentionScratchWords(lanes, kernel->constants[2], lane_octets);
  kernel->grid[0] = push.n_kv_heads;
  kernel->grid[1] = apart ? tiles * tokens : tiles;
  kernel->grid[2] = push.splits;
}

// With matrix units a subgroup takes as many queries as a matrix has rows. False if attention is not for them: prompts only,
// whose keys are whole matrices and whose scores are plain.
bool divideOnUnits(const Op& op, const Given& given, Kernel* kernel) {
  const AttentionPush& push = op.push.attention;
  const MatrixShape& matrix = given.caps.matrix;
  const bool plain = push.splits == 1 && push.soft_cap == 0 && push.alibi_heads == 0 &&
                     op.n_bindings <= kMoreScores;
  if (given.rows == 1 || given.apart || !plain ||
      !given.caps.has(VulkanFeature::kCooperativeMatrix) ||
      push.head_dim > shapesOf(given.caps).attention.widest_on_units ||
      push.head_dim % std::max({matrix.n, matrix.k, 8u}) != 0 ||
      (push.query_stride | push.out_stride) % 4 != 0 || matrix.m > given.caps.subgroup_size) {
    return false;
  }
  const uint32_t subgroups = std::min(kMatrixSubgroups, kMatrixLanes / given.caps.subgroup_size);
  const uint32_t queries = subgroups * matrix.m;
  const uint32_t constants[] = {
      subgroups * given.caps.subgroup_size, push.head_dim, matrix.m, matrix.n, matrix.k, subgroups};
  std::copy(std::begin(constants), std::end(constants), kernel->constants);
  kernel->subgroup_size = matrix.asks_for_size ? given.caps.subgroup_size : 0;
  kernel->full_subgroups = true;
  kernel->grid[0] = push.n_kv_heads;
  kernel->grid[1] = workgroups(given.rows * (push.n_heads / push.n_kv_heads), queries);
  return true;
}

// One lane per item of a token.
void divideItems(uint32_t items, uint32_t tokens, Kernel* kernel) {
  kernel->constants[0] = kLanes;
  kernel->grid[0] = workgroups(items, kLanes);
  kernel->grid[1] = tokens;
}

Status findShader(const char* name, const Log& log, uint32_t* shader) {
  for (uint32_t i = 0; i < kShaderCount; ++i) {
    if (std::strcmp(kShaders[i].name(), name) == 0) {
      *shader = i;
      return kOk;
    }
  }
  return log.fail(ORIEL_ERROR_UNSUPPORTED, "no kernel named %s in this build: use the CPU", name);
}

// Each divides an op's work and returns the suffix of the kernel's name.

const char* divideEmbed(const Op& op, const Given& given, Kernel* kernel) {
  divideItems(workgroups(op.push.embed.cols, kUnit), given.rows, kernel);
  return "";
}

const char* divideNorm(const Op& op, const Given& given, Kernel* kernel) {
  kernel->grid[0] = op.push.rms_norm.rows;
  kernel->grid[1] = given.rows;
  if (!given.caps.has(VulkanFeature::kSubgroup)) {
    return kShared;
  }
  // Subgroups with idle lanes hang at barriers on some drivers (llama.cpp#17389).
  kernel->full_subgroups = given.caps.full_subgroups && kNormLanes % given.caps.subgroup_size == 0;
  return kSubgroups;
}

const char* divideProduct(const Op& op, const Given& given, Kernel* kernel) {
  const MatmulCandidate& candidate = given.choices.candidateFor(op, given.apart ? 1 : given.rows);
  if (candidate.kernel == MatmulKernel::kMatrix) {
    divideMatrices(op.push.matmul, given.rows, given.caps, candidate, kernel);
  } else {
    divideMatmul(op.push.matmul, given, candidate, kernel);
  }
  constexpr struct {
    const char* suffix;
    Staging staging;
  } kKernels[kMatmulKernels] = {{"", Staging::kNone},
                                {"_dot", Staging::kIntegers},
                                {"_half", Staging::kHalves},
                                {"_matrix", Staging::kMatrixHalves}};
  const bool is_dot = candidate.kernel == MatmulKernel::kDot;
  if (is_dot || candidate.kernel == MatmulKernel::kFloat) {
    kernel->constants[5] =
        kLeastSpan;  // the array's type needs a length in kernels without it, too
  }
  if (given.maker != nullptr ||
      (is_dot && (given.apart || given.rows == 1) && stagesItself(op, given.caps))) {
    kernel->constants[4] = makeOf(given.maker);
    while (kernel->constants[5] < std::min(op.push.matmul.units, kSpanUnits)) {
      kernel->constants[5] *= 2;
    }
    return is_dot ? "_dot_made" : "_made";
  }
  const auto& kernel_of = kKernels[static_cast<uint32_t>(candidate.kernel)];
  kernel->staging = kernel_of.staging;
  return candidate.kernel == MatmulKernel::kFloat && given.caps.readsTexels() ? "_texel"
                                                                              : kernel_of.suffix;
}

const char* divideBias(const Op& op, const Given& given, Kernel* kernel) {
  divideItems(op.push.add_bias.cols, given.rows, kernel);
  kernel->grid[0] = std::min(kernel->grid[0], kMaxGridSide);
  return "";
}

const char* divideRopeAppend(const Op& op, const Given& given, Kernel* kernel) {
  const RopeAppendPush& push = op.push.rope_append;
  const uint32_t vectors = 2 * (push.n_heads + push.n_kv_heads);
  if (op.k_format == KvFormat::kF16 && op.v_format == KvFormat::kF16) {
    divideItems(vectors * (push.head_dim / 2), given.rows, kernel);
  } else {
    kernel->constants[0] = given.caps.isSoftware() ? kSoftwareLanes : kLanes;
    kernel->constants[1] = push.head_dim;
    kernel->grid[0] = vectors;
    kernel->grid[1] = given.rows;
  }
  kernel->constants[2] = op.n_bindings > kRopeNorms ? 1 : 0;
  return "";
}

const char* divideAttention(const Op& op, const Given& given, Kernel* kernel) {
  if (divideOnUnits(op, given, kernel)) {
    return "_matrix";
  }
  const AttentionShape& shape = shapesOf(given.caps).attention;
  divideAttention(op.push.attention, laneOctets(op.push.attention.head_dim, shape), given, kernel);
  kernel->constants[4] |= op.n_bindings > kMoreScores ? 2 : 0;
  kernel->constants[4] |= op.push.attention.alibi_heads != 0 ? 4 : 0;
  return given.caps.readsTexels() ? "_texel" : "";
}

const char* divideMerge(const Op& op, const Given& given, Kernel* kernel) {
  kernel->constants[0] = kLanes;
  kernel->grid[0] = op.push.attention_merge.n_heads;
  kernel->grid[1] = given.rows;
  return "";
}

// If there are more rows, the kernel loops in steps of the grid's height.
const char* divideActivation(const Op& op, const Given& given, Kernel* kernel) {
  const GatedActivationPush& push = op.push.gated_activation;
  divideItems(push.cols, std::min(given.rows * push.rows_per_token, kMaxGridSide), kernel);
  return "";
}

const char* divideConv(const Op& op, const Given& given, Kernel* kernel) {
  divideItems(op.push.short_conv.channels, given.rows, kernel);
  return "";
}

// A workgroup per token and head of queries, of keys or of values.
const char* divideStateInputs(const Op& op, const Given& given, Kernel* kernel) {
  const StateInputsPush& push = op.push.state_inputs;
  kernel->constants[0] = given.caps.isSoftware() ? kSoftwareLanes : kLanes;
  kernel->constants[1] = given.apart || given.rows == 1 ? 1 : 0;
  kernel->grid[0] = 2 * push.key_heads + push.heads;
  kernel->grid[1] = given.rows;
  return "";
}

const char* divideStateScan(const Op& op, const Given& given, Kernel* kernel) {
  const StateScanPush& push = op.push.state_scan;
  const bool one = given.apart || given.rows == 1;
  ScanShape shape = given.caps.isSoftware() ? kSoftwareScan : one ? kGpuDecodeScan : kGpuChunkScan;
  if (push.key_dim > kNarrowRow) {
    shape.pieces = 8;
  } else if (push.heads * push.value_dim * shape.pieces >= 2 * kEnoughLanes && !one) {
    shape.rows = 2;
  }
  const uint32_t key_dim = static_cast<uint32_t>(alignUp(push.key_dim, kUnit));
  // Decays by key are staged as well.
  const uint32_t staged = push.by_key != 0 ? kScanStaged * 2 / 3 : kScanStaged;
  shape.tokens = one ? 1 : std::min({shape.tokens, given.rows, staged / key_dim});
  const bool quads =
      (push.slot_words | push.in_stride | push.key_dim | push.by_key * push.value_dim) % 4 == 0;
  const uint32_t constants[] = {shape.lanes,
                                push.key_dim,
                                shape.pieces,
                                shape.rows,
                                shape.tokens,
                                push.format,
                                push.delta + push.by_key,
                                quads ? 1u : 0u};
  static_assert(sizeof(constants) == sizeof(kernel->constants), "as state_scan.comp has them");
  std::copy(constants, constants + kMaxSpecConstants, kernel->constants);
  kernel->grid[0] = workgroups(push.value_dim, shape.lanes / shape.pieces * shape.rows);
  kernel->grid[1] = push.heads;
  kernel->grid[2] = given.apart ? given.rows : 1;
  return "";
}

const char* divideGatedNorm(const Op& op, const Given& given, Kernel* kernel) {
  kernel->constants[0] = given.caps.isSoftware() ? kSoftwareLanes : kGatedNormLanes;
  kernel->grid[0] = op.push.gated_norm.rows;
  kernel->grid[1] = given.rows;
  return "";
}

// If there are more columns, lanes loop in steps of the grid's width.
const char* divideCap(const Op& op, const Given& given, Kernel* kernel) {
  divideItems(op.push.soft_cap.cols, given.rows, kernel);
  kernel->grid[0] = std::min(kernel->grid[0], kMaxGridSide);
  return "";
}

const char* divideTopBlocks(const Op& op, const Given& given, Kernel* kernel) {
  kernel->constants[0] = kTopBlocksLanes;
  kernel->grid[0] = workgroups(op.push.top.blocks, kTopBlocksLanes);
  kernel->grid[1] = op.push.top.all_outputs != 0 ? given.rows : 1;
  return "";
}

const char* divideTopTokens(const Op& op, const Given& given, Kernel* kernel) {
  kernel->grid[0] = op.push.top.all_outputs != 0 ? given.rows : 1;
  return "";
}

const char* divideKeepLogits(const Op& op, const Given& given, Kernel* kernel) {
  divideItems(op.push.keep_logits.n_vocab, given.rows, kernel);
  kernel->grid[0] = std::min(kernel->grid[0], kMaxGridSide);
  return "";
}

// A workgroup per token.
const char* divideRoute(const Op&, const Given& given, Kernel* kernel) {
  kernel->constants[0] = given.caps.isSoftware() ? kSoftwareLanes : kRouteLanes;
  kernel->grid[0] = given.rows;
  return "";
}

const char* divideSort(const Op&, const Given& given, Kernel* kernel) {
  kernel->constants[0] = given.caps.isSoftware() ? kSoftwareLanes : kRouteLanes;
  return "";
}

const char* divideExpertProduct(const Op& op, const Given& given, Kernel* kernel) {
  divideExperts(op.push.expert_matmul, given, kernel);
  return given.caps.readsTexels() ? "_texel" : "";
}

const char* divideCombine(const Op& op, const Given& given, Kernel* kernel) {
  divideItems(op.push.expert_combine.cols, given.rows, kernel);
  return "";
}

// If there are more places, the kernel loops in steps of the grid's height.
const char* divideExpertBias(const Op& op, const Given& given, Kernel* kernel) {
  const ExpertBiasPush& push = op.push.expert_bias;
  divideItems(push.cols, std::min(given.rows * push.n_used, kMaxGridSide), kernel);
  return "";
}

const char* divideTail(const Op& op, const Given&, Kernel* kernel) {
  divideItems(op.push.tail.cols, 1, kernel);
  return "";
}

const char* dividePool(const Op& op, const Given& given, Kernel* kernel) {
  divideItems(op.push.pool.cols, given.rows, kernel);
  return "";
}

// ---- Latent attention ----

// Tiles of tokens, head by head.
const char* divideHeads(const Op& op, const Given& given, Kernel* kernel) {
  const HeadMatmulPush& push = op.push.head_matmul;
  MatmulShape shape = matmulShape(push.rows, given.rows > 1 && !given.apart, given.caps);
  if (given.apart) {
    shapeApart(given.caps, &shape);
  }
  (void)divideTiles(push.rows, given.rows, shape, kernel);
  kernel->grid[0] *= push.count;
  return "";
}

const char* divideLatentAppend(const Op& op, const Given& given, Kernel* kernel) {
  const LatentAppendPush& push = op.push.latent_append;
  kernel->constants[0] = given.caps.isSoftware() ? kSoftwareLanes : kLanes;
  kernel->constants[1] = push.latent_dim + push.rope_dim;
  kernel->constants[2] = push.latent_dim;
  kernel->grid[0] = push.n_heads + 1;
  kernel->grid[1] = given.rows;
  return "";
}

const char* divideLatentAttention(const Op& op, const Given& given, Kernel* kernel) {
  const LatentAttentionPush& push = op.push.latent_attention;
  const uint32_t cols = push.latent_dim + push.rope_dim;
  AttentionPush as_heads = {};
  as_heads.n_heads = push.n_heads;
  as_heads.n_kv_heads = 1;
  as_heads.head_dim = cols;
  as_heads.splits = push.splits;
  divideAttention(as_heads, latentLaneOctets(cols, given.caps), given, kernel);
  kernel->constants[5] = push.latent_dim;
  return "";
}

const char* divideHadamard(const Op& op, const Given& given, Kernel* kernel) {
  kernel->constants[0] = given.caps.isSoftware() ? kSoftwareLanes : kLanes;
  kernel->constants[1] = op.push.hadamard.cols;
  kernel->grid[0] = op.push.hadamard.rows;
  kernel->grid[1] = given.rows;
  return "";
}

/// The part of a kernel's name after the name of the op's kind.
enum class NameOf : uint8_t { kNothing, kWeights, kCache };

struct KernelKind {
  NameOf name_of;
  bool divisible;
  const char* (*divide)(const Op& op, const Given& given, Kernel* kernel);
};
// In the order of OpKind.
constexpr KernelKind kKinds[kOpKinds] = {
    {NameOf::kWeights, false, divideEmbed},
    {NameOf::kNothing, false, divideNorm},
    {NameOf::kWeights, true, divideProduct},
    {NameOf::kNothing, false, divideBias},
    {NameOf::kCache, false, divideRopeAppend},
    {NameOf::kCache, true, divideAttention},
    {NameOf::kNothing, false, divideMerge},
    {NameOf::kNothing, false, divideActivation},
    {NameOf::kNothing, false, divideConv},
    {NameOf::kNothing, false, divideCap},
    {NameOf::kNothing, false, divideTopBlocks},
    {NameOf::kNothing, false, divideTopTokens},
    {NameOf::kNothing, false, divideRoute},
    {NameOf::kNothing, false, divideSort},
    {NameOf::kWeights, true, divideExpertProduct},
    {NameOf::kNothing, false, divideCombine},
    {NameOf::kNothing, false, nullptr},
    {NameOf::kNothing, false, divideTail},
    {NameOf::kNothing, false, divideStateInputs},
    {NameOf::kNothing, true, divideStateScan},
    {NameOf::kNothing, false, divideGatedNorm},
    {NameOf::kWeights, true, divideHeads},
    {NameOf::kCache, false, divideLatentAppend},
    {NameOf::kCache, true, divideLatentAttention},
    {NameOf::kNothing, false, divideHadamard},
    {NameOf::kNothing, false, divideKeepLogits},
    {NameOf::kNothing, false, divideExpertBias},
    {NameOf::kNothing, false, dividePool},
};

// "_q4_0"; "_f16" where keys and values are stored alike, else "_<keys>_<values>".
void nameParts(NameOf what, const Op& op, char* text, size_t capacity) {
  switch (what) {
    case NameOf::kNothing:
      text[0] = '\0';
      break;
    case NameOf::kWeights:
      std::snprintf(text, capacity, "_%s", weightKernelName(op.weights));
      break;
    case NameOf::kCache: {
      const bool alike = op.k_format == op.v_format;
      std::snprintf(text, capacity, "_%s%s%s", kvFormatName(op.k_format), alike ? "" : "_",
                    alike ? "" : kvFormatName(op.v_format));
      break;
    }
  }
}

}  // namespace

const char* subgroupPath(const DeviceCaps& caps) {
  return caps.has(VulkanFeature::kSubgroup) ? "subgroup" : "shared";
}

bool findStandIn(uint32_t shader, uint32_t* stand_in) {
  const char* const name = kShaders[shader].name();
  const char* const end = std::strstr(name, kSubgroups);
  char other[kShaderNameBytes + 8];
  if (end == nullptr) {
    return false;
  }
  std::snprintf(other, sizeof(other), "%.*s%s", static_cast<int>(end - name), name, kShared);
  return findShader(other, Log(), stand_in).ok();
}

Status chooseStaging(const Op& op, uint32_t rows, Staging staging, const DeviceCaps& caps,
                     const Log& log, Kernel* kernel) {
  *kernel = Kernel();
  if (staging == Staging::kHalves || staging == Staging::kMatrixHalves) {
    const bool matrix = staging == Staging::kMatrixHalves;
    kernel->constants[0] = kHalvesLanes;
    kernel->constants[1] = matrix ? kMatrixHalvesTop : kHalvesTop;
    kernel->constants[2] = matrix ? 0 : 1;
    kernel->grid[0] = rows;
    return findShader("stage_half", log, &kernel->shader);
  }
  kernel->constants[0] = caps.isSoftware() ? kSoftwareStagingLanes : kGpuStagingLanes;
  kernel->grid[0] = workgroups(op.push.matmul.units, kernel->constants[0]);
  kernel->grid[1] = rows;
  return findShader("stage_input", log, &kernel->shader);
}

Status chooseKernel(const Op& op, const Op* maker, const KernelRows& rows, const DeviceCaps& caps,
                    const MatmulChoices& choices, const Log& log, Kernel* kernel) {
  const KernelKind& kind = kKinds[static_cast<uint32_t>(op.kind)];
  *kernel = Kernel();
  kernel->divisible = kind.divisible;
  char parts[24];
  nameParts(kind.name_of, op, parts, sizeof(parts));
  char name[64];
  std::snprintf(name, sizeof(name), "%s%s%s", opTraits(op.kind).name, parts,
                kind.divide(op, {maker, rows.most, rows.apart, caps, choices}, kernel));
  return findShader(name, log, &kernel->shader);
}

}  // namespace oriel_internal
