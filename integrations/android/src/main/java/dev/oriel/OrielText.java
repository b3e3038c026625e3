package dev.oriel;

/** Receives a reply as it is generated, on the thread that asked for it. */
public interface OrielText {
  /**
   * @param text whole characters, never empty
   * @return false to stop here; what is thrown stops the reply, too, and reaches the caller
   */
  boolean onText(String text);
}
