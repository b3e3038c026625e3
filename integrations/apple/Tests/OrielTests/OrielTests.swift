import COriel
import Foundation
import XCTest

@testable import Oriel

/// On a Mac: build_xcframework.sh, then `swift test`. On Linux: scripts/bindings.sh.
final class OrielTests: XCTestCase {
  private static let root = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../../..").standardized
  private let model = root.appendingPathComponent("models/oriel-tiny/oriel-tiny-q8_0.gguf").path
  private let memory: UInt64 = 16 << 20
  private let story = "Tell me a story about a robot in the harbour."
  private var greedy: Sampling {
    var sampling = Sampling()
    sampling.greedy = true
    return sampling
  }
  private var options: Options {
    var options = Options()
    options.device = .cpu
    return options
  }

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

  /// A question and the greedy reply to it, computed by models/oriel-tiny/recipe in float64.
  private func golden(_ name: String) throws -> (question: String, reply: String) {
    let file = OrielTests.root.appendingPathComponent("tests/data/oriel-tiny-golden.json")
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

  private func open() async throws -> Session {
    try await Session.open(path: model, memoryBytes: memory, options: options)
  }

  private func reply(_ session: Session, _ text: String) async throws -> String {
    var reply = ""
    for try await piece in session.chat(text, sampling: greedy) { reply += piece }
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
    for try await piece in session.chat(ability.question, sampling: greedy) { pieces.append(piece) }
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
      for try await _ in session.chat(story, sampling: greedy) { break }
    }
  }

  func testACancelledTaskEndsItsReply() async throws {
    let sampling = greedy
    let story = story
    try await endsEarly { session in
      let task = Task { () -> Int in
        var pieces = 0
        for try await _ in session.chat(story, sampling: sampling) {
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
      for try await _ in session.chat(story, sampling: greedy) { session.cancel() }
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
    let plan = try Session.plan(path: model, memoryBytes: memory, options: options)
    XCTAssertTrue(plan.fits)
    XCTAssertLessThanOrEqual(plan.totalBytes, memory)
    XCTAssertLessThanOrEqual(plan.weightsBytes + plan.kvBytes, plan.totalBytes)
    let session = try await open()
    XCTAssertEqual(plan.totalBytes, session.plan.totalBytes)
    XCTAssertEqual(plan.windowTokens, session.plan.windowTokens)
    XCTAssertFalse(session.device.isEmpty)
    let little = try Session.plan(path: model, memoryBytes: 1 << 20, options: options)
    XCTAssertFalse(little.fits)
    XCTAssertLessThan(1 << 20, little.minimumBytes)
  }

  func testASystemPromptIsPinnedAndComesBackAfterReset() async throws {
    var pirate = options
    pirate.systemPrompt = "You are a pirate who knows everything about the sea and its ⛵."
    let session = try await Session.open(path: model, memoryBytes: memory, options: pirate)
    let plain = try Session.plan(path: model, memoryBytes: memory, options: options)
    XCTAssertGreaterThan(session.plan.sinkTokens, plain.sinkTokens)
    let first = try await reply(session, "Who are you?")
    try await session.reset()
    let second = try await reply(session, "Who are you?")
    XCTAssertEqual(first, second)
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
    try await other.restore(from: file)
    let restored = try await reply(other, "What is my name?")
    XCTAssertEqual(answer, restored)
  }

  func testErrorsSayWhatToDo() async {
    do {
      _ = try await Session.open(path: "/no/such.gguf", memoryBytes: memory)
      XCTFail("it opened")
    } catch {
      XCTAssertTrue("\(error)".contains("/no/such.gguf: "), "\(error)")
      XCTAssertEqual(.io, (error as? OrielError)?.status)
    }
    do {
      _ = try await Session.open(path: model, memoryBytes: 1 << 20, options: options)
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
    var hot = Sampling()
    hot.temperature = -1
    do {
      for try await _ in session.chat(ability.question, sampling: hot) {}
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
    without.disabledFeatures = "subgroup,integer_dot"
    _ = try await Session.open(path: model, memoryBytes: memory, options: without)
    // Names are looked at where there can be Vulkan devices.
    without.device = .vulkan
    without.disabledFeatures = "no-such-feature"
    do {
      _ = try await Session.open(path: model, memoryBytes: memory, options: without)
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
    var logged = options
    logged.log = { level, line in lines.add("\(level) \(line)") }
    do {
      _ = try await Session.open(path: model, memoryBytes: 1 << 20, options: logged)
      XCTFail("it fitted")
    } catch {
      XCTAssertEqual(["error \(error)"], lines.take())
    }
    logged.systemPrompt = "Be brief."
    logged.chatTemplate = "{{ messages[0].content }}"
    let session = try await Session.open(path: model, memoryBytes: memory, options: logged)
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
    let path = model
    let memory = memory
    let options = options
    var withNul = options
    withNul.cacheDirectory = "/tmp\0x"
    let folder = withNul
    var stop = greedy
    stop.stop = ["a\0b"]
    let sampling = stop
    let calls: [() async throws -> Void] = [
      { _ = try await Session.open(path: path + "\0", memoryBytes: memory, options: options) },
      { _ = try Session.plan(path: path, memoryBytes: memory, options: folder) },
      { _ = try Session.inspect(path: path + "\0") },
      { try await session.add(role: "user\0", text: "Hi") },
      { try await session.save(to: "/tmp/\0") },
      { try await session.restore(from: "/tmp/\0") },
      { try await session.trim(.cache, folder: "/tmp\0") },
      { _ = try await session.ask("Hi", sampling: sampling) },
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
    let whole = try await session.ask(story, sampling: greedy)
    let sampling = greedy
    let story = story
    var early = false
    for _ in 0..<50 where !early {
      try await session.reset()
      let task = Task { try await session.ask(story, sampling: sampling) }
      try await Task.sleep(nanoseconds: 5_000_000)
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
    for try await _ in session.chat(story, sampling: greedy) { whole += 1 }
    var early = false
    for _ in 0..<50 where !early {
      let session = try await open()
      var pieces = 0
      for try await _ in session.chat(story, sampling: greedy) {
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
