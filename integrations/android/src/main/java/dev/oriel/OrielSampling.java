package dev.oriel;

/** How a reply is generated. 0 always means the default. */
public final class OrielSampling {
  /** 0: until the reply ends. */
  public int maxTokens;
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

  // The order is that of the C++ side (replyOptions in oriel_jni.cpp).
  long[] packNumbers() {
    return new long[] {OrielOptions.checked("maxTokens", maxTokens), greedy ? 1 : 0, seed,
        topK == -1 ? 0xffffffffL : OrielOptions.checked("topK", topK)};
  }

  float[] packFloats() {
    return new float[] {temperature, topP, minP, repeatPenalty};
  }
}
