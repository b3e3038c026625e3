// Ops whose work the products after them do: shaders/lib/made_row.glsl.
#pragma once

#include "plan/plan.h"
#include "shaders/shared/made_row.h"
#include "vulkan/device_caps.h"

namespace oriel_internal {

/// True if kernels for one vector may make their input themselves.
bool makesInputs(const DeviceCaps& caps);

/// True if op `index` is not dispatched, because all products that read its row make the row themselves: a norm, an
/// activation or the merge of split attention, if expectedUs() says that it pays. Independent of kernel choices.
bool isMadeByReaders(const Plan& plan, StepList list, uint32_t index, const DeviceCaps& caps);

/// True if it pays that a product copies and stages its input itself, instead of an op before it.
bool stagesItself(const Op& product, const DeviceCaps& caps);

/// How a product makes its input: kMakeCopied or another kMake constant. `maker`: null for a copy.
uint32_t makeOf(const Op* maker);

/// `product` with the inputs of the op that makes its row.
Op withMaker(const Op& product, const Op& maker);

}  // namespace oriel_internal
