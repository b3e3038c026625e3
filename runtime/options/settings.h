// Options that are given by name.
#pragma once

#include "base/limits.h"
#include "base/log.h"
#include "options/option_table.h"
#include "oriel/oriel.h"

namespace oriel_internal {

/// Lists that are given by name; the options point here.
struct SettingLists {
  uint8_t window_shares[kMaxLayers];
  uint8_t f16_layers[kMaxLayers];
  uint32_t session_windows[kMaxSessions];
};

/// What session settings fill: the session's struct, and the conversation's.
struct SessionSettings {
  SessionSettings session;
  ChatSettings chat;
};

/// The options of calls that take LoadOptions, with what settings need besides.
struct LoadOptions : LoadOptions {
  SettingLists lists;
};

/// Writes values over the fields of `options`, which is LoadOptions, SessionSettings or ReplyChoices. Texts are
/// not copied. `lists` may be null where the scope has none. ORIEL_ERROR_ARGUMENT, with a line: a name that is not known or
/// belongs to another scope, a value that the row does not allow.
Status applySettings(OptionScope scope, const oriel_setting* settings, size_t count, const Log& log,
                     void* options, SettingLists* lists);

}  // namespace oriel_internal
