// Memory borrowed for a scope.
#include "base/workspace.h"

#include <gtest/gtest.h>

#include "support/ledger.h"

namespace oriel_internal::test::test_workspace {
namespace {

// For example the ids of a reply stopped before its first token, which a recovery reads again.
TEST(Workspace, no_bytes_are_always_had) {
  Ledger ledger;
  Workspace without(nullptr, 0, ledger.allocator());
  EXPECT_NE(nullptr, BorrowedBytes(&without, 0).data());
  uint8_t block[64];
  Workspace full(block, sizeof(block), ledger.allocator());
  const BorrowedBytes all(&full, sizeof(block));
  EXPECT_EQ(block, all.data());
  EXPECT_NE(nullptr, BorrowedBytes(&full, 0).data());
  EXPECT_EQ(0u, ledger.peak_bytes);
  EXPECT_EQ(nullptr, BorrowedBytes(&full, UINT64_MAX).data());
}

}  // namespace
}  // namespace oriel_internal::test::test_workspace
