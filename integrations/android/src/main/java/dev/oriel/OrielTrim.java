package dev.oriel;

/**
 * How much memory {@link OrielSession#trim} gives back. Each level gives back what those before it
 * do; {@link OrielPlan#trimBytes} says what stays.
 */
public enum OrielTrim {
  NONE,
  /** Activations, staging, compiled kernels. */
  SCRATCH,
  /** Weights, which are read from the model's file again. */
  WEIGHTS,
  /** The conversation's cache, which goes to a file. */
  CACHE,
  /**
   * The same without a file: the conversation is built again from its transcript ({@link
   * OrielOptions#transcriptBytes}).
   */
  ALL
}
