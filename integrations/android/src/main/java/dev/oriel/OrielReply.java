package dev.oriel;

import java.util.Collections;
import java.util.List;

/** A finished reply. */
public final class OrielReply {
  public enum Stop {
    /** max_tokens */
    LENGTH,
    /** End of turn or text. */
    END,
    /** A listener returned false. */
    LISTENER,
    /** {@link OrielSession#cancel} or close. */
    CANCELLED,
    /** A text of the option stop. */
    TEXT
  }

  /** The whole text, including the markers of thoughts and calls. */
  public final String text;
  /** Answer, thought and calls. Only in a chat. */
  public final OrielParsed parsed;
  public final Stop stop;
  public final int tokens;
  /** Read for this reply. */
  public final int promptTokens;
  /** The part of promptTokens that did not fit into the window. */
  public final int promptTokensEvicted;
  /** Verified guesses (option speculate), and correct ones. */
  public final int tokensDrafted;
  public final int tokensAccepted;
  public final double timeToFirstTokenMs;
  /** 0 for fewer than two tokens. */
  public final double tokensPerSecond;
  /** The tokens. Empty without the option top_logprobs. */
  public final List<OrielToken> logprobs;

  OrielReply(String text, OrielParsed parsed, List<OrielToken> tokens, double[] n) {
    this.text = text;
    this.parsed = parsed;
    stop = Stop.values()[(int) n[0]];
    this.tokens = (int) n[1];
    promptTokens = (int) n[2];
    promptTokensEvicted = (int) n[3];
    tokensDrafted = (int) n[4];
    tokensAccepted = (int) n[5];
    timeToFirstTokenMs = n[6];
    tokensPerSecond = n[7];
    // The last event may be the rest of a character.
    logprobs = Collections.unmodifiableList(
        tokens.subList(0, Math.min(tokens.size(), this.tokens)));
  }

  /** Cancelled before the first token. */
  static OrielReply nothing() {
    return new OrielReply("", OrielParsed.NOTHING, Collections.emptyList(),
        new double[] {Stop.CANCELLED.ordinal(), 0, 0, 0, 0, 0, 0, 0});
  }

  @Override
  public String toString() {
    return text;
  }
}
