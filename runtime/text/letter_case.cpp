#include "text/letter_case.h"

namespace oriel_internal {
namespace {

// Small letters [first, last], each `step`th; their capitals lie `below` lower.
struct CaseRange {
  uint16_t first;
  uint16_t last;
  uint16_t step;
  int16_t below;
};
constexpr CaseRange kCases[] = {
    {0x61, 0x7A, 1, 32},     {0xE0, 0xF6, 1, 32},     {0xF8, 0xFE, 1, 32},
    {0x101, 0x12F, 2, 1},    {0x133, 0x137, 2, 1},    {0x13A, 0x148, 2, 1},
    {0x14B, 0x177, 2, 1},    {0xFF, 0xFF, 1, -121},   {0x17A, 0x17E, 2, 1},
    {0x1CE, 0x1DC, 2, 1},    {0x1DF, 0x1EF, 2, 1},    {0x1F9, 0x21F, 2, 1},
    {0x223, 0x233, 2, 1},    {0x371, 0x373, 2, 1},    {0x3AC, 0x3AC, 1, 38},
    {0x3AD, 0x3AF, 1, 37},   {0x3B1, 0x3C1, 1, 32},   {0x3C3, 0x3CB, 1, 32},
    {0x3CC, 0x3CC, 1, 64},   {0x3CD, 0x3CE, 1, 63},   {0x3D9, 0x3EF, 2, 1},
    {0x430, 0x44F, 1, 32},   {0x450, 0x45F, 1, 80},   {0x461, 0x481, 2, 1},
    {0x48B, 0x4BF, 2, 1},    {0x4C2, 0x4CE, 2, 1},    {0x4CF, 0x4CF, 1, 15},
    {0x4D1, 0x52F, 2, 1},    {0x561, 0x586, 1, 48},   {0x1E01, 0x1E95, 2, 1},
    {0x1EA1, 0x1EFF, 2, 1},  {0x2170, 0x217F, 1, 16}, {0x24D0, 0x24E9, 1, 26},
    {0xFF41, 0xFF5A, 1, 32},
};

bool isIn(const CaseRange& range, int64_t small) {
  return small >= range.first && small <= range.last && (small - range.first) % range.step == 0;
}

}  // namespace

uint32_t toUpper(uint32_t code_point) {
  if (code_point < 0x80) {
    return code_point >= 'a' && code_point <= 'z' ? code_point - 32 : code_point;
  }
  for (const CaseRange& range : kCases) {
    if (isIn(range, code_point)) {
      return static_cast<uint32_t>(static_cast<int64_t>(code_point) - range.below);
    }
  }
  return code_point == 0xB5 ? 0x39C : code_point == 0x3C2 ? 0x3A3 : code_point;
}

uint32_t toLower(uint32_t code_point) {
  if (code_point < 0x80) {
    return code_point >= 'A' && code_point <= 'Z' ? code_point + 32 : code_point;
  }
  for (const CaseRange& range : kCases) {
    if (isIn(range, static_cast<int64_t>(code_point) + range.below)) {
      return static_cast<uint32_t>(static_cast<int64_t>(code_point) + range.below);
    }
  }
  return code_point == 0x1E9E ? 0xDF : code_point;
}

}  // namespace oriel_internal
