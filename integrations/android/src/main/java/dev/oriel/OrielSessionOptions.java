package dev.oriel;

/** How a conversation is held, such as {@code new OrielSessionOptions().set("tools", json)}. */
public final class OrielSessionOptions extends OrielSettings<OrielSessionOptions> {
  /**
   * Told of tokens that a call has read: those of a message, and those that it reads again, to go back or to forget
   * (models that keep a state). On the thread of that call, after every prefill batch, for as long as the session and
   * its forks are open. False cancels the call.
   */
  public OrielProgress progress;
}
