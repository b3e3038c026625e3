package dev.oriel;

/**
 * Receives a reply while it is generated, on the calling thread. False ends the reply. An exception
 * ends it too and reaches the caller.
 */
public interface OrielListener extends OrielText {
  /** Text as in {@link OrielReply#text}. */
  @Override
  default boolean onText(String text) {
    return true;
  }

  /** Answer, thoughts and calls. Only in a chat. */
  default boolean onPart(OrielPart part) {
    return true;
  }

  /** Each token. Incomplete characters come with a later token. */
  default boolean onToken(OrielToken token) {
    return true;
  }
}
