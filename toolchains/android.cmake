# Android. ANDROID_ABI is arm64-v8a (64-bit Arm) or x86_64 (emulators); the presets give it. Compiler: Clang of the NDK
# (r26 or newer; from Android Studio's SDK manager or developer.android.com/ndk), found by -DANDROID_NDK=FOLDER or the
# variables ANDROID_NDK_HOME or ANDROID_NDK_ROOT of the environment. The NDK has Vulkan's headers; Highway's come with
# -DORIEL_FETCH_HIGHWAY=ON. Needs no system newer than Android 7.0, the first with Vulkan.
#
# Written, never built, not run by this project's scripts: distributions package no NDK.
foreach(folder "${ANDROID_NDK}" "$ENV{ANDROID_NDK_HOME}" "$ENV{ANDROID_NDK_ROOT}")
  if(folder AND EXISTS ${folder}/build/cmake/android.toolchain.cmake)
    set(ANDROID_NDK ${folder})
    break()
  endif()
endforeach()
if(NOT ANDROID_NDK)
  message(FATAL_ERROR "no Android NDK: give -DANDROID_NDK=FOLDER or set ANDROID_NDK_HOME")
endif()
if(NOT ANDROID_ABI)
  message(FATAL_ERROR "no ANDROID_ABI: give -DANDROID_ABI=arm64-v8a or x86_64")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ANDROID_NDK ANDROID_ABI)
set(ANDROID_PLATFORM android-24)
set(ANDROID_STL c++_static)
set(ORIEL_BUILD_CLI OFF CACHE BOOL "an app links the library")
include(${ANDROID_NDK}/build/cmake/android.toolchain.cmake)
