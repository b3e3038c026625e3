// C++20 of another project.
#include <oriel/oriel.h>

#include <concepts>
#include <cstdio>

static_assert(std::same_as<decltype(oriel_version()), const char*>);

int main() { return std::puts(oriel_version()) < 0; }
