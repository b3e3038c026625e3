package dev.oriel;

/** A piece of a reply. */
public final class OrielPart {
  public enum Kind {
    /** A piece of the answer. */
    TEXT,
    /** Reasoning before the answer. */
    THOUGHT,
    /** A tool call begins; text is the tool's name. */
    CALL_BEGUN,
    /** A piece of the arguments; joined they are one JSON object. */
    CALL_ARGUMENTS,
    /** The call is complete. */
    CALL_ENDED
  }

  private static final Kind[] KINDS = Kind.values();

  public final Kind kind;
  /** Number of the call in the reply, from 0. */
  public final int call;
  public final String text;

  OrielPart(int kind, int call, String text) {
    this.kind = KINDS[kind];
    this.call = call;
    this.text = text;
  }

  @Override
  public String toString() {
    return kind + " " + text;
  }
}
