// Conversations whose device was lost go on.
#pragma once

#include "model_handle.h"

namespace cli {

/// Whether the session can do no more work.
bool deviceLost(const Session& session);

/// The session goes on where it stood, on the device that was lost or another one. Throws Failure.
void recover(const Session& session, Model* model);

/// "on the CPU", as the model says it.
std::string placeOf(const Model& model);

}  // namespace cli
