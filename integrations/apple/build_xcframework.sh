#!/usr/bin/env bash
# Builds build/COriel.xcframework: the library for iOS, its simulator and macOS, on Apple silicon. To be run on a Mac
# with Xcode, CMake and Ninja.
#
#   ORIEL_VULKAN=ON build_xcframework.sh
#
# also builds the Vulkan executor, for apps that embed MoltenVK. This needs the Vulkan headers on the Mac, from
# ORIEL_VULKAN_HEADERS (the folder with vulkan/vulkan.h), the Vulkan SDK (VULKAN_SDK) or Homebrew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../.. && pwd)
build=$PWD/build
vulkan=${ORIEL_VULKAN:-OFF}

headers=$build/include
rm -rf "$headers" "$build/COriel.xcframework"
# Xcode copies what all packages have into one folder: the module map needs a folder of its own.
mkdir -p "$headers/oriel" "$headers/COriel"
cp "$root/runtime/include/oriel/"{oriel,advanced}.h "$headers/oriel/"
cp module.modulemap "$headers/COriel/"

# The options' names, for editors.
cmake -DLANGUAGE=swift -DTO="$PWD/Sources/Oriel/OptionNames.swift" -P ../options/option_names.cmake

options=(-DORIEL_VULKAN="$vulkan")
if [[ $vulkan == ON ]]; then
  # CMake does not look outside the SDK of the system that it builds for.
  vulkan_headers=${ORIEL_VULKAN_HEADERS:-${VULKAN_SDK:+$VULKAN_SDK/include}}
  if [[ -z $vulkan_headers ]] && command -v brew >/dev/null; then
    vulkan_headers=$(brew --prefix vulkan-headers 2>/dev/null || true)/include
  fi
  if [[ ! -f $vulkan_headers/vulkan/vulkan.h ]]; then
    echo "no vulkan/vulkan.h in \"$vulkan_headers\": brew install vulkan-headers, or name its folder in" \
      "ORIEL_VULKAN_HEADERS" >&2
    exit 1
  fi
  options+=(-DORIEL_VULKAN_HEADERS="$vulkan_headers")
fi

arguments=()
# build_for NAME SYSTEM SDK MINIMUM
build_for() {
  cmake -S "$root" -B "$build/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME="$2" \
    -DCMAKE_SYSTEM_PROCESSOR=arm64 -DCMAKE_OSX_SYSROOT="$3" -DCMAKE_OSX_ARCHITECTURES=arm64 \
    -DCMAKE_OSX_DEPLOYMENT_TARGET="$4" -DORIEL_BUILD_CLI=OFF -DORIEL_FETCH_HIGHWAY=ON \
    "${options[@]}"
  cmake --build "$build/$1" --target oriel
  arguments+=(-library "$build/$1/runtime/liboriel.a" -headers "$headers")
}
build_for ios iOS iphoneos 15.0
build_for ios-simulator iOS iphonesimulator 15.0
build_for macos Darwin macosx 12.0

xcodebuild -create-xcframework "${arguments[@]}" -output "$build/COriel.xcframework"
cp "$root/LICENSE" "$build/ios/THIRD_PARTY_NOTICES.txt" "$build/COriel.xcframework/"
