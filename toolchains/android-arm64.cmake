# Android on 64-bit Arm; see android.cmake. Written, never built: no NDK where this was made.
set(ANDROID_ABI arm64-v8a)
include(${CMAKE_CURRENT_LIST_DIR}/android.cmake)
