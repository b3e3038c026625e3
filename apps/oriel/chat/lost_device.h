// Conversations whose device was lost go on on the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "model_handle.h"

namespace cli {

/// Whether the session can do no more work.
bool deviceLost(const Session& session);

/// What another session is to be given to go on: what this one holds of its first `end` tokens behind the model's
/// prefix, and what closes the last reply. Empty: nothing was said yet.
std::vector<int32_t> tokensToKeep(const Model& model, const ChatFormatOptions& chat,
                                  const Session& session, uint64_t end);

/// Loads the model again on the CPU, in the same memory and with the same options otherwise. Throws Failure.
void loadOnCpu(CommonOptions options, uint32_t pinned_tokens, Model* model);

}  // namespace cli
