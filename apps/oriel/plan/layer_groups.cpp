#include "plan/layer_groups.h"

#include <algorithm>

namespace cli {

SlidingLayers slidingLayers(const Json& groups) {
  SlidingLayers all;
  for (const Json& group : groups) {
    if (group["kind"] == "sliding") {
      all.layers += group["layers"].get<uint64_t>();
      all.window_tokens = std::max(all.window_tokens, group["window_tokens"].get<uint64_t>());
      all.ring_tokens = std::max(all.ring_tokens, group.value("ring_tokens", uint64_t{0}));
      all.bytes += group.value("bytes", uint64_t{0});
    }
  }
  return all;
}

std::string groupsText(const Json& groups) {
  std::string text;
  for (size_t i = 1; i < groups.size(); ++i) {
    const Json& group = groups[i];
    const std::string window = group["window_tokens"].dump();
    text += "; " + group["layers"].dump() +
            (group["kind"] == "session"       ? " layers see the last " + window + " of the window"
             : group["kind"] == "sliding"     ? " layers see the last " + window
             : group["kind"] == "convolution" ? " layers are convolutions of the last " + window
                                              : " layers keep a state");
  }
  return text;
}

}  // namespace cli
