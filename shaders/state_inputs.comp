// What a recurrent state takes in: queries, keys and values from a causal convolution over the last tokens, decays
// and a factor for each head. StateInputsPush says how.
// Reads `taps` words and as many taps a channel, writes 1, and of the last tokens another one; 2 operations a tap and
// some 20 a channel.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kLanes = 64u;
layout(constant_id = 1) const bool kApart = false;  // each token writes a slot of its own

layout(push_constant) uniform Push { StateInputsPush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) buffer State { float state[]; };
layout(std430, set = 0, binding = 4) readonly buffer Taps { float taps[]; };
layout(std430, set = 0, binding = 5) readonly buffer Gates { float gates[]; };
#include "lib/sum_of_lanes.glsl"

// ln(1 + e^x) as max(x, 0) + 2 artanh(z), z = e / (2 + e), e = e^-|x|: to a few units in the last place also where it
// is small, where a device's own logarithm is only good to 2^-21.
float softplus(float x) {
  const float e = exp(-abs(x));
  const float z = e / (2.0 + e);
  const float s = z * z;
  const float series = 1.0 + s * (1.0 / 3.0 + s * (1.0 / 5.0 + s * (1.0 / 7.0 +
                       s * (1.0 / 9.0 + s * (1.0 / 11.0 + s * (1.0 / 13.0))))));
  return max(x, 0.0) + 2.0 * z * series;
}

// Columns of a slot: the last inputs of the convolution.
struct Columns {
  uint read;  // word of the first in the state
  uint written;
  bool any;  // to be read; else they are zero
  uint number;  // numberOf() of the token
};

// Number of token t among those of the step that follow each other.
uint numberOf(uint t) {
  uint number = kApart ? 0u : t;
  while (kApart && followsInState(t - number, push.view)) {
    ++number;
  }
  return number;
}

// Channel c of the token `back` before token t.
float column(Columns columns, uint channels, uint first, uint t, uint back, uint c) {
  if (back <= columns.number) {
    return values[(t - back) * push.in_stride + first + c];
  }
  return columns.any
             ? state[columns.read + (push.taps - 1u + columns.number - back) * channels + c]
             : 0.0;
}

// The convolution through SiLU, of one channel.
float convolved(Columns columns, uint channels, uint first, uint t, uint c) {
  float sum = push.has_bias != 0u ? taps[channels * push.taps + c] : 0.0;
  for (uint j = 0u; j < push.taps; ++j) {
    sum += taps[c * push.taps + j] * column(columns, channels, first, t, push.taps - 1u - j, c);
  }
  return sum / (1.0 + exp(-sum));
}

// Of the columns in a written slot, those that token t sees to: its own, and the first token of the slot those that
// stay.
void keepColumns(Columns columns, uint channels, uint first, uint t, uint c) {
  const uint before = push.taps - 1u;
  const uint n_tokens = kApart ? 1u : step_.header.n_tokens;
  const uint number = kApart ? 0u : t;  // among the tokens of the slot
  if (number + before >= n_tokens) {
    state[columns.written + (number + before - n_tokens) * channels + c] =
        values[t * push.in_stride + first + c];
  }
  for (uint j = 0u; number == 0u && j + n_tokens < before; ++j) {
    state[columns.written + j * channels + c] =
        column(columns, channels, first, t, before - n_tokens - j, c);
  }
}

// Of one head.
void gate(uint t, uint head, uint decay_column, uint factor_column, uint out_at) {
  const uint in_at = t * push.in_stride;
  const uint of_head = push.by_key != 0u ? push.key_dim : 1u;
  const uint decays = push.heads * of_head;
  const float rate = gates[decays + head];
  for (uint i = gl_LocalInvocationIndex; i < of_head; i += kLanes) {
    const uint at = head * of_head + i;
    const float x = values[in_at + decay_column + at] + gates[at];
    const float step = softplus(x);
    result[out_at + at] = exp(push.by_key != 0u ? push.least / (1.0 + exp(-rate * x)) : rate * step);
    if (i == 0u) {
      result[out_at + decays + head] =
          push.delta != 0u ? 1.0 / (1.0 + exp(-values[in_at + factor_column + head])) : step;
    }
  }
}

// Grid (queries, keys and values by head, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  if (t >= step_.header.n_tokens) {
    return;
  }
  const uint block = gl_WorkGroupID.x;
  const uint n_keys = push.key_heads * push.key_dim;
  const uint n_values = push.heads * push.value_dim;
  const uint channels = 2u * n_keys + n_values;
  const bool delta = push.delta != 0u;
  const bool is_value = block >= 2u * push.key_heads;
  const uint dim = is_value ? push.value_dim : push.key_dim;
  const uint place = is_value ? 2u * n_keys + (block - 2u * push.key_heads) * dim : block * dim;
  // Channels: queries, keys, values with the delta rule, else values, keys, queries.
  const uint from = delta      ? place
                    : is_value ? place - 2u * n_keys
                               : n_values + (place < n_keys ? place + n_keys : place - n_keys);
  const uint first = delta ? 0u : n_values;

  const uint number = numberOf(t);
  const View view = viewOf(t - number, push.view);
  const uint slot = viewOf(t, push.view).slot;
  const uint memory = (view.first + 1u) * push.slot_words - (push.taps - 1u) * channels;
  const Columns columns = Columns(memory + view.begin * push.slot_words,
                                  memory + slot * push.slot_words, view.count != 0u, number);
  const uint out_at = t * push.out_stride;
  float squares = 0.0;
  for (uint i = gl_LocalInvocationIndex; i < dim; i += kLanes) {
    const float y = convolved(columns, channels, first, t, from + i);
    keepColumns(columns, channels, first, t, from + i);
    result[out_at + place + i] = y;
    squares += y * y;
  }
  if (is_value) {
    const uint decays = delta ? channels + n_values + push.heads : n_values + channels;
    gate(t, block - 2u * push.key_heads, decays, channels + n_values, out_at + channels);
  } else if (delta) {
    const float scale = 1.0 / max(sqrt(sumOfLanes(squares)), push.eps);
    for (uint i = gl_LocalInvocationIndex; i < dim; i += kLanes) {
      result[out_at + place + i] *= scale;
    }
  }
}
