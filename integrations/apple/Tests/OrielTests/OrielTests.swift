import COriel
import Foundation
import XCTest

@testable import Oriel

/// Shared helpers of the tests.
extension XCTestCase {
  var root: URL {
    URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../..").standardized
  }
  var path: String { root.appendingPathComponent("models/oriel-tiny/oriel-tiny-q8_0.gguf").path }
  var question: String { "What can you do?" }
  var options: Options { ["memory": "16MiB", "device": "cpu"] }
  var greedy: ReplyOptions { ["greedy": true] }

  func load(_ options: Options? = nil) async throws -> Model {
    try await Model.load(path: path, options: options ?? self.options)
  }

  func open(_ options: Options? = nil, _ session: SessionOptions = [:]) async throws -> Session {
    try await load(options).session(session)
  }

  func expect<Value>(_ status: OrielError.Status, _ body: () async throws -> Value) async {
    do {
      _ = try await body()
      XCTFail("nothing was thrown")
    } catch {
      XCTAssertEqual(status, (error as? OrielError)?.status, "\(error)")
    }
  }
}

/// On a Mac: build_xcframework.sh, then `swift test`. On Linux: scripts/bindings.sh.
final class OrielTests: XCTestCase {
  private let story = "Tell me a story about a robot in the harbour."
  private struct Golden: Decodable {
    struct File: Decodable {
      let file: String
      let cases: [Case]
    }
    struct Case: Decodable {
      let name: String
      let prompt: String
      let greedy_text: String
    }
    let files: [File]
  }

  /// A question and the greedy reply to it, computed by lab/oriel-tiny in float64.
  private func golden(_ name: String) throws -> (question: String, reply: String) {
    let file = root.appendingPathComponent("tests/data/oriel-tiny-golden.json")
    let golden = try JSONDecoder().decode(Golden.self, from: Data(contentsOf: file))
    let ours = golden.files.first { $0.file == "oriel-tiny-q8_0.gguf" }
    let found = try XCTUnwrap(ours?.cases.first { $0.name == name })
    let end = "<|im_end|>"
    let question = found.prompt.replacingOccurrences(of: "<|im_start|>user\n", with: "")
    return (
      try XCTUnwrap(question.components(separatedBy: end).first),
      try XCTUnwrap(found.greedy_text.components(separatedBy: end).first)
    )
  }

  private func reply(_ session: Session, _ text: String) async throws -> String {
    var reply = ""
    for try await piece in session.chat(text, options: greedy) { reply += piece }
    return reply
  }

  /// Once the call that runs has ended.
  private func position(_ session: Session) async throws -> UInt64 {
    try await session.stats().position
  }

  func testAReplyIsTheReferenceAndArrivesInPieces() async throws {
    let ability = try golden("ability")
    let sum = try golden("sum")
    let session = try await open()
    var pieces: [String] = []
    for try await piece in session.chat(ability.question, options: greedy) { pieces.append(piece) }
    XCTAssertEqual(ability.reply, pieces.joined())
    XCTAssertGreaterThan(pieces.count, 10)
    let second = try await reply(session, sum.question)
    XCTAssertEqual(sum.reply, second)
    await session.close()
  }

  /// A reply runs ahead of who reads it, so on a busy machine it may be over in time: it has many tries.
  private func endsEarly(_ stop: (Session) async throws -> Void) async throws {
    let session = try await open()
    _ = try await reply(session, story)
    let whole = try await position(session)
    var early = false
    for _ in 0..<50 where !early {
      try await session.reset()
      try await stop(session)
      early = try await position(session) < whole
    }
    XCTAssertTrue(early, "the reply went on to its end")
    try await session.reset()
    let sum = try golden("sum")
    let again = try await reply(session, sum.question)
    XCTAssertEqual(sum.reply, again)
  }

  func testWhoStopsReadingEndsTheReply() async throws {
    try await endsEarly { session in
      for try await _ in session.chat(story, options: greedy) { break }
    }
  }

  func testACancelledTaskEndsItsReply() async throws {
    let sampling = greedy
    let story = story
    try await endsEarly { session in
      let task = Task { () -> Int in
        var pieces = 0
        for try await _ in session.chat(story, options: sampling) {
          pieces += 1
          withUnsafeCurrentTask { $0?.cancel() }
        }
        return pieces
      }
      let pieces = try await task.value
      XCTAssertLessThanOrEqual(1, pieces)
    }
  }

