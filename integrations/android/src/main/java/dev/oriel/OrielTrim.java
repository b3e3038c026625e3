package dev.oriel;

/**
 * Levels of {@link OrielModel#trim}. Each level includes the levels before it. trim_levels of {@link
 * Oriel#describePlan} has the remaining bytes.
 */
public enum OrielTrim {
  NONE,
  /** Activations, staging, compiled kernels. */
  SCRATCH,
  /** Weights. Resuming reads the model file again. */
  WEIGHTS,
  /** Caches, written to files. */
  CACHE,
  /** Caches, without files. Resuming reads the transcripts again (option transcript). */
  ALL
}
