package dev.oriel;

/** Numbers of a session. {@link OrielSession#describe} has more. */
public final class OrielStats {
  /** Tokens so far, as in {@link OrielSession#goBackTo(long)}. */
  public final long position;
  /** Tokens that no query will see again. */
  public final long evicted;
  /** First token after the sinks that the newest token saw, and the first that is stored. */
  public final long firstVisible;
  public final long firstStored;
  /** Tokens below this number are never evicted. */
  public final int sinksUsed;
  /** Tokens that the newest token saw, and their limit. */
  public final int windowUsed;
  public final int windowCapacity;
  public final int turns;
  /** Allocated now. */
  public final long deviceBytes;
  public final long hostBytes;

  OrielStats(double[] n) {
    position = (long) n[0];
    evicted = (long) n[1];
    firstVisible = (long) n[2];
    firstStored = (long) n[3];
    sinksUsed = (int) n[4];
    windowUsed = (int) n[5];
    windowCapacity = (int) n[6];
    turns = (int) n[7];
    deviceBytes = (long) n[8];
    hostBytes = (long) n[9];
  }
}
