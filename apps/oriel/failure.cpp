// The C++ runtime's report of uncaught exceptions takes 50 KB; main() catches them all.
#include "failure.h"

#include <cstdlib>

#ifdef __GLIBCXX__
namespace __gnu_cxx {
void __verbose_terminate_handler();  // NOLINT(bugprone-reserved-identifier): replaces the runtime's own
void __verbose_terminate_handler() { std::abort(); }
}  // namespace __gnu_cxx
#endif
