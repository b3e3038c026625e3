import Foundation
import XCTest

@testable import Oriel

/// Memory given back and taken again.
final class MemoryTests: XCTestCase {
  private static let root = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../../..").standardized
  private let model = root.appendingPathComponent("models/oriel-tiny/oriel-tiny-q8_0.gguf").path
  private let question = "What can you do?"
  private var greedy: Sampling {
    var sampling = Sampling()
    sampling.greedy = true
    return sampling
  }

  private func open() async throws -> Session {
    var options = Options()
    options.device = .cpu
    return try await Session.open(path: model, memoryBytes: 16 << 20, options: options)
  }

  func testEveryLevelLeavesWhatThePlanSaysAndTheWords() async throws {
    let session = try await open()
    let other = try await open()
    for level in [Trim.scratch, .weights, .cache] {
      try await session.trim(level, folder: level == .cache ? NSTemporaryDirectory() : nil)
      let trimmed = try await session.resident()
      XCTAssertEqual(trimmed.level, level)
      XCTAssertEqual(trimmed.totalBytes, session.plan.trimBytes(level))
      try await session.resume()
      let whole = try await session.resident()
      XCTAssertEqual(whole.totalBytes, session.plan.totalBytes)
      let said = try await session.ask(question, sampling: greedy)
      let expected = try await other.ask(question, sampling: greedy)
      XCTAssertEqual(said.text, expected.text)
    }
  }

  func testAReplyWaitsFromPauseToResume() async throws {
    let session = try await open()
    var pieces = session.chat(question, sampling: greedy).makeAsyncIterator()
    var text = try await pieces.next() ?? ""
    try await session.pause()
    try await session.trim(.weights)
    try await session.resume(progress: { _, _ in true })
    while let piece = try await pieces.next() { text += piece }
    let other = try await open()
    let expected = try await other.ask(question, sampling: greedy)
    XCTAssertEqual(text, expected.text)
  }

  func testAPausedSessionCloses() async throws {
    let session = try await open()
    try await session.pause()
    do {
      try await session.add(role: "user", text: "Still there?")
      XCTFail("it is paused")
    } catch let error as OrielError {
      XCTAssertEqual(error.status, .state)
    }
    try await session.trim(.weights)
    await session.close()
    do {
      try await session.resume()
      XCTFail("it is closed")
    } catch let error as OrielError {
      XCTAssertEqual(error.message, OrielError.closed.message)
    }
  }

  func testACallThatRestsAndHasToUndoSomethingIsClosed() async throws {
    var options = Options()
    options.device = .cpu
    options.chunkTokens = 1
    options.windowTokens = 2000
    let session = try await Session.open(path: model, memoryBytes: 200 << 20, options: options)
    let text = String(repeating: "word ", count: 1500)
    let embedding = Task { try await session.embed(text) }
    try await Task.sleep(nanoseconds: 100_000_000)
    try await session.pause()
    try await session.trim(.weights)
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
    try await session.trim(.weights)
    do {
      try await session.resume { done, total in
        if done < total / 4 {
          Task { await session.close() }
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
    var options = Options()
    options.device = .cpu
    options.transcriptBytes = 4096
    let session = try await Session.open(path: model, memoryBytes: 16 << 20, options: options)
    XCTAssertGreaterThanOrEqual(session.plan.transcriptBytes, 4096)
    _ = try await session.ask(question, sampling: greedy)
    let before = try await session.stats().position
    try await session.trim(.all)
    let trimmed = try await session.resident()
    XCTAssertEqual(trimmed.totalBytes, session.plan.trimBytes(.all))
    try await session.resume()
    let after = try await session.stats().position
    XCTAssertLessThan(max(before, after) - min(before, after), 8)
  }

  func testASystemPromptThatAResetCouldNotReadComesLater() async throws {
    let stops = Stops()
    var options = Options()
    options.device = .cpu
    options.chunkTokens = 1
    options.systemPrompt = "You are a pirate."
    options.readingAgain = { _, _ in !stops.take() }
    let session = try await Session.open(path: model, memoryBytes: 16 << 20, options: options)
    let whole = try await session.stats().position
    stops.set(2)
    do {
      try await session.reset()
      XCTFail("it was not stopped")
    } catch let error as OrielError {
      XCTAssertEqual(error.status, .cancelled)
    }
    do {
      _ = try await session.stats()
      XCTFail("it was not stopped")
    } catch let error as OrielError {
      XCTAssertEqual(error.status, .cancelled)
    }
    let again = try await session.stats().position
    XCTAssertEqual(again, whole)
  }
}

private final class Stops: @unchecked Sendable {
  private let lock = NSLock()
  private var left = 0

  func set(_ count: Int) {
    lock.lock()
    left = count
    lock.unlock()
  }

  func take() -> Bool {
    lock.lock()
    defer { lock.unlock() }
    left -= 1
    return left >= 0
  }
}
