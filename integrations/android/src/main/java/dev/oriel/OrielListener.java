package dev.oriel;

/**
 * Receives a reply as it is generated, with what it means, on the thread that asked for it. False
 * from any of these stops the reply here; what is thrown stops it, too, and reaches the caller.
 */
public interface OrielListener extends OrielText {
  /** Of all that is written, as {@link OrielReply#text}. */
  @Override
  default boolean onText(String text) {
    return true;
  }

  /** The answer, what is thought, and calls, told apart. In a chat. */
  default boolean onPart(OrielPart part) {
    return true;
  }

  /** Every token. Characters that it did not complete come with a later one. */
  default boolean onToken(OrielToken token) {
    return true;
  }
}
