import COriel

/// How free the model is to call the tools of `Options.tools`.
public enum ToolChoice: UInt32, Sendable {
  /// As it likes and as it writes them: arguments may be wrong.
  case free = 0
  /// As it likes; a call that it begins is valid. Needs `Options.constraints`.
  case checked = 1
  /// The same, and the reply is such a call.
  case required = 2
  /// No call is read: all is text.
  case none = 3
}

/// How a reply is generated. 0 and nil always mean the default.
public struct Sampling: Sendable {
  /// 0: until the reply ends.
  public var maxTokens: UInt32 = 0
  /// No end before so many.
  public var minTokens: UInt32 = 0
  /// Always the most likely token.
  public var greedy = false
  /// 0: another one each time.
  public var seed: UInt64 = 0
  public var temperature: Float = 0
  public var topK: UInt32 = 0
  public var topP: Float = 0
  public var minP: Float = 0
  public var repeatPenalty: Float = 0
  /// Taken from the logit of every token in the window of repetition.
  public var presencePenalty: Float = 0
  /// The same, times how often it is there.
  public var frequencyPenalty: Float = 0
  /// Tokens that the three penalties look back. 0: 64.
  public var repeatWindow: UInt32 = 0
  /// Tokens that end a reply are generated like any other.
  public var ignoreStop = false
  /// Texts that end the reply, at most 16. They are never shown, in whole or in part.
  public var stop: [String] = []
  /// Added to logits, by the token's id; -infinity: never.
  public var logitBias: [Int32: Float] = [:]
  /// The reply comes with every token's log-probability: `Event.token`, `Reply.logprobs`.
  public var logprobs = false
  /// The same, with those of so many of the most likely tokens, at most 20.
  public var topLogprobs: UInt32 = 0
  /// What the reply is valid by: a JSON schema, or a grammar (GBNF) with a rule root, one of the two.
  /// Both need `Options.constraints`. Where a model thinks first it holds behind the thought.
  public var jsonSchema: String?
  public var grammar: String?
  /// It holds only from behind the first place where the reply has this text.
  public var trigger: String?
  public var toolChoice = ToolChoice.free

  public init() {}

  func checkTexts() throws {
    try refuseNul(trigger, "trigger")
    for text in stop { try refuseNul(text, "stop") }
  }

  var wantsTokens: Bool { logprobs || topLogprobs != 0 }

  /// Calls `body` with these as C sees them.
  func withC<Result>(_ body: (inout oriel_generate_options) throws -> Result) rethrows -> Result {
    let schema = jsonSchema.map(CText.init)
    let grammar = self.grammar.map(CText.init)
    let trigger = self.trigger.map(CText.init)
    let stops = stop.map(CText.init)
    let biases = logitBias.map { oriel_logit_bias(id: $0.key, bias: $0.value) }
    return try withExtendedLifetime((schema, grammar, trigger, stops)) {
      try stops.map { UnsafePointer<CChar>?($0.start) }.withUnsafeBufferPointer { stops in
        try biases.withUnsafeBufferPointer { biases in
          var options = numbers
          options.stop = stops.isEmpty ? nil : stops.baseAddress
          options.stop_count = stops.count
          options.logit_bias = biases.isEmpty ? nil : biases.baseAddress
          options.logit_bias_count = biases.count
          options.json_schema = schema.map { UnsafePointer($0.start) }
          options.json_schema_bytes = schema?.count ?? 0
          options.grammar = grammar.map { UnsafePointer($0.start) }
          options.grammar_bytes = grammar?.count ?? 0
          options.trigger = trigger.map { UnsafePointer($0.start) }
          return try body(&options)
        }
      }
    }
  }

  private var numbers: oriel_generate_options {
    var options = oriel_generate_options()
    options.struct_size = MemoryLayout<oriel_generate_options>.stride
    options.max_tokens = maxTokens
    options.min_tokens = minTokens
    options.greedy = greedy ? 1 : 0
    options.seed = seed
    options.temperature = temperature
    options.top_k = topK
    options.top_p = topP
    options.min_p = minP
    options.repeat_penalty = repeatPenalty
    options.presence_penalty = presencePenalty
    options.frequency_penalty = frequencyPenalty
    options.repeat_window = repeatWindow
    options.ignore_stop = ignoreStop ? 1 : 0
    options.logprobs = wantsTokens ? 1 : 0
    options.top_logprobs = topLogprobs
    options.tool_choice = oriel_tool_choice(rawValue: toolChoice.rawValue)
    return options
  }
}
