package dev.oriel;

/**
 * How much memory {@link OrielModel#trim} gives back. Each level gives back what those before it
 * do; trim_levels of {@link Oriel#describePlan} says what stays.
 */
public enum OrielTrim {
  NONE,
  /** Activations, staging, compiled kernels. */
  SCRATCH,
  /** Weights, which are read from the model's file again. */
  WEIGHTS,
  /** The conversations' caches, which go to files. */
  CACHE,
  /**
   * The same without a file: conversations are built again from their transcripts (option
   * transcript).
   */
  ALL
}
