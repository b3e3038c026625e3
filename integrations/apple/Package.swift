// swift-tools-version:5.7
import PackageDescription

let package = Package(
  name: "Oriel",
  platforms: [.iOS(.v15), .macOS(.v12)],
  products: [.library(name: "Oriel", targets: ["Oriel"])],
  targets: [
    // Written by build_xcframework.sh: the static library with oriel.h and its module map.
    .binaryTarget(name: "COriel", path: "build/COriel.xcframework"),
    .target(
      name: "Oriel", dependencies: ["COriel"],
      resources: [.process("PrivacyInfo.xcprivacy")],
      linkerSettings: [.linkedLibrary("c++")]),
    .testTarget(name: "OrielTests", dependencies: ["Oriel"]),
  ]
)
