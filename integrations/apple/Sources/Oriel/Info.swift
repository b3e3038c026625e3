import COriel

/// What is allocated for what, to the byte.
public struct Plan: Sendable {
  /// False: everything else describes the smallest plan that would run.
  public let fits: Bool
  public let memoryBytes: UInt64
  public let totalBytes: UInt64
  public let weightsBytes: UInt64
  public let kvBytes: UInt64
  public let activationBytes: UInt64
  public let stagingBytes: UInt64
  public let hostBytes: UInt64
  /// Least memory that would do.
  public let minimumBytes: UInt64
  public let kvBytesPerToken: UInt64
  public let windowTokens: UInt32
  public let sinkTokens: UInt32
  public let chunkTokens: UInt32
  /// 0: the file does not say.
  public let contextTrainTokens: UInt32
  public let keyFormat: KvFormat
  public let valueFormat: KvFormat
  /// Expected loss per token against an endless cache in f16, in nats.
  public let lossNats: Double
  /// Of weights that stay in the model's file; no part of totalBytes.
  public let onFileBytes: UInt64
  /// Experts that each layer has room for. 0: all are held, or there are none.
  public let expertSlots: UInt32
  /// That a layer has.
  public let experts: UInt32
  /// Share of the experts that tokens choose which is expected to be in a slot.
  public let expertHitRate: Double
  /// Of kvBytes, what layers keep as states, in stateSlots versions.
  public let stateBytes: UInt64
  public let stateSlots: UInt32
  public let checkpoints: UInt32
  /// automatic: no layer keeps a state.
  public let stateFormat: StateFormat
  /// Of hostBytes, what `Options.constraints` takes.
  public let constraintBytes: UInt64
  /// Of totalBytes, what `Options.draftTokens` takes, of which there are so many.
  public let draftBytes: UInt64
  public let draftTokens: UInt32
  /// Slots for turns that come back; 0: none, or this model does without.
  public let recallTokens: UInt32
  /// Of a session's file, most bytes and tokens.
  public let recallFileBytes: UInt64
  public let recallFileTokens: UInt64
  /// Of weightsBytes, those of `Options.draftModel`.
  public let draftWeightsBytes: UInt64
  /// Of hostBytes, what `Options.transcriptBytes` takes.
  public let transcriptBytes: UInt64
  private let trimmed: [UInt64]

  /// What stays of totalBytes after `Session.trim`.
  public func trimBytes(_ level: Trim) -> UInt64 { trimmed[Int(level.rawValue)] }

  init(_ plan: oriel_plan) {
    fits = plan.fits != 0
    memoryBytes = plan.memory_bytes
    totalBytes = plan.total_bytes
    weightsBytes = plan.weights_bytes
    kvBytes = plan.kv_bytes
    activationBytes = plan.activation_bytes
    stagingBytes = plan.staging_bytes
    hostBytes = plan.host_bytes
    minimumBytes = plan.minimum_bytes
    kvBytesPerToken = plan.kv_bytes_per_token
    windowTokens = plan.window_tokens
    sinkTokens = plan.sink_tokens
    chunkTokens = plan.chunk_tokens
    contextTrainTokens = plan.context_train_tokens
    keyFormat = KvFormat(rawValue: plan.k_format.rawValue) ?? .automatic
    valueFormat = KvFormat(rawValue: plan.v_format.rawValue) ?? .automatic
    lossNats = plan.loss_nats
    onFileBytes = plan.on_file_bytes
    expertSlots = plan.expert_slots
    experts = plan.expert_count
    expertHitRate = plan.expert_hit_rate
    stateBytes = plan.state_bytes
    stateSlots = plan.state_slots
    checkpoints = plan.checkpoints
    stateFormat = StateFormat(rawValue: plan.state_format.rawValue) ?? .automatic
    constraintBytes = plan.constraint_bytes
    draftBytes = plan.draft_bytes
    draftTokens = plan.draft_tokens
    recallTokens = plan.recall_tokens
    recallFileBytes = plan.recall_file_bytes
    recallFileTokens = plan.recall_file_tokens
    draftWeightsBytes = plan.draft_weights_bytes
    transcriptBytes = plan.transcript_bytes
    let levels = plan.trim_bytes
    trimmed = [levels.0, levels.1, levels.2, levels.3, levels.4]
  }
}

