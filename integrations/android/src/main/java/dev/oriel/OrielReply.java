package dev.oriel;

import java.util.Collections;
import java.util.List;

/** How a reply ended, and what it was. */
public final class OrielReply {
  public enum Stop {
    /** max_tokens */
    LENGTH,
    /** The model was done. */
    END,
    /** A listener returned false. */
    LISTENER,
    /** {@link OrielSession#cancel} or close. */
    CANCELLED,
    /** One of the texts of the option stop. */
    TEXT
  }

  /** All that was written, thoughts and calls as the model writes them. */
  public final String text;
  /** What that means: answer, thought and calls. Of a reply in a chat. */
  public final OrielParsed parsed;
  public final Stop stop;
  public final int tokens;
  /** Read for this reply. */
  public final int promptTokens;
  /** Of them, those that the window was too short for: the model does not see them. */
  public final int promptTokensEvicted;
  /** Guesses that were verified (option speculate), and those that were right. */
  public final int tokensDrafted;
  public final int tokensAccepted;
  public final double timeToFirstTokenMs;
  /** 0 with fewer than two tokens. */
  public final double tokensPerSecond;
  /** Every token with its log-probability; empty without the option top_logprobs. */
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

  /** Cancelled before there was anything to say. */
  static OrielReply nothing() {
    return new OrielReply("", OrielParsed.NOTHING, Collections.emptyList(),
        new double[] {Stop.CANCELLED.ordinal(), 0, 0, 0, 0, 0, 0, 0});
  }

  @Override
  public String toString() {
    return text;
  }
}
