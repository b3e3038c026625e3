// A loaded model with its sessions.
#pragma once

#include <cstdint>
#include <string>

#include "model_handle.h"
#include "serve/reply_check.h"
#include "serve/service_options.h"
#include "serve/slots.h"

namespace cli {

/// Memory for loading `options.common.model` with as many sessions as fit. Sets their number and the system prompt's
/// length in *options. 0: unknown, or it does not fit.
uint64_t planLoad(ServiceOptions* options);

class LoadedModel {
 public:
  /// `options` must be planned. Loads the model and reads the system prompt. Throws Failure.
  explicit LoadedModel(ServiceOptions options, std::string name);

  /// Throws ApiError if the server has a --system prompt.
  void checkWithoutSystem() const;
  /// Removes a system prompt equal to the server's, which every session has.
  void leaveOutSystem(ReplyRequest* request) const;

  const ServiceOptions options;
  const std::string name;  ///< name for clients
  const Model model;
  Slots slots;
  ReplyCheck check;
};

}  // namespace cli
