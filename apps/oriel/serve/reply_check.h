// Compiles what a reply is held to before the request waits for a session: a schema that cannot be held is refused at once.
#pragma once

#include <mutex>

#include "model_handle.h"
#include "serve/reply_request.h"

namespace cli {

class ReplyCheck {
 public:
  /// All live longer. `base` and `reply`: the options of every session and reply.
  ReplyCheck(const Model& model, const Settings& base, const Settings& reply)
      : model_(model), base_(base), reply_(reply) {}

  /// Throws ApiError that names the field; else the request knows the tools whose arguments stay unchecked.
  void check(ReplyRequest* request);

 private:
  struct Result {
    std::string error;  ///< empty: none
    std::vector<std::string> unchecked;
  };
  Result compile(const ChatForm& form, const ReplyForm& held, const char* tool_choice);
  std::string guiltyField(const ReplyRequest& request);

  const Model& model_;
  const Settings& base_;
  const Settings& reply_;
  std::mutex lock_;  ///< one at a time: compiling borrows up to 64 MiB
};

}  // namespace cli