/// A conversation in numbers.
public struct Stats: Sendable {
  /// Tokens so far; what `Session.rewind` takes.
  public let position: UInt64
  /// Tokens that the latest one saw.
  public let windowUsed: UInt32
  public let windowCapacity: UInt32
  /// Tokens that have been forgotten.
  public let evicted: UInt64
  /// Really allocated.
  public let deviceBytes: UInt64
  public let hostBytes: UInt64
  /// Steps that the device carried out since the session was opened.
  public let submissions: UInt64
  /// Experts on file that tokens chose and that were in a slot; and those that were read.
  public let expertHits: UInt64
  public let expertMisses: UInt64
  /// Rows on file that tokens needed; and those that were read.
  public let rowsWanted: UInt64
  public let rowsRead: UInt64
  /// Tokens that were read again, to go back or to forget (models that keep a state).
  public let tokensReadAgain: UInt64
  /// Guesses that were verified (`Options.draftTokens`), and those that were right.
  public let tokensDrafted: UInt64
  public let tokensAccepted: UInt64
  /// Tokens in the file of turns that may come back, and those that came back and are seen.
  public let tokensKept: UInt64
  public let tokensRecalled: UInt32

  init(_ stats: oriel_stats) {
    position = stats.position
    windowUsed = stats.window_used
    windowCapacity = stats.window_capacity
    evicted = stats.evicted
    deviceBytes = stats.device_bytes
    hostBytes = stats.host_bytes
    submissions = stats.submissions
    expertHits = stats.expert_hits
    expertMisses = stats.expert_misses
    rowsWanted = stats.rows_wanted
    rowsRead = stats.rows_read
    tokensReadAgain = stats.tokens_read_again
    tokensDrafted = stats.tokens_drafted
    tokensAccepted = stats.tokens_accepted
    tokensKept = stats.tokens_kept
    tokensRecalled = stats.tokens_recalled
  }
}

/// What a GGUF file says of itself. What it does not give is 0 or empty.
public struct FileInfo: Sendable {
  public let architecture: String
  public let name: String
  public let sizeLabel: String
  public let license: String
  public let tokenizer: String
  public let chatTemplate: String
  public let layers: UInt32
  public let vocabulary: UInt32
  public let contextTrainTokens: UInt32
  public let parameters: UInt64
  public let fileBytes: UInt64
  /// This library can run it, given the memory.
  public let runs: Bool
  /// Why not, each as "WHAT IS MISSING: WHAT TO DO".
  public let missing: [String]

  init(_ info: oriel_file_info) {
    architecture = fixedText(info.architecture)
    name = fixedText(info.name)
    sizeLabel = fixedText(info.size_label)
    license = fixedText(info.license)
    tokenizer = fixedText(info.tokenizer)
    chatTemplate = fixedText(info.chat_template)
    layers = info.n_layers
    vocabulary = info.n_vocab
    contextTrainTokens = info.context_train
    parameters = info.parameters
    fileBytes = info.file_bytes
    runs = info.runs != 0
    let lines = info.missing
    missing = [fixedText(lines.0), fixedText(lines.1), fixedText(lines.2), fixedText(lines.3)]
      .prefix(Int(info.missing_count)).map { $0 }
  }
}

/// Whose vectors become that of a text.
public enum Pooling: UInt32, Sendable {
  /// As the file says; the mean where it says nothing.
  case automatic = 0
  case mean = 1
  case last = 2
  case first = 3
}

/// A text as a vector.
public struct Embedding: Sendable {
  /// Of length 1, unless asked for as they are.
  public let values: [Float]
  /// That the text has.
  public let tokens: UInt32
}

/// Of an array of C's chars, which Swift sees as a tuple.
func fixedText<Chars>(_ chars: Chars) -> String {
  withUnsafeBytes(of: chars) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}
