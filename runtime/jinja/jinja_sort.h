// Order among values.
#pragma once

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// Sorts `items` by `keys`, both only the caller's, stable.
bool sortBy(Interpreter* run, List* keys, List* items, bool reverse);
/// Pairs of a dict by their keys.
bool sortPairs(Interpreter* run, List* pairs);
/// Strings in small letters, everything else as it is.
bool foldCase(Interpreter* run, const Value& value, Value* out);

}  // namespace oriel_internal::jinja
