#include "exec/thought_cap.h"

#include <cstring>

namespace oriel_internal {

void ThoughtCap::count(const ReplyReader& reader) {
  tokens_ += thinks_ && reader.inThought() ? 1 : 0;
  thinks_ = reader.inThought();
  closing_ = closing_ && thinks_;
}

Status ThoughtCap::close(const ReplyReader& reader, const Tokenizer& tokenizer,
                         Workspace* workspace) {
  thinks_ = reader.inThought();
  if (!active() || !thinks_ || tokens_ < most_ || closing_) {
    return kOk;
  }
  closing_ = true;
  const char* const end = reader.thoughtEnd();
  taken_ = 0;
  n_ids_ = 1;
  ids_[0] = tokenizer.find(end, std::strlen(end));
  if (ids_[0] >= 0) {
    return kOk;
  }
  const char* const rest = end + reader.thoughtEndBegun();
  EncodeOptions options;
  options.special = true;
  options.continues = true;
  size_t count = 0;
  ORIEL_TRY(tokenizer.encode(rest, std::strlen(rest), options, workspace, Log(), ids_, kMostMark,
                             &count));
  n_ids_ = static_cast<uint32_t>(count);
  return kOk;
}

}  // namespace oriel_internal
