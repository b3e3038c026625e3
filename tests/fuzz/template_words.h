// Elements of chat templates, and their mistakes.
#pragma once

#include <string>
#include <vector>

namespace oriel_internal::fuzz {

/// Expressions, statements, values, names and ends for templates and their inputs.
std::vector<std::string> templateWords();

/// Misuses of every filter, test, method and operator: one per template, since a mistake ends it.
std::vector<std::string> templateMistakes();

}  // namespace oriel_internal::fuzz
