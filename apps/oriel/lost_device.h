// A conversation whose device was lost goes on on the CPU.
#pragma once

#include <cstdint>

#include "model_handle.h"

namespace cli {

/// Whether the session can do no more work.
bool deviceLost(const Session& session);

/// Loads the model again on the CPU, with the same options otherwise, and appends what the session held of its first
/// `end` tokens and what closes the last reply. Says so in one line. False: it held nothing, the session is new.
/// Throws Failure where the CPU cannot do it either.
bool goOnOnCpu(CommonOptions options, const ChatFormatOptions& chat, uint32_t pinned_tokens,
               uint64_t end, Model* model, Session* session);

}  // namespace cli
