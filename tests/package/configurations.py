"""The CMake options that these tests and other tests build.

test_options.py builds each of CONFIGURATIONS and checks the result. test_documented.py fails if a page or a CMake
file names an option or a value that is not listed here.
"""

# By the test that builds it. Values in <> are what this machine has.
CONFIGURATIONS = {
    # `cmake -B build` without the program, which takes longer than the rest and is tested by the build of this test.
    # The first five are defaults.
    "by_default": {
        "ORIEL_VULKAN": "ON",
        "ORIEL_COMPILE_SHADERS": "OFF",
        "ORIEL_CPU_SIMD": "ON",
        "ORIEL_BUILD_TESTS": "OFF",
        "ORIEL_WARNINGS_AS_ERRORS": "OFF",
        "ORIEL_BOTH_LIBRARIES": "OFF",
        "ORIEL_INSTALL": "ON",
        "CMAKE_BUILD_TYPE": "Release",
        "ORIEL_BUILD_CLI": "OFF",
        "ORIEL_PACK_RELOCATIONS": "ON",
    },
    # The options of integrations/apple/build_xcframework.sh. The test reads them from the script.
    "as_a_framework": {
        "ORIEL_VULKAN": "OFF",
        "ORIEL_BUILD_CLI": "OFF",
        "ORIEL_FETCH_HIGHWAY": "ON",
        "BUILD_SHARED_LIBS": "OFF",
    },
    "as_a_shared_library": {
        "BUILD_SHARED_LIBS": "ON",
        "ORIEL_WARNINGS_AS_ERRORS": "ON",
        "ORIEL_PACK_RELOCATIONS": "OFF",
        "ORIEL_INSTALL": "ON",
        "ORIEL_COMPILE_SHADERS": "ON",
        "ORIEL_GLSLANG": "<the shader compiler>",
        "ORIEL_SPIRV_VAL": "<its validator>",
        "ORIEL_VULKAN_HEADERS": "<Vulkan's headers>",
        "CMAKE_BUILD_TYPE": "Debug",
    },
    # As scripts/package.sh does it; and everything is there to build with a line editor.
    "as_packages": {
        "ORIEL_LINE_EDITOR": "OFF",
        "ORIEL_SERVER": "OFF",
        "ORIEL_STATIC_RUNTIME": "ON",
        "ORIEL_BUILD_CLI": "ON",
        "ORIEL_BOTH_LIBRARIES": "ON",
    },
    "as_plain_code": {
        "ORIEL_VULKAN": "OFF",
        "ORIEL_CPU_SIMD": "OFF",
        "ORIEL_BUILD_CLI": "OFF",
        "ORIEL_INSTALL": "OFF",
        "ORIEL_FETCH_HIGHWAY": "OFF",
        "ORIEL_WARNINGS_AS_ERRORS": "ON",
    },
}

# The build whose tests these are.
THIS_BUILD = {"ORIEL_BUILD_TESTS": "ON", "ORIEL_BUILD_CLI": "ON", "ORIEL_CLI11": "<CLI11>", "ORIEL_JSON": "<JSON>",
              "ORIEL_LINE_EDITOR": "AUTO", "ORIEL_LIBEDIT": "<libedit>", "ORIEL_SERVER": "AUTO",
              "ORIEL_BOOST": "<Boost>", "ORIEL_STATIC_RUNTIME": "OFF"}

# Documented, but not for apps. The value is the reason for no test.
ELSEWHERE = {
    "ORIEL_DLLTOOL": "scripts/cross.sh windows-x64",
    "ORIEL_PROGRAM_LTO": "builds for Windows, and those of other compilers than gcc, are without",
    "ORIEL_DESKTOP": "scripts/desktop.sh",
    "ORIEL_BUILD_LAB": "scripts/nightly.sh",
    "ORIEL_UNITY": "scripts/test.sh",
    "ORIEL_FUZZ": "scripts/fuzz.sh",
    "ORIEL_WASM_THREADS": "scripts/web.sh",
    "EMSCRIPTEN_ROOT": "scripts/web.sh",
    "ORIEL_NODE": "what tests run on",
    "ORIEL_HIGHWAY_INSTALLED": "found or not, as ORIEL_FETCH_HIGHWAY says",
    "ORIEL_TEST_ALL": "which tests run",
    "ORIEL_SWIFTSHADER_ICD": "what tests run on",
    "ORIEL_LAVAPIPE_ICD": "what tests run on",
    "ORIEL_REFERENCE_DATA": "what tests read",
    "ORIEL_SWIFTC": "scripts/bindings.sh",
    "ORIEL_SWIFT_RUN": "scripts/bindings.sh",
    "ORIEL_KOTLIN": "scripts/bindings.sh",
    "ORIEL_JDK_INCLUDE": "tests/jni",
    "ORIEL_JDK_INCLUDE_SYSTEM": "tests/jni",
    "ORIEL_HEADER_": "tests/header",
    "CMAKE_PREFIX_PATH": "test_linking.py",
    "CMAKE_FIND_ROOT_PATH": "scripts/cross.sh",
    "ORIEL_NOTICES_TO": "needs the NDK",
    "ANDROID_NDK": "needs the NDK",
    "ANDROID_STL": "needs the NDK",
    "CMAKE_SYSTEM_NAME": "needs Xcode",
    "CMAKE_SYSTEM_PROCESSOR": "needs Xcode",
    "CMAKE_OSX_SYSROOT": "needs Xcode",
    "CMAKE_OSX_ARCHITECTURES": "needs Xcode",
    "CMAKE_OSX_DEPLOYMENT_TARGET": "needs Xcode",
}
