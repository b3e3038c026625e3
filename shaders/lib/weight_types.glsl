// Types of weights, numbered as WeightType (runtime/plan/op.h) and `types` (variants.cmake). shared/layout.h says how each
// is packed.
const uint kTypeF32 = 0u;
const uint kTypeF16 = 1u;
const uint kTypeBf16 = 2u;
const uint kTypeQ8_0 = 3u;
const uint kTypeQ4_0 = 4u;
const uint kTypeQ4_1 = 5u;
const uint kTypeQ5_0 = 6u;
const uint kTypeQ5_1 = 7u;
const uint kTypeIq4Nl = 8u;
const uint kTypeQ2_K = 9u;
const uint kTypeQ3_K = 10u;
const uint kTypeQ4_K = 11u;
const uint kTypeQ5_K = 12u;
const uint kTypeQ6_K = 13u;
const uint kTypeIq4Xs = 14u;
const uint kTypeIq2Xxs = 15u;
const uint kTypeIq2Xs = 16u;
const uint kTypeIq2S = 17u;
const uint kTypeIq3Xxs = 18u;
const uint kTypeIq3S = 19u;
const uint kTypeMxfp4 = 20u;
const uint kTypeNvfp4 = 23u;
const uint kTypeQ1_0 = 24u;
const uint kTypeQ2_0 = 25u;
