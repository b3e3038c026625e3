package dev.oriel;

/** Receives a reply while it is generated, on the calling thread. */
public interface OrielText {
  /**
   * @param text whole characters, never empty
   * @return false ends the reply; an exception ends it too and reaches the caller
   */
  boolean onText(String text);
}
