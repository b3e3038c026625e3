package dev.oriel;

/** A conversation in numbers. */
public final class OrielStats {
  static final int COUNT = 16;

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
  /** Steps that the device carried out since the session was opened. */
  public final long submissions;
  /** Experts on file that tokens chose and that were in a slot; and those that were read. */
  public final long expertHits;
  public final long expertMisses;
  /** Rows on file that tokens needed; and those that were read. */
  public final long rowsWanted;
  public final long rowsRead;
  /** Tokens that were read again, to go back or to forget (models that keep a state). */
  public final long tokensReadAgain;
  /** Guesses that were verified ({@link OrielOptions#draftTokens}), and those that were right. */
  public final long tokensDrafted;
  public final long tokensAccepted;
  /** Tokens in the file of turns that may come back, and those that came back and are seen. */
  public final long tokensKept;
  public final long tokensRecalled;

  OrielStats(long[] n) {
    position = n[0];
    windowUsed = (int) n[1];
    windowCapacity = (int) n[2];
    evicted = n[3];
    deviceBytes = n[4];
    hostBytes = n[5];
    submissions = n[6];
    expertHits = n[7];
    expertMisses = n[8];
    rowsWanted = n[9];
    rowsRead = n[10];
    tokensReadAgain = n[11];
    tokensDrafted = n[12];
    tokensAccepted = n[13];
    tokensKept = n[14];
    tokensRecalled = n[15];
  }
}
