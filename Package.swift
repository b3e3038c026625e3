// swift-tools-version:5.7
// Oriel for iOS and macOS: integrations/apple/README.md
import PackageDescription

// A release puts an address and a checksum here. Without them build_xcframework.sh writes the framework.
let released: (url: String, checksum: String)? = nil

let package = Package(
  name: "Oriel",
  platforms: [.iOS(.v15), .macOS(.v12)],
  products: [.library(name: "Oriel", targets: ["Oriel"])],
  targets: [
    // The static library with oriel.h and its module map.
    released.map { .binaryTarget(name: "COriel", url: $0.url, checksum: $0.checksum) }
      ?? .binaryTarget(name: "COriel", path: "integrations/apple/build/COriel.xcframework"),
    .target(
      name: "Oriel", dependencies: ["COriel"], path: "integrations/apple/Sources/Oriel",
      resources: [.process("PrivacyInfo.xcprivacy")],
      linkerSettings: [.linkedLibrary("c++")]),
    .testTarget(name: "OrielTests", dependencies: ["Oriel"], path: "integrations/apple/Tests/OrielTests"),
  ]
)
