// Compiles a reply's constraints before the request waits for a session, so that unsupported schemas are refused at
// once.
#pragma once

#include <mutex>

#include "model_handle.h"
#include "serve/message.h"

namespace cli {

class ReplyCheck {
 public:
  /// The arguments must outlive it. `base` and `reply`: options of every session and reply.
  ReplyCheck(const Model& model, const Settings& base, const Settings& reply)
      : model_(model), base_(base), reply_(reply) {}

  /// Throws ApiError that names the field; otherwise stores the unchecked tools in the request.
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
