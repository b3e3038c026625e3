// What chat templates are made of, and what mistakes they make.
#pragma once

#include <string>
#include <vector>

namespace oriel_internal::fuzz {

/// Expressions, statements, values, names and ends that a template or what it is given may have.
std::vector<std::string> templateWords();

/// What every filter, test, method and operator does with what it is not made for: one to each template, since a mistake
/// is the last thing that a template does.
std::vector<std::string> templateMistakes();

}  // namespace oriel_internal::fuzz
