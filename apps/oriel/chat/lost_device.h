// Continues conversations after a lost device.
#pragma once

#include "model_handle.h"

namespace cli {

/// True if the session's device is lost.
bool deviceLost(const Session& session);

/// Continues the session at its position, on the same device or another one. Throws Failure.
void recover(const Session& session, Model* model);

/// "on the CPU".
std::string placeOf(const Model& model);

}  // namespace cli
