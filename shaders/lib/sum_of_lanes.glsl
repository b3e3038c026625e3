// Sums over a workgroup. Needs kLanes, a power of two; SUBGROUP: lanes are summed with subgroup arithmetic first.
shared float partial[kLanes];

// The sum of every lane's value, for every lane. Once a workgroup.
float sumOfLanes(float value) {
  const uint lane = gl_LocalInvocationIndex;
#ifdef SUBGROUP
  const float subgroup_sum = subgroupAdd(value);
  if (subgroupElect()) {
    partial[gl_SubgroupID] = subgroup_sum;
  }
  barrier();
  float sum = 0.0;
  for (uint i = 0u; i < gl_NumSubgroups; ++i) {
    sum += partial[i];
  }
  return sum;
#else
  partial[lane] = value;
  barrier();
  for (uint half_width = kLanes / 2u; half_width > 0u; half_width /= 2u) {
    if (lane < half_width) {
      partial[lane] += partial[lane + half_width];
    }
    barrier();
  }
  return partial[0];
#endif
}
