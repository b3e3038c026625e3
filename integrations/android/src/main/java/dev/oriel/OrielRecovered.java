package dev.oriel;

/** Result of {@link OrielSession#recover}. */
public final class OrielRecovered {
  /** The current device. */
  public final String device;
  public final boolean onCpu;
  /** The same device and driver as before. */
  public final boolean sameDevice;
  /** The state is bit for bit the lost one. */
  public final boolean exact;
  public final long tokensHeld;
  public final long tokensRead;
  /** Unknown tokens between the sinks and the held tokens. */
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
