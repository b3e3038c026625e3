package dev.oriel;

/** Options of a session: {@code new OrielSessionOptions().set("tools", json)}. */
public final class OrielSessionOptions extends OrielSettings<OrielSessionOptions> {
  /**
   * Gets the tokens that a call has read, after each prefill batch, on the thread of the call. Recurrent models also
   * count tokens that they read again. Used by forks too.
   */
  public OrielProgress progress;
}
