// Filters by name.
#pragma once

#include <cstdint>

#include "jinja/jinja_run.h"

namespace oriel_internal::jinja {

/// kUnknown: no filter has that name.
uint16_t filterNamed(const JsonText& name);
/// Enumerates all names; null at the end.
const char* filterName(uint16_t filter);
bool applyFilter(Interpreter* run, uint16_t filter, const Value& in, const Args& args, Value* out);

// In jinja_filters_text.cpp.
bool filterTrim(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterReplace(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterIndent(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterTruncate(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterFormat(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterEscape(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterWordcount(Interpreter* run, const Value& in, const Args& args, Value* out);
// In jinja_filters_list.cpp.
bool filterMap(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSelect(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterReject(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSelectattr(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterRejectattr(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSort(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterDictsort(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterUnique(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterMin(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterMax(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterSum(Interpreter* run, const Value& in, const Args& args, Value* out);
bool filterJoin(Interpreter* run, const Value& in, const Args& args, Value* out);
/// A list that can be iterated once.
bool giveGenerator(Interpreter* run, Ref<List> list, Value* out);
bool filterReverse(Interpreter* run, const Value& in, const Args& args, Value* out);

}  // namespace oriel_internal::jinja
