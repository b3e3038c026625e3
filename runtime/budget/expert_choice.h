// How unevenly routers choose: what plans expect, and what scripts/make_model.py draws routers by.
//
// Published for Qwen3.6-35B-A3B: the hottest 26 to 28 of a layer's 256 experts take half of all choices, and the Gini
// index of the choices is 0.65 (oRKLLM/ork-driver, "MoE Routing Skew", June 2026). The table meets both figures.
#pragma once

namespace oriel_internal {

/// Of a layer's experts, hottest first, and of all choices, the part up to here. make_model.py reads this text.
struct ExpertChoice {
  double experts;
  double choices;
};
constexpr ExpertChoice kExpertChoice[] = {
    {0.0, 0.0},     {0.0078125, 0.05}, {0.015625, 0.1}, {0.03125, 0.195}, {0.0625, 0.355},
    {0.125, 0.565}, {0.25, 0.775},     {0.5, 0.945},    {1.0, 1.0},
};
/// Tokens that choose one expert, at most, of all tokens. Where few experts would need more, the table is mixed with an
/// even choice.
constexpr double kMostChosen = 0.4;

}  // namespace oriel_internal
