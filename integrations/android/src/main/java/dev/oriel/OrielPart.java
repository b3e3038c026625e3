package dev.oriel;

/** A stretch of a reply and what it is. */
public final class OrielPart {
  public enum Kind {
    /** Of the answer. */
    TEXT,
    /** What the model thinks before it answers. */
    THOUGHT,
    /** A tool call: text is the tool's name. */
    CALL_BEGUN,
    /** More of its arguments: joined they are one JSON object. */
    CALL_ARGUMENTS,
    /** The call is complete. */
    CALL_ENDED
  }

  private static final Kind[] KINDS = Kind.values();

  public final Kind kind;
  /** Of a call: its number in the reply, from 0. */
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
