package dev.oriel;

/** The planned bytes. {@link Oriel#describePlan} and {@link OrielModel#describe} have more. */
public final class OrielPlan {
  /** INT8 takes 8.5 bits a value, INT4 takes 4.5. */
  public enum KvFormat { AUTO, F16, INT8, INT4 }

  /** False: the numbers describe the smallest plan. */
  public final boolean fits;
  public final long memoryBytes;
  /** Sum of the next five. */
  public final long totalBytes;
  public final long weightsBytes;
  /** Caches and recurrent states of all sessions. */
  public final long kvBytes;
  public final long activationBytes;
  public final long stagingBytes;
  public final long hostBytes;
  /** Smallest memory for these options. */
  public final long minimumBytes;
  public final long kvBytesPerToken;
  public final int windowTokens;
  /** First tokens, never evicted. */
  public final int sinkTokens;
  public final int prefillBatchTokens;
  public final int sessions;
  /** 0: unknown. */
  public final int contextTrainTokens;
  public final KvFormat keyFormat;
  public final KvFormat valueFormat;
  /** Expected loss a token against an endless f16 cache, in nats. */
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
