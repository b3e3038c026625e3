package dev.oriel;

/** The vector of a text. */
public final class OrielEmbedding {
  /** The tokens whose vectors are used. */
  public enum Pooling {
    /** As the file says, else MEAN. */
    AUTO,
    MEAN,
    LAST,
    FIRST
  }

  /** Length 1 if normalised. */
  public final float[] values;
  /** Tokens of the text. */
  public final int tokens;

  OrielEmbedding(float[] values, int tokens) {
    this.values = values;
    this.tokens = tokens;
  }
}
