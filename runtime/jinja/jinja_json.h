// Values as JSON, in the style of Python's json.dumps().
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// The filter tojson: ensure_ascii, indent, separators, sort_keys.
bool filterTojson(Interpreter* run, const Value& in, const Args& args, Value* out);

// Python's string formatting.

/// str.format(): {}, {0}, {name}, {{ and }}; without width and conversion.
bool formatBraces(Interpreter* run, const Value& format, const Args& args, Value* out);

}  // namespace oriel_internal::jinja
