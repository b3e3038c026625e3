package dev.oriel;

/** What {@link OrielSession#recover} did. */
public final class OrielRecovered {
  /** What the model runs on now. */
  public final String device;
  public final boolean onCpu;
  /** The same device and driver as before. */
  public final boolean sameDevice;
  /** Bit for bit the state that was lost. */
  public final boolean exact;
  public final long tokensHeld;
  public final long tokensRead;
  /** Between the first tokens and those that are held. */
  public final long tokensDropped;

  OrielRecovered(String device, double[] n) {
    this.device = device;
    onCpu = n[0] != 0;
    sameDevice = n[1] != 0;
    exact = n[2] != 0;
    tokensHeld = (long) n[3];
    tokensRead = (long) n[4];
    tokensDropped = (long) n[5];
  }
}
