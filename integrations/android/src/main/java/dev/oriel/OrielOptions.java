package dev.oriel;

/**
 * How a model is loaded, such as {@code new OrielOptions().set("memory", "600MB").set("sessions", 2)}. Every default is
 * sound.
 */
public final class OrielOptions extends OrielSettings<OrielOptions> {
  /** Told of errors and warnings, for as long as the model is open. */
  public OrielLog log;
  /** Called on the loading thread while weights are read. */
  public OrielProgress progress;
}
