import Foundation
import XCTest

@testable import Oriel

/// How replies are shaped and looked into, texts as vectors, and what a file and a session say of
/// themselves.
final class KnobsTests: XCTestCase {
  private static let root = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../../..").standardized
  private let model = root.appendingPathComponent("models/oriel-tiny/oriel-tiny-q8_0.gguf").path
  private let memory: UInt64 = 16 << 20
  private let question = "What can you do?"
  private var options: Options {
    var options = Options()
    options.device = .cpu
    return options
  }

  private func greedy(_ maxTokens: UInt32 = 0) -> Sampling {
    var sampling = Sampling()
    sampling.greedy = true
    sampling.maxTokens = maxTokens
    return sampling
  }

  private func open(_ options: Options? = nil) async throws -> Session {
    try await Session.open(path: model, memoryBytes: memory, options: options ?? self.options)
  }

  /// In a new conversation.
  private func again(_ session: Session, _ sampling: Sampling) async throws -> Reply {
    try await session.reset()
    return try await session.ask(question, sampling: sampling)
  }

  private func expect<Value>(
    _ status: OrielError.Status, _ body: () async throws -> Value
  ) async {
    do {
      _ = try await body()
      XCTFail("nothing was thrown")
    } catch {
      XCTAssertEqual(status, (error as? OrielError)?.status, "\(error)")
    }
  }

  func testWhatAFolderSaysAgainstDriversIsForgotten() throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("oriel-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let other = folder.appendingPathComponent("other.verdict")
    try Data([1]).write(to: other)
    try Session.forgetDevices(cacheDirectory: folder.path)
    XCTAssertTrue(FileManager.default.fileExists(atPath: other.path))
  }

  func testARepliesEndIsTold() async throws {
    let session = try await open()
    let whole = try await again(session, greedy())
    XCTAssertEqual(.end, whole.stop)
    XCTAssertGreaterThan(whole.tokens, 10)
    XCTAssertGreaterThan(whole.promptTokens, 5)
    XCTAssertGreaterThan(whole.timeToFirstTokenMs, 0)
    XCTAssertGreaterThan(whole.tokensPerSecond, 0)
    let cut = try await again(session, greedy(3))
    XCTAssertEqual(.length, cut.stop)
    XCTAssertEqual(3, cut.tokens)
    XCTAssertTrue(whole.text.hasPrefix(cut.text))
    var streamed = ""
    var ends = 0
    try await session.reset()
    for try await event in session.events(question, sampling: greedy()) {
      switch event {
      case .text(let piece): streamed += piece
      case .ended(let reply):
        ends += 1
        XCTAssertEqual(whole.text, reply.text)
      case .part, .token: break
      }
    }
    XCTAssertEqual(whole.text, streamed)
    XCTAssertEqual(1, ends)
  }

  func testACancelledReplySaysSo() async throws {
    let session = try await open()
    var stop = Reply.Stop.end
    for _ in 0..<50 where stop != .cancelled {
      try await session.reset()
      for try await event in session.events("Tell me a story.", sampling: greedy()) {
        if case .text = event { session.cancel() }
        if case .ended(let reply) = event { stop = reply.stop }
      }
    }
    XCTAssertEqual(.cancelled, stop)
  }

  func testAStopTextEndsTheReplyAndIsNotShown() async throws {
    let session = try await open()
    let whole = try await again(session, greedy()).text
    let begin = whole.index(whole.startIndex, offsetBy: 5)
    let text = String(whole[begin..<whole.index(begin, offsetBy: 7)])
    var sampling = greedy()
    sampling.stop = ["never written ⛵", text]
    let reply = try await again(session, sampling)
    XCTAssertEqual(.text, reply.stop)
    XCTAssertEqual(whole.components(separatedBy: text)[0], reply.text)
    sampling.stop = [""]
    await expect(.argument) { try await session.ask(self.question, sampling: sampling) }
  }

  func testBiasesAndPenaltiesReachTheirPlaces() async throws {
    let session = try await open()
    let plain = try await again(session, greedy(30)).text
    let first = try await session.tokenize(plain)[0]
    var sampling = greedy(30)
    sampling.logitBias = [first: -.infinity]
    let other = try await again(session, sampling).text
    XCTAssertNotEqual(plain, other)
    sampling.logitBias = [-1: 1]
    await expect(.argument) { try await self.again(session, sampling) }
    sampling.logitBias = [:]
    sampling.presencePenalty = 10
    let present = try await again(session, sampling).text
    XCTAssertNotEqual(plain, present)
    sampling.presencePenalty = 0
    sampling.frequencyPenalty = 10
    let frequent = try await again(session, sampling).text
    XCTAssertNotEqual(plain, frequent)
    sampling.repeatWindow = 257
    await expect(.argument) { try await self.again(session, sampling) }
  }

