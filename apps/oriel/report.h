// Fields that several commands report.
#pragma once

#include <oriel/oriel.h>

#include "output.h"

namespace cli {

/// "f16", as --kv spells it.
const char* kvFormatName(oriel_kv_format format);
/// Bytes by purpose and the choices of a plan.
Json planFields(const oriel_plan& plan);
/// The object `predicted`: what is known before anything has been measured; null is "not known".
Json predictedFields(const oriel_plan& plan);
/// "length", "stop", "callback", "cancelled".
const char* stopReasonName(oriel_stop_reason reason);

}  // namespace cli
