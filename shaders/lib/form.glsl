// The form of a kernel: constants that platform/vulkan/shader_table.cpp sets before a driver sees the module. Branches on
// them cost nothing, neither in what a driver compiles nor in what a device runs.
layout(constant_id = 8) const uint kFormFirst = 0u;   // type of weights, or format of keys
layout(constant_id = 9) const uint kFormSecond = 0u;  // format of values
layout(constant_id = 10) const uint kFormTexels = 0u;
const bool kTexels = kFormTexels != 0u;  // reads texel buffers in place of storage buffers