  func testCancelEndsTheReplyWithoutAnError() async throws {
    try await endsEarly { session in
      for try await _ in session.chat(story, options: greedy) { session.cancel() }
    }
  }

  func testCancelWithNothingRunningDoesNotHitTheNextCall() async throws {
    let sum = try golden("sum")
    let session = try await open()
    session.cancel()
    let answer = try await reply(session, sum.question)
    XCTAssertEqual(sum.reply, answer)
  }

  func testThePlanIsTheOneThatIsCarriedOut() async throws {
    let plan = try Model.plan(path: path, options: options)
    XCTAssertTrue(plan.fits)
    XCTAssertLessThanOrEqual(plan.totalBytes, 16 << 20)
    XCTAssertLessThanOrEqual(plan.weightsBytes + plan.kvBytes, plan.totalBytes)
    let session = try await open()
    XCTAssertEqual(plan.totalBytes, session.model.plan.totalBytes)
    XCTAssertEqual(plan.windowTokens, session.model.plan.windowTokens)
    let device = try await session.model.describe()["device"] as? String
    XCTAssertEqual("CPU", device?.prefix(3))
    let little = try Model.plan(path: path, options: ["memory": 1 << 20, "device": "cpu"])
    XCTAssertFalse(little.fits)
    XCTAssertLessThan(1 << 20, little.minimumBytes)
  }

  func testASystemPromptIsPinnedAndComesBackAfterReset() async throws {
    var pirate = options
    pirate["system_prompt"] = "You are a pirate who knows everything about the sea and its ⛵."
    let session = try await open(pirate)
    let pinned = try await position(session)
    XCTAssertGreaterThan(pinned, 10)
    let first = try await reply(session, "Who are you?")
    try await session.reset()
    let second = try await reply(session, "Who are you?")
    XCTAssertEqual(first, second)
  }

  func testTokensThatTheWindowWasTooShortForAreTold() async throws {
    let session = try await open(["memory": "16MiB", "device": "cpu", "window": 64])
    let reply = try await session.ask(
      String(repeating: "word ", count: 200), options: ["greedy": true, "max_tokens": 1])
    XCTAssertGreaterThan(reply.promptTokens, 200)
    XCTAssertGreaterThan(reply.promptTokensEvicted, 100)
  }

  func testASavedConversationGoesOn() async throws {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("oriel-\(ProcessInfo.processInfo.processIdentifier).session").path
    defer { try? FileManager.default.removeItem(atPath: file) }
    let session = try await open()
    try await session.add(role: "user", text: "My name is Ada.")
    try await session.add(role: "assistant", text: "Hello Ada!")
    try await session.save(to: file)
    let answer = try await reply(session, "What is my name?")
    XCTAssertTrue(answer.contains("Ada"), answer)
    let other = try await open()
    let how = try await other.restore(from: file).how
    XCTAssertEqual(.exactly, how)
    let restored = try await reply(other, "What is my name?")
    XCTAssertEqual(answer, restored)
  }

  func testErrorsSayWhatToDo() async {
    do {
      _ = try await Model.load(path: "/no/such.gguf")
      XCTFail("it opened")
    } catch {
      XCTAssertTrue("\(error)".contains("/no/such.gguf: "), "\(error)")
      XCTAssertEqual(.io, (error as? OrielError)?.status)
    }
    do {
      _ = try await Model.load(path: path, options: ["memory": 1 << 20, "device": "cpu"])
      XCTFail("it fitted")
    } catch {
      XCTAssertEqual(.memoryBudget, (error as? OrielError)?.status)
    }
  }

  func testAMessageWithWrongSamplingIsNotSaid() async throws {
    let sum = try golden("sum")
    let ability = try golden("ability")
    let session = try await open()
    let first = try await reply(session, sum.question)
    XCTAssertEqual(sum.reply, first)
    let before = try await position(session)
    var hot = ReplyOptions()
    hot["temperature"] = -1
    do {
      for try await _ in session.chat(ability.question, options: hot) {}
      XCTFail("it spoke")
    } catch {
      XCTAssertEqual(.argument, (error as? OrielError)?.status)
      XCTAssertTrue("\(error)".contains("temperature"), "\(error)")
    }
    let after = try await position(session)
    XCTAssertEqual(before, after)
    try await session.reset()
    let answer = try await reply(session, ability.question)
    XCTAssertEqual(ability.reply, answer)
  }

