package dev.oriel;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A token of a reply. */
public final class OrielToken {
  /** One of the most likely tokens. */
  public static final class Likely {
    public final int id;
    /** Natural logarithm of its probability. */
    public final float logprob;

    Likely(int id, float logprob) {
      this.id = id;
      this.logprob = logprob;
    }
  }

  public final int id;
  /** Whole characters, may be empty. */
  public final String text;
  /** From the model's own distribution. 0 without top_logprobs. */
  public final float logprob;
  /** The most likely tokens, best first. */
  public final List<Likely> top;

  OrielToken(int id, String text, float logprob, int[] ids, float[] logprobs) {
    this.id = id;
    this.text = text;
    this.logprob = logprob;
    List<Likely> likely = new ArrayList<>();
    for (int i = 0; i < ids.length; ++i) {
      likely.add(new Likely(ids[i], logprobs[i]));
    }
    top = Collections.unmodifiableList(likely);
  }
}
