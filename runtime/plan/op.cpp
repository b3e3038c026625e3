#include "plan/op.h"

#include <algorithm>

namespace oriel_internal {
namespace {

/// Cost of an op without work: starting it and waiting for the previous op.
constexpr double kStart = 32768;
/// Cost of an exponential, a sine or a rounding of one value, in multiply-adds.
constexpr double kPerValue = 8;

bool never(const Op&) { return false; }
bool always(const Op&) { return true; }
OpColumns allColumns(const Op&) { return {}; }

void values(double count, OpWork* work) { work->fixed += kPerValue * count; }

bool normMakesRow(const Op& op) {
  const RmsNormPush& p = op.push.rms_norm;
  return p.accumulate == 0 && p.rows == 1 && p.first == 0 && p.out_first == 0 &&
         !samePlace(op.bindings[0], op.bindings[kOpOut]);
}
OpColumns normColumns(const Op& op) {
  const RmsNormPush& p = op.push.rms_norm;
  return {p.out_first, p.out_first + p.rows * p.cols, p.out_stride};
}
void normWork(const Op& op, double rows, OpWork* work) {
  values(rows * op.push.rms_norm.rows * op.push.rms_norm.cols, work);
}

OpColumns matmulColumns(const Op& op) {
  const MatmulPush& p = op.push.matmul;
  return {p.out_first, p.out_first + p.rows, p.out_stride};
}
void matmulWork(const Op& op, double rows, OpWork* work) {
  work->fixed += rows * kUnit * op.push.matmul.rows * op.push.matmul.units;
}

OpColumns biasColumns(const Op& op) {
  const AddBiasPush& p = op.push.add_bias;
  return {p.out_first, p.out_first + p.cols, p.out_stride};
}
void biasWork(const Op& op, double rows, OpWork* work) {
  values(rows * op.push.add_bias.cols, work);
}

void embedWork(const Op& op, double rows, OpWork* work) { values(rows * op.push.embed.cols, work); }

void ropeAppendWork(const Op& op, double rows, OpWork* work) {
  const RopeAppendPush& p = op.push.rope_append;
  values(rows * 2 * (p.n_heads + p.n_kv_heads) * p.head_dim, work);
}

void attentionWork(const Op& op, double rows, OpWork* work) {
  const AttentionPush& p = op.push.attention;
  work->per_seen = rows * 2 * p.n_heads * p.head_dim;
  work->most_seen = double{1} * p.sinks + p.ring;
  work->view = p.view;
}

OpColumns mergeColumns(const Op& op) {
  const AttentionMergePush& p = op.push.attention_merge;
  return {0, p.n_heads * p.head_dim, p.out_stride};
}
void mergeWork(const Op& op, double rows, OpWork* work) {
  const AttentionMergePush& p = op.push.attention_merge;
  values(rows * p.n_heads * p.head_dim * p.splits, work);
}

OpColumns activationColumns(const Op& op) {
  const GatedActivationPush& p = op.push.gated_activation;
  return {0, p.cols, p.out_stride};
}
bool activationMakesRow(const Op& op) { return op.push.gated_activation.rows_per_token == 1; }
void activationWork(const Op& op, double rows, OpWork* work) {
  const GatedActivationPush& p = op.push.gated_activation;
  values(rows * p.rows_per_token * p.cols, work);
}

OpColumns convColumns(const Op& op) {
  const ShortConvPush& p = op.push.short_conv;
  return {0, p.channels, p.out_stride};
}
void convWork(const Op& op, double rows, OpWork* work) {
  values(rows * op.push.short_conv.channels, work);
}

OpColumns capColumns(const Op& op) { return {0, op.push.soft_cap.cols, op.push.soft_cap.stride}; }
void capWork(const Op& op, double rows, OpWork* work) {
  values(rows * op.push.soft_cap.cols, work);
}

void topBlocksWork(const Op& op, double, OpWork* work) { work->fixed += op.push.top.n_vocab; }
// Sorts kTopCapacity values and reads their blocks.
void topTokensWork(const Op& op, double, OpWork* work) {
  const TopPush& p = op.push.top;
  const uint32_t of_a_block = p.n_vocab / p.blocks;
  values(double{1} * kTopCapacity * (kTopCapacity + of_a_block), work);
}

void routeWork(const Op& op, double rows, OpWork* work) {
  const RoutePush& p = op.push.route;
  values(rows * p.n_experts * p.n_used, work);
}
void sortWork(const Op& op, double, OpWork* work) {
  const SortRoutesPush& p = op.push.sort_routes;
  values(double{1} * p.routes + p.n_experts, work);
}

OpColumns expertColumns(const Op& op) {
  const ExpertMatmulPush& p = op.push.expert_matmul;
  return {p.out_first, p.out_first + p.rows, p.out_stride};
}
// Assumes that routes are spread evenly over the experts.
void expertWork(const Op& op, double rows, OpWork* work) {
  const ExpertMatmulPush& p = op.push.expert_matmul;
  work->fixed += rows * p.n_used * p.count / p.n_experts * kUnit * p.rows * p.units;
}

OpColumns combineColumns(const Op& op) {
  const ExpertCombinePush& p = op.push.expert_combine;
  return {p.out_first, p.out_first + p.cols, p.out_stride};
}
void combineWork(const Op& op, double rows, OpWork* work) {
  const ExpertCombinePush& p = op.push.expert_combine;
  values(rows * p.n_used * p.cols, work);
}

OpColumns expertBiasColumns(const Op& op) {
  const ExpertBiasPush& p = op.push.expert_bias;
  return {p.out_first, p.out_first + p.cols, p.out_stride};
}
void expertBiasWork(const Op& op, double rows, OpWork* work) {
  values(rows * op.push.expert_bias.n_used * op.push.expert_bias.cols, work);
}

void noWork(const Op&, double, OpWork*) {}
OpColumns tailColumns(const Op& op) { return {0, op.push.tail.cols, op.push.tail.stride}; }
void tailWork(const Op& op, double, OpWork* work) { values(op.push.tail.cols, work); }

OpColumns stateInputsColumns(const Op& op) {
  const StateInputsPush& p = op.push.state_inputs;
  return {0, stateColumns(p).n_channels + stateDecays(p) + p.heads, p.out_stride};
}
void stateInputsWork(const Op& op, double rows, OpWork* work) {
  values(rows * stateInputsColumns(op).end, work);
}
OpColumns stateScanColumns(const Op& op) {
  const StateScanPush& p = op.push.state_scan;
  return {0, p.heads * p.value_dim, p.out_stride};
}
// Each value of a state is decayed, updated and used; the delta rule uses it twice.
void stateScanWork(const Op& op, double rows, OpWork* work) {
  const StateScanPush& p = op.push.state_scan;
  work->fixed += rows * (p.delta != 0 ? 3 : 2) * p.heads * p.value_dim * p.key_dim;
}
OpColumns gatedNormColumns(const Op& op) {
  const GatedNormPush& p = op.push.gated_norm;
  return {0, p.rows * p.cols, p.out_stride};
}
bool gatedNormMakesRow(const Op& op) { return !samePlace(op.bindings[0], op.bindings[kOpOut]); }
void gatedNormWork(const Op& op, double rows, OpWork* work) {
  const GatedNormPush& p = op.push.gated_norm;
  values(rows * p.rows * p.cols, work);
}

OpColumns headColumns(const Op& op) {
  const HeadMatmulPush& p = op.push.head_matmul;
  const uint32_t first = p.out_first + p.first * p.out_head;
  return {first, first + (p.count - 1) * p.out_head + p.rows, p.out_stride};
}
void headWork(const Op& op, double rows, OpWork* work) {
  const HeadMatmulPush& p = op.push.head_matmul;
  work->fixed += rows * kUnit * p.count * p.rows * p.units;
}

void latentAppendWork(const Op& op, double rows, OpWork* work) {
  const LatentAppendPush& p = op.push.latent_append;
  values(rows * ((p.n_heads + 1) * p.latent_dim + (2 * p.n_heads + 1) * p.rope_dim), work);
}
void latentAttentionWork(const Op& op, double rows, OpWork* work) {
  const LatentAttentionPush& p = op.push.latent_attention;
  work->per_seen = rows * p.n_heads * (2 * p.latent_dim + p.rope_dim);
  work->most_seen = double{1} * p.sinks + p.ring;
  work->view = p.view;
}

OpColumns hadamardColumns(const Op& op) {
  const HadamardPush& p = op.push.hadamard;
  return {0, p.rows * p.cols, p.stride};
}
void hadamardWork(const Op& op, double rows, OpWork* work) {
  values(rows * op.push.hadamard.rows * op.push.hadamard.cols, work);
}

void keepWork(const Op& op, double rows, OpWork* work) {
  work->fixed += rows * op.push.keep_logits.n_vocab;
}

OpColumns poolColumns(const Op& op) { return {0, op.push.pool.cols, op.push.pool.out_stride}; }
void poolWork(const Op& op, double rows, OpWork* work) { values(rows * op.push.pool.cols, work); }

constexpr uint32_t kOut = 1u << kOpOut;

// In the order of OpKind.
// clang-format off
constexpr OpTraits kTraits[kOpKinds] = {
    // name             push bytes                   writes            once   small  row           columns            work
    {"embed",            sizeof(EmbedPush),           kOut,             false, true,  never,        allColumns,        embedWork},
    {"rms_norm",         sizeof(RmsNormPush),         kOut,             false, true,  normMakesRow, normColumns,       normWork},
    {"matmul",           sizeof(MatmulPush),          kOut | 1u << 4,   false, false, never,        matmulColumns,     matmulWork},
    {"add_bias",         sizeof(AddBiasPush),         kOut,             false, true,  never,        biasColumns,       biasWork},
    {"rope_append",      sizeof(RopeAppendPush),      kOut | 3u << 3,   false, false, never,        allColumns,        ropeAppendWork},
    {"attention",        sizeof(AttentionPush),       kOut,             false, false, never,        allColumns,        attentionWork},
    {"attention_merge",  sizeof(AttentionMergePush),  kOut,             false, true,  always,       mergeColumns,      mergeWork},
    {"gated_activation", sizeof(GatedActivationPush), kOut,             false, true,  activationMakesRow, activationColumns, activationWork},
    {"short_conv",       sizeof(ShortConvPush),       kOut | 1u << 3,   false, true,  never,        convColumns,       convWork},
    {"soft_cap",         sizeof(SoftCapPush),         kOut,             false, true,  never,        capColumns,        capWork},
    {"top_blocks",       sizeof(TopPush),             kOut,             true,  true,  never,        allColumns,        topBlocksWork},
    {"top_tokens",       sizeof(TopPush),             kOut,             true,  true,  never,        allColumns,        topTokensWork},
    {"route",            sizeof(RoutePush),           kOut,             false, true,  never,        allColumns,        routeWork},
    {"sort_routes",      sizeof(SortRoutesPush),      kOut,             true,  true,  never,        allColumns,        sortWork},
    {"expert_matmul",    sizeof(ExpertMatmulPush),    kOut,             false, false, never,        expertColumns,     expertWork},
    {"expert_combine",   sizeof(ExpertCombinePush),   kOut,             false, true,  never,        combineColumns,    combineWork},
    {"fetch_experts",    sizeof(FetchExpertsPush),    kOut,             true,  false, never,        allColumns,        noWork},
    {"tail",             sizeof(TailPush),            kOut,             true,  true,  never,        tailColumns,       tailWork},
    {"state_inputs",     sizeof(StateInputsPush),     kOut | 1u << 3,   false, false, never,        stateInputsColumns, stateInputsWork},
    {"state_scan",       sizeof(StateScanPush),       kOut | 1u << 3,   false, false, never,        stateScanColumns,  stateScanWork},
    {"gated_norm",       sizeof(GatedNormPush),       kOut,             false, true,  gatedNormMakesRow,       gatedNormColumns,  gatedNormWork},
    {"head_matmul",      sizeof(HeadMatmulPush),      kOut,             false, false, never,        headColumns,       headWork},
    {"latent_append",    sizeof(LatentAppendPush),    kOut | 1u << 3,   false, false, never,        allColumns,        latentAppendWork},
    {"latent_attention", sizeof(LatentAttentionPush), kOut,             false, false, never,        allColumns,        latentAttentionWork},
    {"hadamard",         sizeof(HadamardPush),        kOut,             false, false, never,        hadamardColumns,   hadamardWork},
    {"keep_logits",      sizeof(KeepLogitsPush),      kOut,             false, true,  never,        allColumns,        keepWork},
    {"expert_bias",      sizeof(ExpertBiasPush),      kOut,             false, true,  never,        expertBiasColumns, expertBiasWork},
    {"pool",             sizeof(PoolPush),            kOut,             false, true,  never,        poolColumns,       poolWork},
};
// clang-format on

}  // namespace

const OpTraits& opTraits(OpKind kind) { return kTraits[static_cast<uint32_t>(kind)]; }

OpWork opWork(const Op& op, uint32_t rows) {
  const OpTraits& traits = opTraits(op.kind);
  OpWork work;
  work.fixed = kStart;
  traits.work(op, traits.once ? 1 : rows, &work);
  return work;
}

}  // namespace oriel_internal
