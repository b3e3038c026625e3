package dev.oriel;

/**
 * What is allocated for what, to the byte. {@link Oriel#describePlan} and {@link OrielModel#describe} have the rest.
 */
public final class OrielPlan {
  /** How keys or values are stored: INT8 takes 8.5 bits a value, INT4 4.5. */
  public enum KvFormat { AUTO, F16, INT8, INT4 }

  /** False: everything else describes the smallest plan that would run. */
  public final boolean fits;
  public final long memoryBytes;
  /** Of these five. */
  public final long totalBytes;
  public final long weightsBytes;
  /** Caches and states of all sessions. */
  public final long kvBytes;
  public final long activationBytes;
  public final long stagingBytes;
  public final long hostBytes;
  /** Least memory that would do. */
  public final long minimumBytes;
  public final long kvBytesPerToken;
  public final int windowTokens;
  /** First tokens, which are never evicted. */
  public final int sinkTokens;
  public final int prefillBatchTokens;
  public final int sessions;
  /** 0: the file does not say. */
  public final int contextTrainTokens;
  public final KvFormat keyFormat;
  public final KvFormat valueFormat;
  /** Expected loss per token against an endless cache in f16, in nats. */
  public final double lossNats;

  OrielPlan(double[] n) {
    fits = n[0] != 0;
    memoryBytes = (long) n[1];
    totalBytes = (long) n[2];
    weightsBytes = (long) n[3];
    kvBytes = (long) n[4];
    activationBytes = (long) n[5];
    stagingBytes = (long) n[6];
    hostBytes = (long) n[7];
    minimumBytes = (long) n[8];
    kvBytesPerToken = (long) n[9];
    windowTokens = (int) n[10];
    sinkTokens = (int) n[11];
    prefillBatchTokens = (int) n[12];
    sessions = (int) n[13];
    contextTrainTokens = (int) n[14];
    keyFormat = KvFormat.values()[(int) n[15]];
    valueFormat = KvFormat.values()[(int) n[16]];
    lossNats = n[17];
  }
}
