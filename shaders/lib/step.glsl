// Binding 1 of every kernel: what changes from step to step.
layout(std430, set = 0, binding = 1) readonly buffer Step {
  StepHeader header;
  TokenStep tokens[];
} step_;
