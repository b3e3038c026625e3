// A model in memory with its sessions.
#pragma once

#include <cstdint>
#include <string>

#include "model_handle.h"
#include "serve/reply_check.h"
#include "serve/service_options.h"
#include "serve/slots.h"

namespace cli {

/// What loading `options.common.model` will take, with as many sessions as fit: these and the system prompt's length are
/// set in *options. 0: not known, or it does not fit.
uint64_t planLoad(ServiceOptions* options);

class LoadedModel {
 public:
  /// Of options that were planned. Loads the model and reads the system prompt. Throws Failure.
  explicit LoadedModel(ServiceOptions options, std::string name);

  /// Throws ApiError where every session begins with the server's --system.
  void checkWithoutSystem() const;
  /// The system prompt is what every session begins with.
  void leaveOutSystem(ReplyRequest* request) const;

  const ServiceOptions options;
  const std::string name;  ///< as clients see it
  const Model model;
  Slots slots;
  ReplyCheck check;
};

}  // namespace cli