  func testMinTokensAndIgnoreStopGoOn() async throws {
    let session = try await open()
    let whole = try await again(session, greedy()).tokens
    var sampling = greedy(whole + 20)
    sampling.minTokens = whole + 5
    let longer = try await again(session, sampling).tokens
    XCTAssertGreaterThanOrEqual(longer, whole + 5)
    sampling.minTokens = 0
    sampling.ignoreStop = true
    let endless = try await again(session, sampling)
    XCTAssertEqual(whole + 20, endless.tokens)
    XCTAssertEqual(.length, endless.stop)
  }

  func testLogProbabilitiesComeWithTheTokens() async throws {
    let session = try await open()
    var sampling = greedy(9)
    let without = try await again(session, sampling)
    XCTAssertTrue(without.logprobs.isEmpty)
    sampling.topLogprobs = 3
    let reply = try await again(session, sampling)
    XCTAssertEqual(9, reply.logprobs.count)
    for token in reply.logprobs {
      XCTAssertEqual(3, token.top.count)
      XCTAssertEqual(token.id, token.top[0].id)
      XCTAssertEqual(token.logprob, token.top[0].logprob)
      XCTAssertGreaterThanOrEqual(token.top[0].logprob, token.top[1].logprob)
      XCTAssertLessThan(token.logprob, 0)
    }
    XCTAssertTrue(reply.text.hasPrefix(reply.logprobs.map { $0.text }.joined()))
  }

  func testRawTextIsContinued() async throws {
    let session = try await open()
    await expect(.state) { for try await _ in session.generate(sampling: self.greedy(1)) {} }
    try await session.append("Once")
    var ended: Reply?
    for try await event in session.generate(sampling: greedy(4)) {
      if case .ended(let reply) = event { ended = reply }
    }
    XCTAssertLessThanOrEqual(1, ended?.tokens ?? 0)
  }

  func testGoingBackAllowsAnotherAnswer() async throws {
    let session = try await open()
    let first = try await session.ask(question, sampling: greedy())
    let stats = try await session.stats()
    XCTAssertGreaterThan(stats.position, UInt64(first.tokens))
    XCTAssertGreaterThan(stats.windowUsed, 0)
    XCTAssertLessThanOrEqual(stats.windowUsed, stats.windowCapacity)
    XCTAssertEqual(stats.deviceBytes, session.plan.totalBytes - session.plan.hostBytes)
    XCTAssertGreaterThan(stats.submissions, 5)
    try await session.rewind(to: 0)
    let second = try await session.ask(question, sampling: greedy())
    XCTAssertEqual(first.text, second.text)
    await expect(.context) { try await session.rewind(to: 1 << 40) }
  }

  func testTokensThereAndBack() async throws {
    let session = try await open()
    for text in ["plain", "", "grüß Gott", "🚀 👩‍💻", "a\0b", "漢字"] {
      let ids = try await session.tokenize(text)
      let back = try await session.detokenize(ids)
      XCTAssertEqual(text, back)
    }
    await expect(.argument) { try await session.detokenize([-1]) }
  }

  func testATextBecomesAVector() async throws {
    let session = try await open()
    let cat = try await session.embed("A cat sleeps.")
    let length = cat.values.reduce(0) { $0 + $1 * $1 }.squareRoot()
    XCTAssertEqual(1, length, accuracy: 1e-5)
    XCTAssertGreaterThan(cat.tokens, 2)
    let same = try await session.embed("A cat sleeps.", pooling: .mean)
    XCTAssertEqual(cat.values, same.values)
    let last = try await session.embed("A cat sleeps.", pooling: .last, normalised: false)
    XCTAssertEqual(cat.values.count, last.values.count)
    XCTAssertNotEqual(cat.values, last.values)
    await expect(.argument) { try await session.embed("") }
    _ = try await session.ask(question, sampling: greedy(2))
    await expect(.state) { try await session.embed("A cat.") }
  }

