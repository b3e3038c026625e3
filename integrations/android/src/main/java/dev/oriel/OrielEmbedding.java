package dev.oriel;

/** A text as a vector. */
public final class OrielEmbedding {
  /** Whose vectors become that of a text. */
  public enum Pooling {
    /** As the file says; the mean where it says nothing. */
    AUTO,
    MEAN,
    LAST,
    FIRST
  }

  /** Of length 1, unless asked for as they are. */
  public final float[] values;
  /** That the text has. */
  public final int tokens;

  OrielEmbedding(float[] values, int tokens) {
    this.values = values;
    this.tokens = tokens;
  }
}
