// Compiled for the precompiled header of the tests alone: tests/CMakeLists.txt.
