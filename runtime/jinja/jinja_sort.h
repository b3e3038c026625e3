// Ordering of values.
#pragma once

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// Stable sort of `items` by `keys`. The caller must own both exclusively.
bool sortBy(Interpreter* run, List* keys, List* items, bool reverse);
/// Sorts a dict's pairs by key.
bool sortPairs(Interpreter* run, List* pairs);
/// Lowercases strings; other values are unchanged.
bool foldCase(Interpreter* run, const Value& value, Value* out);

}  // namespace oriel_internal::jinja
