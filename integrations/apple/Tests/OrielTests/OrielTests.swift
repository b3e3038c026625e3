import Foundation
import XCTest

@testable import Oriel

/// On a Mac: build_xcframework.sh, then `swift test`.
final class OrielTests: XCTestCase {
  private let model = URL(fileURLWithPath: #filePath)
    .appendingPathComponent("../../../../../models/oriel-tiny/oriel-tiny-q8_0.gguf")
    .standardized.path
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

  func testAReplyIsTheReference() async throws {
    let session = try await Session.open(path: model, memoryBytes: 16 << 20, options: options)
    var reply = ""
    for try await piece in session.chat("Introduce yourself.", sampling: greedy) { reply += piece }
    XCTAssertEqual("I am Oriel, a small program that chats. I work without the internet.", reply)
    await session.close()
  }

  func testABrokenOffReplyLeavesTheSessionUsable() async throws {
    let session = try await Session.open(path: model, memoryBytes: 16 << 20, options: options)
    for try await _ in session.chat("Introduce yourself.", sampling: greedy) { break }
    try await session.reset()
    var reply = ""
    for try await piece in session.chat("What is 27 + 35?", sampling: greedy) { reply += piece }
    XCTAssertEqual("27 plus 35 is 62.", reply)
  }

  func testErrorsSayWhatToDo() async {
    do {
      _ = try await Session.open(path: "/no/such.gguf", memoryBytes: 16 << 20)
      XCTFail("it opened")
    } catch {
      XCTAssertTrue("\(error)".contains("/no/such.gguf"), "\(error)")
    }
  }

  func testAClosedSessionRefuses() async throws {
    let session = try await Session.open(path: model, memoryBytes: 16 << 20, options: options)
    await session.close()
    await session.close()
    do {
      try await session.reset()
      XCTFail("it went on")
    } catch {
      XCTAssertTrue(error is OrielError)
    }
  }
}
