// What shaders and C++ must agree on, in one place. Included by both.
#ifndef ORIEL_SHARED_LAYOUT_H_
#define ORIEL_SHARED_LAYOUT_H_

#ifdef __cplusplus
#include <cstdint>
namespace oriel_internal {
using uint = uint32_t;
#define ORIEL_CONST(name, value) constexpr uint name = value
#define ORIEL_ELSE(value) = value  // of a member that is not given
#else
#define ORIEL_CONST(name, value) const uint name = value
#define ORIEL_ELSE(value)
#endif

// Weights. A matrix slice is one binding: groups of kGroupRows rows, one after another, the last
// filled up with rows of zeros. Columns are padded with zeros to a multiple of kUnit. A row has `quads`
// pieces of four words (its quants) and `side` words (scales and the like). A group holds all quads,
// interleaved by row (quad q of row r is piece q * kGroupRows + r), then all side words likewise: lanes
// that take a row each read neighbouring pieces. A unit is kUnit neighbouring values of a row.
// Quads:
//   F32     8 a unit, a word per value
//   F16     4 a unit, a word per 2 values, the lower half first; BF16 likewise
//   Q8_0    2 a unit, a word per 4 values, lowest byte first, two's complement
//   2 bits  1 per 2 units, a word per 16 values: byte i has value 4f + i in its bits 2f and 2f + 1
//   4 bits  1 a unit: byte i of word j has value 4j + i in its low and 16 + 4j + i in its high nibble
// A high-bit word has one more bit of each value of a unit: bit 8i + f belongs to value 4f + i. Side
// words, in order; halves, bytes and fields from the lowest bits up, d and m are f16:
//   Q8_0, Q4_0, IQ4_NL  per 2 units: [d, d]; zero where there is no second unit
//   Q5_0   per 2 units: [high bits], [high bits], [d, d]
//   Q4_1   per unit: [d, m]
//   Q5_1   per unit: [high bits], [d, m]
//   Q4_K   per 8 units: [d, dmin], 2 words of bytes: scales, 2 words of bytes: mins
//   Q5_K   as Q4_K, then 8 words of high bits
//   Q6_K   per 8 units: [d], 4 words of int8 scales, one per 16 values, then 2 words a unit: bits 4 and
//          5 of 16 values each, packed as 2-bit quads are
//   Q3_K   2-bit quads; per 8 units: [d], 4 words of int8 scales, one per 16 values, 8 of high bits
//   Q2_K   2-bit quads; per 8 units: [d, dmin], 4 words of bytes: scale in the low, min in the high
//          nibble, one per 16 values
//   IQ4_XS per 8 units: [d], 2 words of int8 scales
//   NVFP4  4-bit quads; per 2 units: a word of bytes s, one per 16 values: floats of 4 and 3 bits without a sign, 2^(e - 10)
//          times 8 + m, or m with e = 1 where e is 0; 0x7f is 0
//   Q1_0   no quads; per 8 units: [d, d], 8 high-bit words
//   Q2_0   2-bit quads; per 4 units: [d, d], of two units each (TQ1_0 and TQ2_0 likewise)
//   MXFP4  4-bit quads; per 4 units: a word of bytes e, the scale of a unit being 2^(e - 128)
// Values: Q8_0 d q; Q4_0 d (q - 8); Q5_0 d (q - 16); Q4_1, Q5_1 d q + m; Q2_K, Q4_K, Q5_K
// d scale q - dmin min; Q3_K d scale (q - 4); Q6_K d scale (q - 32); IQ4_NL, IQ4_XS d [scale] table[q];
// Q2_0 d (q - 1); Q1_0 d (2 bit - 1); NVFP4 s / 2 table[q] and MXFP4 2^(e - 128) table[q], a table of twice what the
// 4-bit float q is.
// The IQ2 and IQ3 types have side words only: indices into a codebook of sizes (runtime/plan/codebooks.h) of eight or four
// values, and signs. Byte l of an index word is of values 8l .. 8l + 7 of its unit (IQ2); byte l of the first and
// second of values 4l .. and 16 + 4l .. (IQ3). A sign word has a 1 for every value below zero, as high-bit words
// have it. Where every eight values have an even number of those, the sign of the eighth is not stored: its bit,
// 25 + 2l, has bit l of something else (IQ2_XXS, IQ3_XXS: of the unit's scale; IQ2_XS: bit 8 of index l). Per 8 units:
//   IQ2_XXS [d], 8 words of indices, 8 of signs
//   IQ2_XS  [d], 2 words of 4-bit scales, one per 16 values, 8 of indices, 8 of signs
//   IQ2_S   as IQ2_XS, but between indices and signs 2 words with bits 8 and 9 of indices, 8 bits a unit
//   IQ3_XXS [d], 16 words of indices, 8 of signs
//   IQ3_S   [d], 1 word of 4-bit scales, one a unit, 16 of indices, 2 with bit 8 of indices, 8 bits a unit, 8 of signs
// Values: d (2 scale + 1) size, with a sign, divided by 8 (IQ2), 4 (IQ3_XXS) or 1 (IQ3_S).
ORIEL_CONST(kUnit, 32u);  // vectors are padded to this, too
ORIEL_CONST(kGroupRows, 16u);

// Step block: one StepHeader, then for each of the chunk's tokens a TokenStep and its Views, then for each of
// them its rotations, tables of (cos, sin) pairs (runtime/plan/plan.h has the arithmetic). Everything
// that changes from step to step is here and nowhere else.
struct StepHeader {
  uint n_tokens;   // tokens in this step, at most the chunk
  uint n_outputs;  // rows of logits that the head computes; TokenStep::output says of which tokens
  uint
      token_words;  // from one token to the next: kTokenStepWords + kViewWords times the number of views
  uint
      tail;  // of StepRun::kTail: the row of the step before that its token was; of kDraft likewise. kPool: kPoolMean and so on
  // Executors' own: workgroups of a decoding token's attention, as an indirect dispatch takes them, for the
  // first two views. Most splits of a long window are empty until it fills.
  uint attention_groups[8];
};

// Shaders read it word by word (shaders/lib/step.glsl), as `output` is a reserved word there.
#ifdef __cplusplus
struct TokenStep {
  uint token;   // id
  uint base;    // index of the session that it is of
  uint output;  // of token i: the token of this step whose logits are row i of the head
  uint place;   // where its best tokens go; of a text that is read whole: the token's type
};
#endif

// What a token writes and sees in the memories of one group of layers. Those of several sessions lie side by side:
// all their sinks, then all their rings, then the scales of those. Of head h the sink in slot s is vector
// first_sink * heads + h * sinks + s of the sinks, the token in ring slot s vector first * heads + h * ring + s of the
// rings.
struct View {
  uint slot;        // that it writes: < sinks: a sink slot, else sinks + ring slot
  uint n_sinks;     // sink slots it sees: 0 .. n_sinks - 1
  uint begin;       // first ring slot it sees
  uint count;       // ring slots it sees, walking up and wrapping at the ring's length
  uint ring;        // slots of its session's ring
  uint first;       // ring slots of the sessions before
  uint first_sink;  // sink slots of the sessions before; 0 where sessions share their sinks
  uint all_ring;    // ring slots of all sessions
};
// Of a group whose memory is a state, not tokens: `first + slot` is written and `first + begin` read; count is 0 where
// there is nothing to read yet, and the state begins with zeros.

ORIEL_CONST(kStepHeaderWords, 12u);
ORIEL_CONST(kTokenStepWords, 4u);
ORIEL_CONST(kViewWords, 8u);
ORIEL_CONST(kMaxViews, 8u);

// Push constants, one struct per kernel; all constant for the life of a plan. Strides and offsets
// count 32-bit words unless they say otherwise; `view` is the index of a token's View.

struct EmbedPush {   // bindings: 0 weights, 1 step, 2 out
  uint cols;         // n_embd
  uint group_words;  // words of a group of rows
  uint side_word;    // where the side words begin in a group
  uint first_row;    // the slice holds rows first_row .. first_row + rows - 1
  uint rows;
  uint out_stride;
  float scale;      // 1, or what the architecture multiplies embeddings by
  uint of_step;     // kEmbedIds and so on: which row a token's is
  uint accumulate;  // 1: adds to `out`, 0: overwrites
};

ORIEL_CONST(kEmbedIds, 0u);        // that of its id
ORIEL_CONST(kEmbedRows, 1u);       // token i of the step has row i
ORIEL_CONST(kEmbedPositions, 2u);  // that of its place among the tokens it sees, by the first view
ORIEL_CONST(kEmbedSlots,
            3u);  // that of its slot, by the first view: its place in a text that is read whole
ORIEL_CONST(kEmbedPlaces, 4u);  // TokenStep::place: the type of a token of such a text

// out[t][r] (+)= scale * weight * in[t][r] / rms(in[t][r]), one weight for all rows, or one for each. In and out may be
// the same piece and first word: then every row is normed in place. Of a layer norm the row's mean is taken off first.
struct RmsNormPush {  // bindings: 0 in, 1 step, 2 out, 3 weight, maybe 4
  uint cols;          // of a row
  uint in_stride;     // from token to token
  uint out_stride;
  uint of_outputs;  // 1: row i of `out` is made of the token of output i; 0: of token i
  float eps;
  uint rows;        // rows of a token, one after the other (heads; else 1)
  uint first;       // word of a token's first row in `in`
  uint out_first;   // and in `out`
  uint accumulate;  // 1: adds to `out` (residual), 0: overwrites
  float scale;
  uint
      has_factor;  // 1: what `out` becomes, the sum where it is one, is multiplied by the float of binding 4
  uint centred ORIEL_ELSE(0);      // 1: a layer norm
  uint weight_rows ORIEL_ELSE(0);  // 1: [rows][cols] weights; 0: [cols], of all rows
};

struct
    MatmulPush {  // bindings: 0 weights, 1 step, 2 out, 3 in, maybe 4. out[t][r] (+)= W[r] . in[t]
  uint rows;      // rows of this slice
  uint units;     // padded cols / kUnit
  uint group_words;
  uint side_word;
  uint in_stride;
  uint out_stride;
  uint out_first;   // column of `out` where row 0 of this slice goes
  uint accumulate;  // 1: adds to `out` (residual), 0: overwrites
  uint of_outputs;  // 1: as many input rows as there are outputs (the head); 0: as there are tokens
  uint half_unit ORIEL_ELSE(0);  // 1: one unit, of which the first half counts; may be ignored
};

// What a product gives, in place: out[t][i] becomes out + values[i], out * values[0], out no further from 0 than limit,
// out + values[t * out_stride + out_first + i], out + gate * values[i], out within values[0] .. values[1], or
// out * values[i].
struct AddBiasPush {  // bindings: 0 values, 1 step, 2 out
  uint cols;
  uint out_stride;
  uint out_first;                 // column of `out` where the bias begins
  uint of_outputs ORIEL_ELSE(0);  // 1: of as many rows as there are outputs; 0: as there are tokens
  uint change ORIEL_ELSE(0);      // kChangeAdd and so on
  float limit ORIEL_ELSE(0);
  uint gate_first ORIEL_ELSE(0);  // of kChangeGated, as in GatedNormPush
  uint gate_stride ORIEL_ELSE(0);
};
ORIEL_CONST(kChangeAdd, 0u);
ORIEL_CONST(kChangeTimes, 1u);
ORIEL_CONST(kChangeClamp, 2u);
ORIEL_CONST(kChangeAddRows, 3u);
ORIEL_CONST(kChangeGated, 4u);      // adds values[i] times the token's gate of the step block
ORIEL_CONST(kChangeBetween, 5u);    // no less than values[0], no more than values[1]
ORIEL_CONST(kChangeTimesEach, 6u);  // times values[i]

struct RopeAppendPush {  // bindings: 0 qkv, 1 step, 2 queries, 3 k cache, 4 v cache, maybe 5
  uint n_heads;
  uint n_kv_heads;
  uint head_dim;
  uint rope_dims;    // the first rope_dims of each head are rotated; 0: none
  uint pair_stride;  // 1: pairs (2i, 2i+1); rope_dims/2: pairs (i, i + rope_dims/2)
  uint qkv_stride;   // per token: n_heads queries, n_kv_heads keys, n_kv_heads values
  uint
      query_stride;  // per token: [n_heads][2][head_dim]; query 0 for the ring's keys, query 1 for sinks
  uint sinks;        // sink slots of a session
  uint all_sinks;  // of all sessions
  uint view;
  uint rotation_stride;  // words of all tables of a token
  // Words of the step block where the first token's tables begin: keys and both queries are rotated by theirs.
  uint key_rotation;
  uint query_rotation;
  uint sink_rotation;
};
// Binding 5, where it is there: [2][head_dim] floats that the rotated queries and keys are multiplied by (norms
// that come after RoPE).

// Binding 5, where it is there: [n_heads] floats, one more score of each head whose value is zero.
struct AttentionPush {  // bindings: 0 queries, 1 step, 2 out, 3 k cache, 4 v cache, maybe 5
  uint n_heads;
  uint n_kv_heads;
  uint head_dim;
  uint query_stride;
  uint out_stride;  // splits == 1: [n_heads][head_dim] per token; else see kPartialExtra
  uint view;
  uint sinks;  // slots, as in RopeAppendPush
  uint all_sinks;
  uint ring;         // of the session with the longest one
  uint splits;       // workgroups that share one head's slots
  uint split_slots;  // slots per split
  float scale;       // of scores: 1 / sqrt(head_dim) unless the architecture says otherwise
  float soft_cap;    // 0: none; else a scaled score s becomes soft_cap * tanh(s / soft_cap)
  // 0: none; else slot j loses slope * |slot of the token - j| of its score (Press et al., "ALiBi", 2022): the largest power
  // of two m up to n_heads. The slope of head h is 2^(-8 (h + 1) / m), behind the first m 2^(-4 (2 (h - m) + 1) / m).
  uint alibi_heads ORIEL_ELSE(0);
};

// A split writes [head_dim] weighted values, then its maximum score and its sum of exponentials,
// at (token * n_heads + head) * splits + split, each (head_dim + kPartialExtra) words.
ORIEL_CONST(kPartialExtra, 2u);

struct AttentionMergePush {  // bindings: 0 partials, 1 step, 2 out
  uint n_heads;
  uint head_dim;
  uint out_stride;
  uint splits;  // as in AttentionPush
  uint split_slots;
  uint view;
};

// out = scale * activation(gate) * up, or without `up`. Of x:
//   kSilu         x / (1 + exp(-x))
//   kGelu         GELU, its tanh form (below)
//   kGeluErf      x / 2 (1 + erf(x / sqrt(2)))
//   kRelu         max(x, 0)
//   kReluSquared  that squared
//   kClampedSilu  y / (1 + exp(-b y)) with y = min(x, a), and `up` becomes max(-a, min(up, a)) + 1 (gpt-oss)
//   kXielu        a x^2 + c x above 0; else (exp(min(x, d)) - 1 - x) b + c x (Huang and Schlag, "xIELU", 2025)
//   kTanh         tanh(x)
struct GatedActivationPush {  // bindings: 0 gate_up, 1 step, 2 out
  uint cols;                  // n_ff
  uint in_stride;             // per row: gate at gate_offset, up at up_offset
  uint gate_offset;
  uint up_offset;
  uint out_stride;
  uint activation;
  uint rows_per_token;       // 1; of experts: as many as a token uses
  uint plain ORIEL_ELSE(0);  // 1: there is no `up`
  float scale ORIEL_ELSE(1);
  float a ORIEL_ELSE(0);
  float b ORIEL_ELSE(0);
  float c ORIEL_ELSE(0);
  float d ORIEL_ELSE(0);
};
ORIEL_CONST(kSilu, 0u);
ORIEL_CONST(kGelu, 1u);
ORIEL_CONST(kGeluErf, 2u);
ORIEL_CONST(kRelu, 3u);
ORIEL_CONST(kReluSquared, 4u);
ORIEL_CONST(kClampedSilu, 5u);
ORIEL_CONST(kXielu, 6u);
ORIEL_CONST(kTanh, 7u);

// A mixture of experts. The routes of a step are the choices of its tokens: route n_used * t + k is the k-th best
// expert of token t. Experts work on them sorted by expert, then by route: the place of a route is its index in that
// order. In words of one buffer with room for `routes` of them:
//   expert [routes]  by route
//   weight [routes]  by route, float
//   place  [routes]  by route
//   route  [routes]  by place
//   begin  [n_experts + 1]  place of the first route of each expert; the last: how many routes there are
ORIEL_CONST(kRouteParts, 4u);

// A token's choices: scores s are softmax(in) over all experts, or sigmoid(in). The n_used experts of largest
// s + bias are chosen, best first; of equals the one with the lower number is the better. Their weights are s, or
// s / max(sum of the chosen s, kLeastRouteSum), times `scale`. Where there are groups, equal runs of experts, only those
// of the `used_groups` best may be chosen, a group being as good as the sum of its two largest s + bias.
struct RoutePush {  // bindings: 0 in, 1 step, 2 routes (expert, weight), maybe 3 bias [n_experts]
  uint n_experts;
  uint n_used;
  uint in_stride;
  uint routes;
  uint sigmoid;
  uint normalised;
  uint has_bias;
  float scale;                // of the weights that come of it
  uint groups ORIEL_ELSE(1);  // 1: all experts
  uint used_groups ORIEL_ELSE(1);
};
ORIEL_CONST(kMaxExpertGroups, 64u);
#ifdef __cplusplus
constexpr float kLeastRouteSum = 6.103515625e-5f;
#else
const float kLeastRouteSum = 6.103515625e-5;
#endif

// Sorts all routes of the step. Once a step, not once a token.
struct SortRoutesPush {  // bindings: 0 routes (expert), 1 step, 2 the same (place, route, begin)
  uint n_experts;
  uint n_used;
  uint routes;
};

// For every place p with route r, expert e and slot s: out[p][out_first + i] = W[s][i] . in[x] with x = p, or the
// token of r. Weights are a stack of matrices, each of whole groups of rows (kGroupRows). Nothing is done for experts
// outside the stack.
struct
    ExpertMatmulPush {  // bindings: 0 weights, 1 step, 2 out, 3 in, 4 routes, maybe 5 slots [n_experts]
  uint rows;            // of an expert
  uint units;
  uint group_words;
  uint side_word;
  uint in_stride;
  uint out_stride;
  uint out_first;
  uint n_experts;
  uint n_used;
  uint routes;
  uint of_tokens;  // 1: inputs are rows by token, 0: by place
  uint first;      // the stack holds experts, or slots, first .. first + count - 1
  uint count;
  uint
      has_slots;  // 1: slots[e] says where expert e is, kNoSlot: nowhere now; 0: expert e is in slot e
  uint accumulate ORIEL_ELSE(0);  // 1: adds to `out`, 0: overwrites
};
ORIEL_CONST(kNoSlot, 0xffffffffu);

// out[t] (+)= sum over k of weight * in[place of route n_used * t + k], in the order of k.
struct ExpertCombinePush {  // bindings: 0 in, 1 step, 2 out, 3 routes
  uint cols;
  uint n_used;
  uint routes;
  uint in_stride;
  uint out_stride;
  uint out_first ORIEL_ELSE(0);
  uint accumulate ORIEL_ELSE(1);  // 1: adds to `out`, 0: overwrites
};

// What experts' products give, in place: of every place p with expert e, out[p][i] becomes out + values[e][i] or
// out * values[e] (AddBiasPush has `change`).
struct ExpertBiasPush {  // bindings: 0 values, 1 step, 2 out, 3 routes
  uint cols;
  uint n_used;
  uint routes;
  uint out_stride;
  uint out_first;
  uint change;  // kChangeGated: out[p][i] becomes out * the gate of the token of p
  uint gate_first ORIEL_ELSE(0);
  uint gate_stride ORIEL_ELSE(0);
};

// Sees to it that experts of the routes are in slots, as many as there are slots, and writes slots: done by the host
// (exec/expert_cache.h). Round i + 1 is for the experts that round i had no slots for.
struct FetchExpertsPush {  // bindings: 0 routes, 1 step, 2 slots
  uint layer;              // index among the layers with experts on file
  uint round;
};

// out[0] = in[header.tail]
struct TailPush {  // bindings: 0 in, 1 step, 2 out, which may be the same
  uint cols;
  uint stride;
};

// Latent attention: every head has matrices of its own, and all heads read one vector of a token (the latent, then the
// rotated key), which lies in a memory of one side as a head of latent_dim + rope_dim values would.

// out[t][out_first + out_head * h + r] = W[h][r] . in[t][in_head * h ...]: weights are a stack of matrices, one for each
// head, each of whole groups of rows. What lies behind a head's input, up to a whole unit, meets weights of zero.
struct HeadMatmulPush {  // bindings: 0 weights, 1 step, 2 out, 3 in
  uint rows;             // of a head
  uint units;
  uint group_words;
  uint side_word;
  uint in_stride;
  uint in_head;  // words from head to head
  uint out_stride;
  uint out_head;
  uint out_first;
  uint first;  // the stack holds heads first .. first + count - 1
  uint count;
};

// Completes a token's queries and remembers its vector. Of each head's query the first values, which latents are scored
// with, are there; the others are rotated from the head's last ones, for the ring's keys and for sinks. In formats of few
// bits latents and keys are rotated by a Walsh-Hadamard matrix each, sinks too, and all of a query with them.
struct LatentAppendPush {  // bindings: 0 heads, 1 step, 2 queries, 3 memory, 4 vectors
  uint n_heads;
  uint latent_dim;
  uint rope_dim;
  uint pair_stride;  // 1: pairs (2i, 2i+1); rope_dim/2: pairs (i, i + rope_dim/2)
  uint
      heads_stride;  // of `heads`, per token: [n_heads][head_dim], of which the last rope_dim are rotated
  uint head_dim;
  uint vector_stride;  // of `vectors`, per token
  uint vector_first;   // where the latent begins, behind which the key is
  uint
      query_stride;  // per token: [n_heads][latent_dim + 2 rope_dim]: latent, rotated for the ring, for sinks
  uint sinks;  // slots, as in RopeAppendPush
  uint all_sinks;
  uint view;
  uint rotation_stride;
  uint key_rotation;  // as in RopeAppendPush
  uint query_rotation;
  uint sink_rotation;
};

// The sum of latents that each head sees, weighted by a softmax over scale * query . (latent, key).
struct LatentAttentionPush {  // bindings: 0 queries, 1 step, 2 out, 3 memory
  uint n_heads;
  uint latent_dim;
  uint rope_dim;
  uint query_stride;
  uint
      out_stride;  // splits == 1: [n_heads][latent_dim] per token; else see kPartialExtra, with latent_dim values
  uint view;
  uint sinks;  // slots, as in RopeAppendPush
  uint all_sinks;
  uint ring;  // of the session with the longest one
  uint splits;
  uint split_slots;
  float scale;
};

// Rows of a token, in place, multiplied by the normalised Walsh-Hadamard matrix in blocks of `block`, a power of two.
struct HadamardPush {  // bindings: 0 the same as 2, 1 step, 2 out
  uint rows;           // of a token, one behind the other
  uint cols;           // of a row: whole blocks
  uint block;
  uint stride;  // from token to token
};

// A causal convolution over the last `taps` tokens, channel by channel, between two gates. A token's input is
// [b][c][x], `channels` words each. Its column is w = b x, stored in the ring as float32; out = c y, where
// y_t = sum over j < taps of tap[j] w_(t - taps + 1 + j). Columns before the first token are zero.
// Bindings: 0 in, 1 step, 2 out, 3 columns: [slots of all rings][channels], 4 taps: [channels][taps].
struct ShortConvPush {
  uint channels;
  uint in_stride;
  uint out_stride;
  uint
      taps;  // 1 .. kMaxConvTaps; a ring has at least taps + chunk - 1: what a step writes is not what it reads
  uint view;
  // 1: of a text that is read whole the sum is centred, y_t = sum of tap[j] w_(t - (taps - 1) / 2 + j); nothing is stored.
  uint centred ORIEL_ELSE(0);
};
ORIEL_CONST(kMaxConvTaps, 8u);

// Vectors of texts that lie whole in the step: out[i] is made of the text that ends with the token of output i. The step's
// header says how: the mean of its tokens, the first or the last.
struct PoolPush {  // bindings: 0 in, 1 step, 2 out
  uint cols;
  uint in_stride;
  uint out_stride;
};
ORIEL_CONST(kPoolMean, 0u);
ORIEL_CONST(kPoolFirst, 1u);
ORIEL_CONST(kPoolLast, 2u);

// A recurrent state has for each of its heads a matrix S [value_dim][key_dim]. A token has for each head a value of
// value_dim, a decay and a factor, and for each of key_heads, which heads share, a query and a key of key_dim:
//   delta rule: S = decay S, then S += factor (value - S key) key^T; out = scale S query
//   Mamba-2:    S = decay S + factor value key^T; out = scale S query + skip value
// Kimi's delta attention is the delta rule with a decay for each column of S, that is for each value of a key.
// (Yang, Kautz and Hatamizadeh, "Gated Delta Networks", 2024; Dao and Gu, "Transformers are SSMs", 2024.) A slot of the
// state's memory has, in words, the matrices [heads][value_dim][key_dim] in their format, scales of int8 behind all
// values, and then the columns [taps - 1][channels], the last inputs of the convolution, oldest first, float32. A step
// reads slot View::begin of its first token (zeros where count is 0) and writes View::slot: the state after its last
// token. All its tokens are of one session; in a batch (StepList::kBatch) each is of another, and is such a step.

// What a state takes in. A token of `in` (StateColumns has the sums):
//   delta rule: [channels: queries, keys, values][gates: heads * value_dim][f: heads][d: decays]
//   Mamba-2:    [gates: heads * value_dim][channels: values, keys, queries][d: heads]
// with queries and keys of key_heads * key_dim, values of heads * value_dim. The channels go through a causal
// convolution over the last `taps` tokens, each for itself, and then through SiLU:
// y_t = silu(bias + sum over j < taps of tap[j] x_(t - taps + 1 + j)). A token of `out`, in either case:
//   [queries][keys][values][decay: decays][factor: heads]
// with a decay for each head, or (by_key) for each value of a key of each head.
// The delta rule divides queries and keys by their lengths, head by head: x / max(|x|, eps). Then
//   decay = exp(rate softplus(d + step)); factor = sigmoid(f) (delta rule) or softplus(d + step) (Mamba-2)
//   decay = exp(least sigmoid(rate (d + step))) (by_key)
// where softplus(x) = ln(1 + e^x), x itself above 20. Writes the columns of the slot, its last words.
struct StateInputsPush {  // bindings: 0 in, 1 step, 2 out, 3 state, 4 taps, 5 gates
  uint in_stride;
  uint out_stride;
  uint delta;  // 1: the delta rule; 0: Mamba-2
  uint heads;
  uint key_heads;
  uint key_dim;
  uint value_dim;
  uint taps;      // 2 .. kMaxConvTaps
  uint has_bias;  // 1: binding 4 is [channels][taps], then the bias [channels]; 0: no bias
  float eps;
  uint slot_words;  // of the state's memory
  uint view;
  uint by_key ORIEL_ELSE(0);
  float least ORIEL_ELSE(0);  // by_key: logarithm of the least decay
};
// Binding 5: [decays] steps, [heads] rates, and of Mamba-2 [heads] of what goes by the state (skip).

#ifdef __cplusplus
template <typename Push>
constexpr uint stateDecays(const Push& p) {
  return p.heads * (p.by_key != 0 ? p.key_dim : 1);
}
struct StateColumns {
  uint n_keys;      // queries, or keys
  uint n_values;    // values, or gates
  uint n_channels;  // queries, keys and values
  // Columns of `in`.
  uint channels, gates, factor, decay;
  // Of the channels.
  uint queries, keys, values;
};
template <typename Push>
constexpr StateColumns stateColumns(const Push& p) {
  const uint keys = p.key_heads * p.key_dim;
  const uint values = p.heads * p.value_dim;
  const uint all = 2 * keys + values;
  return p.delta != 0
             ? StateColumns{keys, values, all,     0, all, all + values, all + values + p.heads,
                            0,    keys,   2 * keys}
             : StateColumns{keys, values,       all,           values, 0,
                            0,    values + all, values + keys, values, 0};
}
#endif

struct StateScanPush {  // bindings: 0 in (StateInputsPush's out), 1 step, 2 out, 3 state, 4 gates
  uint in_stride;
  uint out_stride;
  uint heads;
  uint key_heads;
  uint key_dim;
  uint value_dim;
  uint delta;   // 1: the delta rule; 0: Mamba-2
  uint format;  // of the matrices: 0 f32, 1 f16, 2 int8 (StateFormat)
  float scale;
  uint slot_words;
  uint view;
  uint tiled
      ORIEL_ELSE(0);  // 1: head h has the key of h % key_heads; 0: of h / (heads / key_heads)
  uint by_key ORIEL_ELSE(0);  // 1: the delta rule with a decay for each value of a key
};

// out[t][r] = norm(in[t][r] * gate) (norm_last) or norm(in[t][r]) * gate, with gate = a function of gates[t][r]: silu,
// sigmoid, softplus ln(1 + e^x), or that to the base of two, log2(1 + 2^x);
// norm(x) = weight x / rms(x), or nothing. `out` may be `in`.
struct GatedNormPush {  // bindings: 0 in, 1 step, 2 out, 3 gates, maybe 4 weight
  uint rows;            // of a token, one after the other
  uint cols;
  uint in_stride;
  uint out_stride;
  uint gate_stride;
  uint gate_first;  // column of `gates`
  uint gate;        // kGateSilu, kGateSigmoid, kGateSoftplus, kGateSoftplus2
  uint has_norm;
  uint norm_last;
  uint weight_rows;  // 1: [rows][cols] weights; 0: [cols], of all rows
  float eps;
  uint gate_rows ORIEL_ELSE(0);   // 1: one gate a row, which all its values share; 0: one each
  uint of_outputs ORIEL_ELSE(0);  // 1: row i is of output i; 0: of token i
};

ORIEL_CONST(kGateSilu, 0u);
ORIEL_CONST(kGateSigmoid, 1u);
ORIEL_CONST(kGateSoftplus, 2u);
ORIEL_CONST(kGateSoftplus2, 3u);
// The value itself, of an adapter: `gates` is the step block, and gate_first the word of its first token.
ORIEL_CONST(kGateStep, 4u);

// x becomes cap * tanh(x / cap), in place, in as many rows as there are outputs.
struct SoftCapPush {  // bindings: 0 the same as 2, 1 step, 2 out
  uint cols;
  uint stride;
  float cap;
};

// The best tokens of a step, so that the host need not read all logits. A logit's key orders as the logit
// does: 0 for minus infinity and for what is no number, else its bits, inverted if negative, else with the
// sign bit set; both zeros have one key. Token i is in block i % blocks: tokens of like rank often have ids
// of like size.
// Of the last output, or of all. top_blocks: 0 logits, 1 step, 2 out: keys[blocks], each the largest of its block, of
// output i at keys[i * blocks] (of the last alone: at keys[0]). top_tokens: 0 logits, 1 step, 2 out: TopTokens, each at
// TokenStep::place of the output's token, 3 keys.
struct TopPush {
  uint n_vocab;
  uint blocks;       // at most kMaxTopBlocks
  uint all_outputs;  // 1: of every output; 0: of the last
};

// kept[base][i] = logits[output][i] with the base of the output's token, of the last output of each session; outputs of
// a session follow each other.
struct KeepLogitsPush {  // bindings: 0 logits, 1 step, 2 kept: [sessions][n_vocab]
  uint n_vocab;
};
ORIEL_CONST(kMaxTopBlocks, 2048u);
ORIEL_CONST(kTopCapacity, 128u);

struct TopToken {
  float logit;
  uint id;
};
struct TopTokens {
  uint count;  // the best so many, in order; of equals the lower id is the better
  uint all;    // 1: no other token has any probability
  uint reserved0;
  uint reserved1;
  TopToken best[kTopCapacity];  // best[0].id is 0 where there is none
};

// tanh-GELU is x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks, Gimpel 2016).
#ifdef __cplusplus
constexpr float kGeluScale = 0.7978845608f;
constexpr float kGeluCubic = 0.044715f;
#else
const float kGeluScale = 0.7978845608;
const float kGeluCubic = 0.044715;
#endif

// The input of a product in another form (binding 4; push constants and other bindings are those of the
// product), so many words for every unit of a row, row by row. For matmul_*_dot, from stage_input, each unit: the
// high and then the low bytes of its values in 16 bits, four to a word, lowest first; what they are multiplied
// by (float); the sums of the first and of the last 16 values; nothing. For matmul_*_matrix, from stage_half,
// each row: its values as f16, two to a word, the lower half first; what they are multiplied by (float); nothing.
// For matmul_*_half, from stage_half, each row: its values as f16, every four of them in the order 0, 2, 1, 3; then
// each unit: what they are multiplied by (float); the sums of the first and of the last 16 values (float); nothing.
ORIEL_CONST(kStagedUnitWords, 20u);
// A value is 256 high + low, both signed bytes.
ORIEL_CONST(kStagedMost, 32639u);

// Uniform buffer with the codebook of the weights' type, where that has one: behind the bindings of an op and its
// texel buffers.
ORIEL_CONST(kCodebookBinding, 10u);

// Cache of one layer and side, f16: sinks, then rings (View has the order), vectors of head_dim / 2 words; two values to
// a word, the lower half first.

#ifdef __cplusplus
static_assert(sizeof(StepHeader) == kStepHeaderWords * 4, "shared with shaders");
static_assert(sizeof(TokenStep) == kTokenStepWords * 4, "shared with shaders");
static_assert(sizeof(EmbedPush) == 36, "shared with shaders");
static_assert(sizeof(View) == kViewWords * 4, "shared with shaders");
static_assert(sizeof(RmsNormPush) == 52, "shared with shaders");
static_assert(sizeof(MatmulPush) == 40, "shared with shaders");
static_assert(sizeof(AddBiasPush) == 32, "shared with shaders");
static_assert(sizeof(RopeAppendPush) == 56, "shared with shaders");
static_assert(sizeof(AttentionPush) == 56, "shared with shaders");
static_assert(sizeof(AttentionMergePush) == 24, "shared with shaders");
static_assert(sizeof(GatedActivationPush) == 52, "shared with shaders");
static_assert(sizeof(RoutePush) == 40, "shared with shaders");
static_assert(sizeof(SortRoutesPush) == 12, "shared with shaders");
static_assert(sizeof(ExpertMatmulPush) == 60, "shared with shaders");
static_assert(sizeof(ExpertCombinePush) == 28, "shared with shaders");
static_assert(sizeof(ExpertBiasPush) == 32, "shared with shaders");
static_assert(sizeof(TailPush) == 8, "shared with shaders");
static_assert(sizeof(HeadMatmulPush) == 44, "shared with shaders");
static_assert(sizeof(LatentAppendPush) == 64, "shared with shaders");
static_assert(sizeof(LatentAttentionPush) == 48, "shared with shaders");
static_assert(sizeof(HadamardPush) == 16, "shared with shaders");
static_assert(sizeof(ShortConvPush) == 24, "shared with shaders");
static_assert(sizeof(PoolPush) == 12, "shared with shaders");
static_assert(sizeof(SoftCapPush) == 12, "shared with shaders");
static_assert(sizeof(KeepLogitsPush) == 4, "shared with shaders");
static_assert(sizeof(TopPush) == 12, "shared with shaders");
static_assert(sizeof(TopTokens) == 16 + 8 * kTopCapacity, "shared with shaders");
}  // namespace oriel_internal
#endif
#undef ORIEL_CONST
#undef ORIEL_ELSE

#endif  // ORIEL_SHARED_LAYOUT_H_
