// Rotary position, for kernels with a RopeAppendPush, qkv, rotations and the constant kNorms: norms follow it.
layout(std430, set = 0, binding = 5) readonly buffer Norms { float norms[]; };

// Value `dim` of the head at `head_at`, rotated by the table at `table_at`.
float rotated(uint head_at, uint table_at, uint dim) {
  if (dim >= push.rope_dims) {
    return qkv[head_at + dim];
  }
  const uint within = dim % (2u * push.pair_stride);
  const bool first = within < push.pair_stride;
  const uint pair = (dim / (2u * push.pair_stride)) * push.pair_stride + within % push.pair_stride;
  const float cosine = rotations[table_at + 2u * pair];
  const float sine = rotations[table_at + 2u * pair + 1u];
  const float x = qkv[head_at + dim];
  const float partner = qkv[first ? head_at + dim + push.pair_stride
                                  : head_at + dim - push.pair_stride];
  // Not contracted, so that all devices store the same keys for the same input.
  precise float value = x * cosine;
  precise float crossed = partner * sine;
  precise float turned = first ? value - crossed : value + crossed;
  return turned;
}

// The same, and multiplied by the norms at `norm_at` where there are any.
float turned(uint head_at, uint table_at, uint dim, uint norm_at) {
  const float value = rotated(head_at, table_at, dim);
  if (!kNorms) {
    return value;
  }
  precise float product = value * norms[norm_at + dim];
  return product;
}
