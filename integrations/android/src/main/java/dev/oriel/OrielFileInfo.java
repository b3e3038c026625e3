package dev.oriel;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** What a GGUF file says of itself. What it does not give is 0 or empty. */
public final class OrielFileInfo {
  static final int NUMBERS = 7;
  static final int TEXTS = 10;

  public final String architecture;
  public final String name;
  public final String sizeLabel;
  public final String license;
  public final String tokenizer;
  public final String chatTemplate;
  public final int layers;
  public final int vocabulary;
  public final int contextTrainTokens;
  public final long parameters;
  public final long fileBytes;
  /** This library can run it, given the memory. */
  public final boolean runs;
  /** Why not, each as "WHAT IS MISSING: WHAT TO DO". */
  public final List<String> missing;

  OrielFileInfo(long[] n, byte[][] texts) {
    architecture = Utf8.decode(texts[0]);
    name = Utf8.decode(texts[1]);
    sizeLabel = Utf8.decode(texts[2]);
    license = Utf8.decode(texts[3]);
    tokenizer = Utf8.decode(texts[4]);
    chatTemplate = Utf8.decode(texts[5]);
    layers = (int) n[0];
    vocabulary = (int) n[1];
    contextTrainTokens = (int) n[2];
    parameters = n[3];
    fileBytes = n[4];
    runs = n[5] != 0;
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < n[6]; ++i) {
      lines.add(Utf8.decode(texts[6 + i]));
    }
    missing = Collections.unmodifiableList(lines);
  }
}
