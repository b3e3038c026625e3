// Python's ways to put values into a string.
#pragma once

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// str.format(): {}, {0}, {name}, {{ and }}; nothing about width or kind.
bool formatBraces(Interpreter* run, const Value& format, const Args& args, Value* out);

}  // namespace oriel_internal::jinja
