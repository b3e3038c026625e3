package dev.oriel;

import java.util.Collections;
import java.util.List;

/** How a reply ended, and what it was. */
public final class OrielReply {
  public enum Stop {
    /** maxTokens */
    LENGTH,
    /** The model was done. */
    END,
    /** A listener returned false. */
    LISTENER,
    /** {@link OrielSession#cancel} or close. */
    CANCELLED,
    /** One of {@link OrielSampling#stop}. */
    TEXT
  }

  /** All that was written, thoughts and calls as the model writes them. */
  public final String text;
  /** What that means: answer, thought and calls. Of a reply in a chat. */
  public final OrielParsed parsed;
  public final Stop stop;
  public final int tokens;
  public final int promptTokens;
  public final double timeToFirstTokenMs;
  /** 0 with fewer than two tokens. */
  public final double tokensPerSecond;
  /** Every token with its log-probability; empty without {@link OrielSampling#logprobs}. */
  public final List<OrielToken> logprobs;

  OrielReply(String text, OrielParsed parsed, List<OrielToken> tokens, double[] numbers) {
    this.text = text;
    this.parsed = parsed;
    stop = Stop.values()[(int) numbers[0]];
    this.tokens = (int) numbers[1];
    promptTokens = (int) numbers[2];
    timeToFirstTokenMs = numbers[3];
    tokensPerSecond = numbers[4];
    // The last event may be the rest of a character.
    logprobs = Collections.unmodifiableList(
        tokens.subList(0, Math.min(tokens.size(), this.tokens)));
  }

  /** Cancelled before there was anything to say. */
  static OrielReply nothing() {
    return new OrielReply("", OrielParsed.NOTHING, Collections.emptyList(),
        new double[] {Stop.CANCELLED.ordinal(), 0, 0, 0, 0});
  }

  @Override
  public String toString() {
    return text;
  }
}
