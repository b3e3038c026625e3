// Options given by name.
#pragma once

#include "base/choices.h"
#include "base/log.h"
#include "json/json.h"
#include "options/option_table.h"

namespace oriel_internal {

/// Writes the settings into `options`: LoadOptions, SessionSettings or ReplyChoices, by `scope`. Texts are not copied.
/// `lists` may be null for scopes without numeric lists. Returns ORIEL_ERROR_ARGUMENT, with a line, for an unknown name,
/// a name of another scope or a refused value.
Status applySettings(OptionScope scope, const oriel_setting* settings, size_t count, const Log& log,
                     void* options, LoadLists* lists);

/// Parses a front field's text by the row of that name. Null changes nothing.
Status applyText(OptionScope scope, const char* name, const char* text, const Log& log,
                 void* options);

/// Refuses numbers outside the rows' ranges. Front fields arrive unchecked.
Status checkRanges(OptionScope scope, const void* options, const Log& log);

/// Writes the values that differ from the default as members of a JSON object, {"window": "4096", ...}. Texts over 256
/// bytes are truncated. Rows for tests are left out.
void writeSettings(OptionScope scope, const void* options, const JsonSink& sink);

}  // namespace oriel_internal
