package dev.oriel;

/** A conversation in numbers; {@link OrielSession#describe} has the rest. */
public final class OrielStats {
  /** Tokens so far; what {@link OrielSession#goBackTo(long)} takes. */
  public final long position;
  /** Tokens that no query will see again. */
  public final long evicted;
  /** First token after the sinks that the latest one saw; and that is still stored. */
  public final long firstVisible;
  public final long firstStored;
  /** Tokens below this number stay. */
  public final int sinksUsed;
  /** Tokens that the latest one saw, of so many. */
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
