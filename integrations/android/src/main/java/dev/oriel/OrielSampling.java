package dev.oriel;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** How a reply is generated. 0 and null always mean the default. */
public final class OrielSampling {
  /** How free the model is to call the tools of {@link OrielOptions#tools}. */
  public enum ToolChoice {
    /** As it likes and as it writes them: arguments may be wrong. */
    FREE,
    /** As it likes; a call that it begins is valid. Needs {@link OrielOptions#constraints}. */
    CHECKED,
    /** The same, and the reply is such a call. */
    REQUIRED,
    /** No call is read: all is text. */
    NONE
  }

  /** 0: until the reply ends. */
  public int maxTokens;
  /** No end before so many. */
  public int minTokens;
  /** Always the most likely token. */
  public boolean greedy;
  /** 0: another one each time. */
  public long seed;
  /** 0: 0.7. */
  public float temperature;
  /** 0: 40; -1: all. */
  public int topK;
  /** 0: 0.95. */
  public float topP;
  /** 0: 0.05; negative: off. */
  public float minP;
  /** 0: off. */
  public float repeatPenalty;
  /** Taken from the logit of every token in the window of repetition. */
  public float presencePenalty;
  /** The same, times how often it is there. */
  public float frequencyPenalty;
  /** Tokens that the three penalties look back. 0: 64. */
  public int repeatWindow;
  /** Tokens that end a reply are generated like any other. */
  public boolean ignoreStop;
  /** Texts that end the reply, at most 16. They are never shown, in whole or in part. */
  public List<String> stop;
  /** Added to logits, by the token's id; Float.NEGATIVE_INFINITY: never. */
  public Map<Integer, Float> logitBias;
  /** The reply comes with every token's log-probability, {@link OrielReply#logprobs}. */
  public boolean logprobs;
  /** The same, with those of so many of the most likely tokens, at most 20. */
  public int topLogprobs;
  /**
   * What the reply is valid by: a JSON schema, or a grammar (GBNF) with a rule root, one of the two.
   * Both need {@link OrielOptions#constraints}. Where a model thinks first it holds behind the
   * thought.
   */
  public String jsonSchema;
  public String grammar;
  /** It holds only from behind the first place where the reply has this text. */
  public String trigger;
  public ToolChoice toolChoice = ToolChoice.FREE;

  // The order is that of the C++ side (class ReplyOptions in jni_reply.h).
  long[] packNumbers(boolean parts, boolean tokens) {
    return new long[] {OrielOptions.checked("maxTokens", maxTokens), greedy ? 1 : 0, seed,
        topK == -1 ? 0xffffffffL : OrielOptions.checked("topK", topK), ignoreStop ? 1 : 0,
        OrielOptions.checked("repeatWindow", repeatWindow),
        OrielOptions.checked("minTokens", minTokens), logprobs || topLogprobs != 0 ? 1 : 0,
        OrielOptions.checked("topLogprobs", topLogprobs),
        OrielOptions.ordinal("toolChoice", toolChoice), parts ? 1 : 0, tokens ? 1 : 0};
  }

  float[] packFloats() {
    return new float[] {
        temperature, topP, minP, repeatPenalty, presencePenalty, frequencyPenalty};
  }

  /** Schema, grammar and trigger, then the texts that end a reply. */
  byte[][] packTexts() {
    List<byte[]> texts = new ArrayList<>();
    texts.add(Utf8.encodeOrNull(jsonSchema, "jsonSchema"));
    texts.add(Utf8.encodeOrNull(grammar, "grammar"));
    texts.add(Utf8.pathOrNull(trigger, "trigger"));
    if (stop != null) {
      for (String text : stop) {
        texts.add(Utf8.path(text, "stop"));
      }
    }
    return texts.toArray(new byte[0][]);
  }

  int[] packBiasIds() {
    int[] ids = new int[logitBias == null ? 0 : logitBias.size()];
    int at = 0;
    if (logitBias != null) {
      for (Integer id : logitBias.keySet()) {
        ids[at++] = Objects.requireNonNull(id, "logitBias");
      }
    }
    return ids;
  }

  float[] packBiases() {
    float[] biases = new float[logitBias == null ? 0 : logitBias.size()];
    int at = 0;
    if (logitBias != null) {
      for (Float bias : logitBias.values()) {
        biases[at++] = Objects.requireNonNull(bias, "logitBias");
      }
    }
    return biases;
  }
}