  func testThoughtAnswerAndCallsAreToldApart() async throws {
    var thinking = options
    thinking.chatTemplate = "qwen3"
    let session = try await open(thinking)
    let call = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Tromsø\"}}\n</tool_call>"
    let parsed = try await session.parseReply("<think>\nWhere is it?\n</think>\n\nYes ⛵." + call)
    XCTAssertTrue(parsed.thought.contains("Where is it?"), parsed.thought)
    XCTAssertTrue(parsed.text.hasPrefix("Yes ⛵."), parsed.text)
    XCTAssertEqual(["weather"], parsed.calls.map { $0.name })
    XCTAssertTrue(parsed.calls[0].arguments.contains("Tromsø"), parsed.calls[0].arguments)
    XCTAssertTrue(parsed.calls[0].complete)
    let cut = try await session.parseReply(String(call.dropLast(20)))
    XCTAssertEqual([false], cut.calls.map { $0.complete })
    let inside = try await session.parseReply("It is\n</think>\n\nYes.", insideThought: true)
    XCTAssertTrue(inside.thought.contains("It is"), inside.thought)
  }

  private final class Seen: @unchecked Sendable {
    private let lock = NSLock()
    private var latest: (done: UInt64, total: UInt64) = (0, 0)

    func see(_ done: UInt64, _ total: UInt64) {
      lock.lock()
      defer { lock.unlock() }
      latest = (done, total)
    }

    var last: (done: UInt64, total: UInt64) {
      lock.lock()
      defer { lock.unlock() }
      return latest
    }
  }

  func testProgressIsToldAndCanStop() async throws {
    let seen = Seen()
    var told = options
    told.progress = { done, total in
      seen.see(done, total)
      return true
    }
    _ = try await open(told)
    XCTAssertGreaterThan(seen.last.total, 4_000_000)
    XCTAssertEqual(seen.last.done, seen.last.total)
    told.progress = { _, _ in false }
    await expect(.cancelled) { try await self.open(told) }
  }

  func testAFileTellsWhatItIs() throws {
    let info = try Session.inspect(path: model)
    XCTAssertEqual("llama", info.architecture)
    XCTAssertEqual("chatml", info.chatTemplate)
    XCTAssertTrue(info.runs && info.missing.isEmpty)
    XCTAssertGreaterThan(info.parameters, 3_000_000)
    XCTAssertGreaterThan(info.vocabulary, 1000)
    let vocabulary = KnobsTests.root
      .appendingPathComponent("tests/data/tokenizer/vocab-bpe2048.gguf").path
    let other = try Session.inspect(path: vocabulary)
    XCTAssertFalse(other.runs)
    XCTAssertTrue(other.missing.first?.contains(": ") ?? false)
    XCTAssertThrowsError(try Session.inspect(path: "/no/such.gguf"))
    XCTAssertEqual(3, Session.version.split(separator: ".").count)
  }

  func testOptionsReachTheirPlaces() async throws {
    var given = options
    given.windowTokens = 123
    given.sinkTokens = 7
    given.chunkTokens = 9
    given.keyFormat = .int8
    given.valueFormat = .int4
    var plan = try Session.plan(path: model, memoryBytes: memory, options: given)
    XCTAssertEqual(123, plan.windowTokens)
    XCTAssertEqual(7, plan.sinkTokens)
    XCTAssertEqual(9, plan.chunkTokens)
    XCTAssertEqual(.int8, plan.keyFormat)
    XCTAssertEqual(.int4, plan.valueFormat)
    XCTAssertEqual(.automatic, plan.stateFormat)
    given.sinkTokens = Options.none
    plan = try Session.plan(path: model, memoryBytes: memory, options: given)
    XCTAssertEqual(0, plan.sinkTokens)
    given.draftTokens = 3
    plan = try Session.plan(path: model, memoryBytes: memory, options: given)
    XCTAssertEqual(3, plan.draftTokens)
    XCTAssertGreaterThan(plan.draftBytes, 0)
    XCTAssertEqual(0, plan.draftWeightsBytes)
    given.draftModel = "/no/such.gguf"
    let missing = given
    await expect(.io) {
      try Session.plan(path: self.model, memoryBytes: self.memory, options: missing)
    }
    given.draftModel = nil
    given.checkpoints = 33
    let many = given
    await expect(.argument) {
      try Session.plan(path: self.model, memoryBytes: self.memory, options: many)
    }
    given.checkpoints = Options.none
    given.onFile = .all
    given.stateFormat = .int8
    given.calibrationFile = ""
    given.forgetEvicted = true
    _ = try await open(given)
    given.splitTurns = true
    let both = given
    await expect(.argument) { try await self.open(both) }
    given = options
    given.calibrationFile = "/no/such.json"
    let uncalibrated = given
    await expect(.io) { try await self.open(uncalibrated) }
  }
}
