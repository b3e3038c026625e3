# Android on x86-64, for emulators; see android.cmake. Written, never built: no NDK where this was made.
set(ANDROID_ABI x86_64)
include(${CMAKE_CURRENT_LIST_DIR}/android.cmake)
