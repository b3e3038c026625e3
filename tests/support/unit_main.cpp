#include <gtest/gtest.h>

#include "support/kept_memory.h"

int main(int argc, char** argv) {
  oriel_internal::test::keepFreedMemory();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
