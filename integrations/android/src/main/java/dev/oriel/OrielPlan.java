package dev.oriel;

/** What is allocated for what, to the byte. */
public final class OrielPlan {
  static final int COUNT = 37;

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
  /** Of weights that stay in the model's file; no part of totalBytes. */
  public final long onFileBytes;
  /** Experts that each layer has room for. 0: all are held, or there are none. */
  public final int expertSlots;
  /** That a layer has. */
  public final int experts;
  /** Share of the experts that tokens choose which is expected to be in a slot. */
  public final double expertHitRate;
  /** Of kvBytes, what layers keep as states, in stateSlots versions. */
  public final long stateBytes;
  public final int stateSlots;
  public final int checkpoints;
  /** AUTO: no layer keeps a state. */
  public final OrielOptions.StateFormat stateFormat;
  /** Of hostBytes, what {@link OrielOptions#constraints} takes. */
  public final long constraintBytes;
  /** Of totalBytes, what {@link OrielOptions#draftTokens} takes, of which there are so many. */
  public final long draftBytes;
  public final int draftTokens;
  /** Slots for turns that come back; 0: none, or this model does without. */
  public final int recallTokens;
  /** Of a session's file, most bytes and tokens. */
  public final long recallFileBytes;
  public final long recallFileTokens;
  /** Of weightsBytes, those of {@link OrielOptions#draftModel}. */
  public final long draftWeightsBytes;
  /** Of hostBytes, what {@link OrielOptions#transcriptBytes} takes. */
  public final long transcriptBytes;

  private final long[] trimBytes;

  /** What stays of totalBytes after {@link OrielSession#trim}. */
  public long trimBytes(OrielTrim level) {
    return trimBytes[level.ordinal()];
  }

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
    onFileBytes = n[17];
    expertSlots = (int) n[18];
    experts = (int) n[19];
    expertHitRate = Double.longBitsToDouble(n[20]);
    stateBytes = n[21];
    stateSlots = (int) n[22];
    checkpoints = (int) n[23];
    stateFormat = OrielOptions.StateFormat.values()[(int) n[24]];
    constraintBytes = n[25];
    trimBytes = new long[] {totalBytes, n[26], n[27], n[28], n[29]};
    draftBytes = n[30];
    draftTokens = (int) n[31];
    recallTokens = (int) n[32];
    recallFileBytes = n[33];
    recallFileTokens = n[34];
    draftWeightsBytes = n[35];
    transcriptBytes = n[36];
  }
}
