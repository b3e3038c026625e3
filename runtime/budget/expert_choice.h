// The distribution of routers' choices over experts. Plans use it for predictions, scripts/make_model.py for routers.
//
// Published for Qwen3.6-35B-A3B: the hottest 26 to 28 of a layer's 256 experts take half of all choices, and the Gini
// index of the choices is 0.65 (oRKLLM/ork-driver, "MoE Routing Skew", June 2026). The table meets both figures.
#pragma once

namespace oriel_internal {

/// A point of the cumulative distribution: the hottest `experts` (a share of a layer's experts) take `choices` (a share of
/// all choices). make_model.py parses this text.
struct ExpertChoice {
  double experts;
  double choices;
};
constexpr ExpertChoice kExpertChoice[] = {
    {0.0, 0.0},     {0.0078125, 0.05}, {0.015625, 0.1}, {0.03125, 0.195}, {0.0625, 0.355},
    {0.125, 0.565}, {0.25, 0.775},     {0.5, 0.945},    {1.0, 1.0},
};
/// Largest share of all tokens that choose the same expert. A model with few experts would exceed it: its table is mixed
/// with an even choice.
constexpr double kMostChosen = 0.4;

}  // namespace oriel_internal
