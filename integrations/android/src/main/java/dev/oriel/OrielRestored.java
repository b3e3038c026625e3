package dev.oriel;

/** Result of {@link OrielSession#restore}. */
public final class OrielRestored {
  public enum How {
    /** Bit for bit. */
    EXACTLY,
    /** Into another window, prefill batch or format. */
    CARRIED,
    /** The text was read again. */
    READ
  }

  public final How how;
  /** Values were converted to another format. */
  public final boolean rounded;
  public final long tokensHeld;
  /** In the file but not in this session. */
  public final long tokensDropped;
  public final long tokensRead;

  OrielRestored(double[] n) {
    how = How.values()[(int) n[0]];
    rounded = n[1] != 0;
    tokensHeld = (long) n[2];
    tokensDropped = (long) n[3];
    tokensRead = (long) n[4];
  }
}
