package dev.oriel;

/** Gets the progress of a call, in bytes of weights or in tokens. */
public interface OrielProgress {
  /** False stops the call, which then throws CANCELLED. */
  boolean onProgress(long done, long total);
}
