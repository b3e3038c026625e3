package dev.oriel;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The parts of a reply. */
public final class OrielParsed {
  static final OrielParsed NOTHING = new Builder().build();

  /** A tool call. */
  public static final class Call {
    public final String name;
    /** A JSON object, cut off if the call is not complete. */
    public final String arguments;
    /** False: the reply ended inside the call. */
    public final boolean complete;

    Call(String name, String arguments, boolean complete) {
      this.name = name;
      this.arguments = arguments;
      this.complete = complete;
    }

    @Override
    public String toString() {
      return name + arguments;
    }
  }

  /** The answer, without thought and calls. */
  public final String text;
  /** Empty: none. */
  public final String thought;
  public final List<Call> calls;

  private OrielParsed(String text, String thought, List<Call> calls) {
    this.text = text;
    this.thought = thought;
    this.calls = Collections.unmodifiableList(calls);
  }

  /** Joins streamed parts. */
  static final class Builder {
    private static final class Open {
      final String name;
      final StringBuilder arguments = new StringBuilder();
      boolean complete;

      Open(String name) {
        this.name = name;
      }
    }

    private final StringBuilder text = new StringBuilder();
    private final StringBuilder thought = new StringBuilder();
    private final List<Open> calls = new ArrayList<>();

    void add(OrielPart part) {
      switch (part.kind) {
        case TEXT:
          text.append(part.text);
          break;
        case THOUGHT:
          thought.append(part.text);
          break;
        case CALL_BEGUN:
          calls.add(new Open(part.text));
          break;
        case CALL_ARGUMENTS:
          calls.get(part.call).arguments.append(part.text);
          break;
        case CALL_ENDED:
          calls.get(part.call).complete = true;
          break;
        default:
          break;
      }
    }

    OrielParsed build() {
      List<Call> all = new ArrayList<>();
      for (Open open : calls) {
        all.add(new Call(open.name, open.arguments.toString(), open.complete));
      }
      return new OrielParsed(text.toString(), thought.toString(), all);
    }
  }
}
