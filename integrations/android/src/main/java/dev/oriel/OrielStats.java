package dev.oriel;

/** A conversation in numbers. */
public final class OrielStats {
  static final int COUNT = 6;

  /** Tokens so far; what {@link OrielSession#rewind} takes. */
  public final long position;
  /** Tokens that the latest one saw. */
  public final int windowUsed;
  public final int windowCapacity;
  /** Tokens that have been forgotten. */
  public final long evicted;
  /** Really allocated. */
  public final long deviceBytes;
  public final long hostBytes;

  OrielStats(long[] n) {
    position = n[0];
    windowUsed = (int) n[1];
    windowCapacity = (int) n[2];
    evicted = n[3];
    deviceBytes = n[4];
    hostBytes = n[5];
  }
}
