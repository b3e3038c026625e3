#include "plan/layer_groups.h"

#include <algorithm>

namespace cli {
namespace {

const char* kindName(oriel_layer_kind kind) {
  switch (kind) {
    case ORIEL_LAYERS_SESSION:
      return "session";
    case ORIEL_LAYERS_SLIDING:
      return "sliding";
    case ORIEL_LAYERS_CONVOLUTION:
      return "convolution";
    case ORIEL_LAYERS_STATE:
      return "state";
  }
  return "?";
}

}  // namespace

SlidingLayers slidingLayers(const oriel_layer_group* groups, uint32_t count) {
  SlidingLayers all;
  for (uint32_t i = 0; i < count; ++i) {
    if (groups[i].kind == ORIEL_LAYERS_SLIDING) {
      all.layers += groups[i].layers;
      all.window_tokens = std::max(all.window_tokens, groups[i].window_tokens);
      all.ring_tokens = std::max(all.ring_tokens, groups[i].ring_tokens);
      all.bytes += groups[i].bytes;
    }
  }
  return all;
}

uint64_t stateBytes(const oriel_layer_group* groups, uint32_t count) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bool fixed =
        groups[i].kind == ORIEL_LAYERS_CONVOLUTION || groups[i].kind == ORIEL_LAYERS_STATE;
    bytes += fixed ? groups[i].bytes : 0;
  }
  return bytes;
}

Json groupsJson(const oriel_layer_group* groups, uint32_t count, bool bytes) {
  Json list = Json::array();
  for (uint32_t i = 0; i < count; ++i) {
    Json entry;
    entry["kind"] = kindName(groups[i].kind);
    entry["layers"] = groups[i].layers;
    entry["window_tokens"] = groups[i].window_tokens;
    if (bytes) {
      entry["ring_tokens"] = groups[i].ring_tokens;
      entry["bytes_per_token"] = groups[i].bytes_per_token;
      entry["bytes"] = groups[i].bytes;
    }
    list.push_back(entry);
  }
  return list;
}

std::string groupsText(const oriel_layer_group* groups, uint32_t count) {
  std::string text;
  for (uint32_t i = 1; i < count; ++i) {
    const std::string window = std::to_string(groups[i].window_tokens);
    text += "; " + std::to_string(groups[i].layers);
    switch (groups[i].kind) {
      case ORIEL_LAYERS_SESSION:
        text += " layers see the last " + window + " of the window";
        break;
      case ORIEL_LAYERS_SLIDING:
        text += " layers see the last " + window;
        break;
      case ORIEL_LAYERS_CONVOLUTION:
        text += " layers are convolutions of the last " + window;
        break;
      case ORIEL_LAYERS_STATE:
        text += " layers keep a state";
        break;
    }
  }
  return text;
}

}  // namespace cli
