package dev.oriel;

/** What is allocated for what, to the byte. */
public final class OrielPlan {
  static final int COUNT = 17;

  /** False: everything else describes the smallest plan that would run. */
  public final boolean fits;
  public final long memoryBytes;
  public final long totalBytes;
  public final long weightsBytes;
  public final long kvBytes;
  public final long activationBytes;
  public final long stagingBytes;
  public final long hostBytes;
  /** Least memoryBytes that would do. */
  public final long minimumBytes;
  public final long kvBytesPerToken;
  public final int windowTokens;
  public final int sinkTokens;
  public final int chunkTokens;
  /** 0: the file does not say. */
  public final int contextTrainTokens;
  public final OrielOptions.KvFormat keyFormat;
  public final OrielOptions.KvFormat valueFormat;
  /** Expected loss per token against an endless cache in f16, in nats. */
  public final double lossNats;

  OrielPlan(long[] n) {
    fits = n[0] != 0;
    memoryBytes = n[1];
    totalBytes = n[2];
    weightsBytes = n[3];
    kvBytes = n[4];
    activationBytes = n[5];
    stagingBytes = n[6];
    hostBytes = n[7];
    minimumBytes = n[8];
    kvBytesPerToken = n[9];
    windowTokens = (int) n[10];
    sinkTokens = (int) n[11];
    chunkTokens = (int) n[12];
    contextTrainTokens = (int) n[13];
    keyFormat = OrielOptions.KvFormat.values()[(int) n[14]];
    valueFormat = OrielOptions.KvFormat.values()[(int) n[15]];
    lossNats = Double.longBitsToDouble(n[16]);
  }
}
