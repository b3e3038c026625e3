package dev.oriel;

/** Options of a load: {@code new OrielOptions().set("memory", "600MB").set("sessions", 2)}. */
public final class OrielOptions extends OrielSettings<OrielOptions> {
  /** Gets errors and warnings until the model is closed. */
  public OrielLog log;
  /** Gets the bytes of weights, on the loading thread. */
  public OrielProgress progress;
}
