// How alike two measures order the same things. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace ag {

// Returns the rank of each value, from 1 for the least; equal values have the mean of their ranks.
// Infinity is a value like others. REQUIRES: none is NaN.
std::vector<double> Ranks(std::span<const double> values);

// Returns Spearman's coefficient (1904): Pearson's of the ranks. 1: the same order, -1: the
// opposite one; 0 where all values of one side are equal, or there are fewer than two. REQUIRES: as
// many values of both, none NaN.
double Spearman(std::span<const double> a, std::span<const double> b);

}  // namespace ag
