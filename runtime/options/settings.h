// Options that are given by name.
#pragma once

#include "base/choices.h"
#include "base/log.h"
#include "json/json.h"
#include "options/option_table.h"

namespace oriel_internal {

/// Writes values over the fields of `options`: LoadOptions, SessionSettings or ReplyChoices, as `scope` says. Texts are not
/// copied. `lists` may be null for scopes without numeric lists. ORIEL_ERROR_ARGUMENT, with a line: an unknown name, a name
/// of another scope, a value that the row refuses.
Status applySettings(OptionScope scope, const oriel_setting* settings, size_t count, const Log& log,
                     void* options, LoadLists* lists);

/// A front field's text, as the row of that name reads it. Null: nothing is written.
Status applyText(OptionScope scope, const char* name, const char* text, const Log& log,
                 void* options);

/// Refuses numbers that the rows do not allow: those of front fields come unchecked.
Status checkRanges(OptionScope scope, const void* options, const Log& log);

/// The values in `options` as members of a JSON object, {"window": "4096", ...}: those that differ from the default.
/// A text that is longer than 256 bytes is cut. The tests' rows are left out.
void writeSettings(OptionScope scope, const void* options, const JsonSink& sink);

}  // namespace oriel_internal
