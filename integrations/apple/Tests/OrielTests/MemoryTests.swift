import Foundation
import XCTest

@testable import Oriel

/// Memory given back and taken again.
final class MemoryTests: XCTestCase {
  private func resident(_ session: Session) async throws -> [String: Any] {
    try await session.model.describe()["resident"] as? [String: Any] ?? [:]
  }

  func testEveryLevelLeavesWhatThePlanSaysAndTheWords() async throws {
    let session = try await open()
    let other = try await open()
    let levels = try await session.model.describe().members["plan"] as? [String: Any]
    let planned = levels?["trim_levels"] as? [[String: Any]]
    for level in [Trim.scratch, .weights, .cache] {
      try await session.model.trim(level, folder: level == .cache ? NSTemporaryDirectory() : nil)
      let trimmed = try await resident(session)
      XCTAssertEqual(trimmed["level"] as? String, "\(level)")
      let stays = planned?.first { $0["level"] as? String == "\(level)" }
      XCTAssertEqual(trimmed["total_bytes"] as? Int, stays?["bytes"] as? Int)
      try await session.model.resume()
      let whole = try await resident(session)
      XCTAssertEqual(whole["total_bytes"] as? UInt64, session.model.plan.totalBytes)
      let said = try await session.ask(question, options: greedy)
      let expected = try await other.ask(question, options: greedy)
      XCTAssertEqual(said.text, expected.text)
    }
  }

  func testAReplyWaitsFromPauseToResume() async throws {
    let session = try await open()
    var pieces = session.chat(question, options: greedy).makeAsyncIterator()
    var text = try await pieces.next() ?? ""
    try await session.model.pause()
    try await session.model.trim(.weights)
    try await session.model.resume(progress: { _, _ in true })
    while let piece = try await pieces.next() { text += piece }
    let other = try await open()
    let expected = try await other.ask(question, options: greedy)
    XCTAssertEqual(text, expected.text)
  }

  func testAPausedSessionCloses() async throws {
    let session = try await open()
    try await session.model.pause()
    do {
      try await session.add(role: "user", text: "Still there?")
      XCTFail("it is paused")
    } catch let error as OrielError {
      XCTAssertEqual(error.status, .state)
    }
    try await session.model.trim(.weights)
    await session.model.close()
    do {
      try await session.model.resume()
      XCTFail("it is closed")
    } catch let error as OrielError {
      XCTAssertEqual(error.message, OrielError.closed.message)
    }
  }

  func testACallThatRestsAndHasToUndoSomethingIsClosed() async throws {
    let session = try await open(["device": "cpu", "memory": 200 << 20, "prefill_batch": 1, "window": 2000])
    let text = String(repeating: "word ", count: 1500)
    let embedding = Task { try await session.embed(text) }
    try await Task.sleep(nanoseconds: 100_000_000)
    try await session.model.pause()
    try await session.model.trim(.weights)
    await session.close()
    do {
      _ = try await embedding.value
      XCTFail("it was over before it could be paused")
    } catch let error as OrielError {
      XCTAssertEqual(error.status, .cancelled)
    }
  }

  func testClosingEndsAResume() async throws {
    let session = try await open()
    try await session.model.trim(.weights)
    do {
      try await session.model.resume { done, total in
        if done < total / 4 {
          Task { await session.model.close() }
          Thread.sleep(forTimeInterval: 0.1)
        }
        return true
      }
      XCTFail("it went on")
    } catch let error as OrielError {
      XCTAssertEqual(error.status, .cancelled)
    }
    await session.close()
  }

  func testAConversationComesBackFromItsTranscript() async throws {
    let session = try await open(["device": "cpu", "memory": "16MiB", "transcript": 4096])
    _ = try await session.ask(question, options: greedy)
    let before = try await session.stats().position
    try await session.model.trim(.all)
    let trimmed = try await resident(session)
    XCTAssertEqual(trimmed["level"] as? String, "all")
    try await session.model.resume()
    let after = try await session.stats().position
    XCTAssertLessThan(max(before, after) - min(before, after), 8)
  }

  func testSessionsOfOneModelDoNotMeet() async throws {
    let model = try await load(["device": "cpu", "memory": "16MiB", "sessions": 3])
    let a = try await model.session()
    let b = try await model.session()
    async let first = a.ask(question, options: greedy).text
    async let second = b.ask(question, options: greedy).text
    let (one, other) = try await (first, second)
    XCTAssertEqual(one, other)
    let fork = try await a.fork()
    let goesOn = try await a.ask("What is 45 + 38?", options: greedy).text
    let forked = try await fork.ask("What is 45 + 38?", options: greedy).text
    XCTAssertEqual(goesOn, forked)
    await expect(.state) { try await model.session() }
    await fork.close()
    _ = try await model.session()
    await model.close()
    await expect(.state) { try await a.stats() }
    await expect(.state) { try await model.describe() }
  }

  func testASessionThatIsDroppedGivesItsPlaceBack() async throws {
    let model = try await load()
    for _ in 0..<5 {
      var made: Session?
      for _ in 0..<500 where made == nil {  // the previous model is freed after its queue releases it
        made = try? await model.session()
        if made == nil { try await Task.sleep(nanoseconds: 10_000_000) }
      }
      let session = try XCTUnwrap(made)
      _ = try await session.ask(question, options: ["greedy": true, "max_tokens": 1])
    }
    await model.close()
  }

  func testAdaptersAreChosenByName() async throws {
    let session = try await open()
    try await session.use(adapters: nil)
    try await session.use(adapters: "none")
    await expect(.argument) { try await session.use(adapters: "style") }
  }

  func testMarksAndTurnsAreWaysBack() async throws {
    let session = try await open()
    try await session.mark("start")
    let first = try await session.ask(question, options: greedy).text
    try await session.undo()
    let again = try await session.ask(question, options: greedy).text
    XCTAssertEqual(first, again)
    try await session.goBack(toMark: "start")
    let position = try await session.stats().position
    XCTAssertEqual(0, position)
  }
}
