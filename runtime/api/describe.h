// The describe calls' JSON (docs/describe.md).
#pragma once

#include "api/api.h"
#include "json/json_writer.h"

namespace oriel_internal {

/// Members of the open object.
void writePlan(const PlanResult& plan, JsonWriter* out);
/// `name` is null for the outermost object.
void writePlanObject(const char* name, const PlanResult& plan, JsonWriter* out);
/// `with_bytes`: of a plan, not of a file.
void writeGroups(const LayerGroup* groups, uint32_t count, bool with_bytes, JsonWriter* out);
const char* kvFormatText(oriel_kv_format format);
/// Whether (text, capacity, needed) can be filled.
inline bool validBuffer(const char* text, size_t capacity, const size_t* needed) {
  return needed != nullptr && (text != nullptr || capacity == 0);
}
/// The numbers that apps branch on.
oriel_plan publicPlan(const PlanResult& plan);

}  // namespace oriel_internal
