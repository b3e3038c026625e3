package dev.oriel;

/** Hears of bytes of weights that are read, or of tokens. */
public interface OrielProgress {
  /** Return false to stop: the call then throws CANCELLED. */
  boolean onProgress(long done, long total);
}
