// Python's string formatting.
#pragma once

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// str.format(): {}, {0}, {name}, {{ and }}; without width and conversion.
bool formatBraces(Interpreter* run, const Value& format, const Args& args, Value* out);

}  // namespace oriel_internal::jinja
