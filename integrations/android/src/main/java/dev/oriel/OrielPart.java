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
    CALL_ENDED,
    /** With the option value_parts, in addition: a piece of a string of an answer in JSON, escapes decoded. */
    STRING,
    /** A whole number, true, false or null. */
    LITERAL,
    /** A string, an object or an array is complete. */
    VALUE_ENDED
  }

  private static final Kind[] KINDS = Kind.values();

  public final Kind kind;
  /** Number of the call in the reply, from 0. */
  public final int call;
  public final String text;
  /** Of a value: its JSON Pointer (RFC 6901). Else null. */
  public final String path;

  OrielPart(int kind, int call, String text, String path) {
    this.kind = KINDS[kind];
    this.call = call;
    this.text = text;
    this.path = path;
  }

  @Override
  public String toString() {
    return kind + " " + text;
  }
}
