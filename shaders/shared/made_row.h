// Products that make their input (lib/made_row.glsl): what shaders and C++ must agree on.
#ifndef ORIEL_SHARED_MADE_ROW_H_
#define ORIEL_SHARED_MADE_ROW_H_

#ifdef __cplusplus
#include <cstdint>
namespace oriel_internal {
#define ORIEL_MAKE(name, value) constexpr uint32_t name = value
#else
#define ORIEL_MAKE(name, value) const uint name = value
#endif

// A product may make its input itself, in spans of kSpanUnits units: it copies a row, or does the work of the op that
// would write the row. The push constants of that op follow at kMakerPushBytes, its input is binding 3 and the weight
// of its norm binding 4.
ORIEL_MAKE(kMakeCopied, 0u);
ORIEL_MAKE(kMakeNormed, 1u);     // RmsNormPush
ORIEL_MAKE(kMakeActivated, 2u);  // GatedActivationPush with `up` and kSilu or kGelu
ORIEL_MAKE(kMakeMerged, 3u);     // AttentionMergePush
ORIEL_MAKE(kMakerPushBytes, 64u);
ORIEL_MAKE(kSpanUnits, 64u);
ORIEL_MAKE(kLeastSpan, 16u);  // as long as the sums of a norm need
ORIEL_MAKE(kSpanPitch, 9u);  // vectors of four from unit to unit, so that lanes use different banks

#undef ORIEL_MAKE
#ifdef __cplusplus
}  // namespace oriel_internal
#endif

#endif  // ORIEL_SHARED_MADE_ROW_H_
