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
}
