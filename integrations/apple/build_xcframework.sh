#!/usr/bin/env bash
# Builds build/COriel.xcframework: the library for iOS, its simulator and macOS, on Apple silicon. To
# be run on a Mac with Xcode, CMake and Ninja.
#
#   ORIEL_VULKAN=ON build_xcframework.sh
#
# builds the Vulkan executor, too, for apps that embed MoltenVK; that needs glslang, spirv-tools and
# vulkan-headers on the Mac.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../.. && pwd)
build=$PWD/build
vulkan=${ORIEL_VULKAN:-OFF}

headers=$build/include
rm -rf "$headers" "$build/COriel.xcframework"
mkdir -p "$headers/oriel"
cp "$root/runtime/include/oriel/oriel.h" "$headers/oriel/"
cp module.modulemap "$headers/"

arguments=()
# build_for NAME SYSTEM SDK MINIMUM
build_for() {
  cmake -S "$root" -B "$build/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME="$2" \
    -DCMAKE_SYSTEM_PROCESSOR=arm64 -DCMAKE_OSX_SYSROOT="$3" -DCMAKE_OSX_ARCHITECTURES=arm64 \
    -DCMAKE_OSX_DEPLOYMENT_TARGET="$4" -DORIEL_BUILD_CLI=OFF -DORIEL_FETCH_HIGHWAY=ON \
    -DORIEL_VULKAN="$vulkan"
  cmake --build "$build/$1" --target oriel
  arguments+=(-library "$build/$1/runtime/liboriel.a" -headers "$headers")
}
build_for ios iOS iphoneos 15.0
build_for ios-simulator iOS iphonesimulator 15.0
build_for macos Darwin macosx 12.0

xcodebuild -create-xcframework "${arguments[@]}" -output "$build/COriel.xcframework"
