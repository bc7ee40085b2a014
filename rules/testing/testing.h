// Helpers for tests of this room. Pure functions.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "graph/text_form.h"

namespace ag {

// Returns the graph of a text form. An error fails the test and gives an empty graph.
inline Graph MustParse(const std::string& text) {
  StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << ToString(graph.status()) << "\n" << text;
  return graph.ok() ? *graph : Graph();
}

}  // namespace ag