  func testFeaturesAreKnownByName() async throws {
    var without = options
    without["disable_features"] = "subgroup,integer_dot"
    _ = try await Model.load(path: path, options: without)
    // Names are looked at where there can be Vulkan devices.
    without["device"] = "vulkan"
    without["disable_features"] = "no-such-feature"
    do {
      _ = try await Model.load(path: path, options: without)
      XCTFail("it opened")
    } catch {
      let text = "\(error)"
      XCTAssertTrue(
        text.contains("no-such-feature") || text.contains("this build has no Vulkan"), text)
    }
  }

  private final class Lines: @unchecked Sendable {
    private let lock = NSLock()
    private var lines: [String] = []

    func add(_ line: String) {
      lock.lock()
      defer { lock.unlock() }
      lines.append(line)
    }

    func take() -> [String] {
      lock.lock()
      defer { lock.unlock() }
      let taken = lines
      lines = []
      return taken
    }
  }

  func testAListenerHearsOfErrors() async throws {
    let lines = Lines()
    let log: LogListener = { level, line in lines.add("\(level) \(line)") }
    do {
      _ = try await Model.load(path: path, options: ["memory": 1 << 20, "device": "cpu"], log: log)
      XCTFail("it fitted")
    } catch {
      XCTAssertEqual(["error \(error)"], lines.take())
    }
    let session = try await Model.load(path: path, options: options, log: log).session()
    XCTAssertEqual([], lines.take())
    do {
      try await session.add(role: "no-such-role", text: "text")
      XCTFail("it was added")
    } catch {
      XCTAssertEqual(["error \(error)"], lines.take())
    }
  }

  func testTextsThatEndInNulHaveNoneInThem() async throws {
    let session = try await open()
    let path = self.path
    let options = self.options
    var withNul = options
    withNul["cache_folder"] = "/tmp\0x"
    let folder = withNul
    var stop = greedy
    stop["stop"] = ["a\0b"]
    let sampling = stop
    let calls: [() async throws -> Void] = [
      { _ = try await Model.load(path: path + "\0", options: options) },
      { _ = try Model.plan(path: path, options: folder) },
      { _ = try Model.describeFile(path: path + "\0") },
      { try await session.add(role: "user\0", text: "Hi") },
      { try await session.save(to: "/tmp/\0") },
      { try await session.restore(from: "/tmp/\0") },
      { try await session.model.trim(.cache, folder: "/tmp\0") },
      { _ = try await session.ask("Hi", options: sampling) },
    ]
    for call in calls {
      do {
        try await call()
        XCTFail("it was taken")
      } catch let error as OrielError {
        XCTAssertEqual(error.status, .argument)
        XCTAssertTrue(error.message.contains(" has a NUL in it: "), error.message)
      }
    }
    let position = try await session.stats().position
    XCTAssertEqual(0, position)
  }

  func testACancelledAskHasWhatWasSaid() async throws {
    let session = try await open()
    let sampling: ReplyOptions = ["greedy": true, "ignore_stop": true, "max_tokens": 1000]
    let whole = try await session.ask(story, options: sampling)
    let story = story
    var early = false
    for attempt in 1...100 where !early {  // the first ones come before a token
      try await session.reset()
      let task = Task { try await session.ask(story, options: sampling) }
      try await Task.sleep(nanoseconds: UInt64(attempt) * 5_000_000)
      task.cancel()
      guard let reply = try? await task.value else { continue }  // before its turn
      XCTAssertTrue(whole.text.hasPrefix(reply.text), reply.text)
      early = reply.stop == .cancelled && !reply.text.isEmpty && reply.tokens > 0
    }
    XCTAssertTrue(early, "never in the middle")
  }

  func testAClosedSessionRefuses() async throws {
    let session = try await open()
    await session.close()
    await session.close()
    do {
      try await session.reset()
      XCTFail("it went on")
    } catch {
      XCTAssertTrue(error is OrielError)
    }
  }

  func testClosingEndsTheReplyThatRuns() async throws {
    var whole = 0
    let session = try await open()
    for try await _ in session.chat(story, options: greedy) { whole += 1 }
    var early = false
    for _ in 0..<50 where !early {
      let session = try await open()
      var pieces = 0
      for try await _ in session.chat(story, options: greedy) {
        pieces += 1
        if pieces == 1 { await session.close() }
      }
      XCTAssertLessThanOrEqual(1, pieces)
      early = pieces < whole
      do {
        _ = try await reply(session, "And then?")
        XCTFail("it went on")
      } catch {
        XCTAssertTrue(error is OrielError)
      }
    }
    XCTAssertTrue(early, "the reply went on to its end")
  }
}
