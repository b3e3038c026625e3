// A causal convolution over the last tokens, channel by channel, between two gates: ShortConvPush says how. A
// column of a token of this step is made again from its input, one of an earlier step read from the ring.
// Reads 3 words of each of up to `taps` tokens and as many taps a value, writes 2; 2 operations a tap and more.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "shared/layout.h"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push { ShortConvPush push; };
layout(std430, set = 0, binding = 0) readonly buffer In { float values[]; };
#include "lib/step.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Out { float result[]; };
layout(std430, set = 0, binding = 3) buffer Columns { float columns[]; };
layout(std430, set = 0, binding = 4) readonly buffer Taps { float taps[]; };

// One lane per channel; grid (channels, tokens).
void main() {
  const uint t = gl_WorkGroupID.y;
  const uint c = gl_GlobalInvocationID.x;
  if (t >= step_.header.n_tokens || c >= push.channels) {
    return;
  }
  const View view = viewOf(t, push.view);
  const uint base = tokenBase(t);
  const uint own = t * push.in_stride + c;
  float sum = 0.0;
  if (push.centred != 0u) {
    for (uint j = 0u; j < push.taps; ++j) {
      const int by = int(j) - int(push.taps - 1u) / 2;
      const int place = int(view.slot) + by;
      if (place >= 0 && place < int(view.count)) {
        const uint at = uint(int(own) + by * int(push.in_stride));
        sum += taps[c * push.taps + j] * (values[at] * values[at + 2u * push.channels]);
      }
    }
    result[t * push.out_stride + c] = values[own + push.channels] * sum;
    return;
  }
  for (uint j = 0u; j < push.taps; ++j) {
    const uint back = push.taps - 1u - j;
    // Rounded before it is added up, as what is stored is: the same sums whence ever it comes.
    precise float column = 0.0;
    if (back == 0u || (back < view.count && back <= t && tokenBase(t - back) == base)) {
      const uint at = own - back * push.in_stride;
      column = values[at] * values[at + 2u * push.channels];
    } else if (back < view.count) {
      const uint slot = (view.begin + view.count - 1u - back) % view.ring;
      column = columns[(view.first + slot) * push.channels + c];
    }
    precise float product = taps[c * push.taps + j] * column;
    precise float total = sum + product;
    sum = total;
    if (back == 0u) {
      columns[(view.first + view.slot) * push.channels + c] = column;
    }
  }
  result[t * push.out_stride + c] = values[own + push.channels] * sum;
}
