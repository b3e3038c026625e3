package dev.oriel;

/** How a reply ended. */
public final class OrielReply {
  public enum Stop {
    /** maxTokens */
    LENGTH,
    /** The model was done. */
    END,
    /** {@link OrielText#onText} returned false. */
    LISTENER,
    /** {@link OrielSession#cancel} or close. */
    CANCELLED
  }

  public final String text;
  public final Stop stop;
  public final int tokens;
  public final int promptTokens;
  public final double timeToFirstTokenMs;
  /** 0 with fewer than two tokens. */
  public final double tokensPerSecond;

  OrielReply(String text, double[] numbers) {
    this.text = text;
    stop = Stop.values()[(int) numbers[0]];
    tokens = (int) numbers[1];
    promptTokens = (int) numbers[2];
    timeToFirstTokenMs = numbers[3];
    tokensPerSecond = numbers[4];
  }

  /** Cancelled before there was anything to say. */
  static OrielReply nothing() {
    return new OrielReply("", new double[] {Stop.CANCELLED.ordinal(), 0, 0, 0, 0});
  }

  @Override
  public String toString() {
    return text;
  }
}
