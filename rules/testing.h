// Helpers for tests of this room.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "graph/text_form.h"

namespace ag {

// The graph of a text form; an empty one, and a failed test, where it has none.
inline Graph MustParse(const std::string& text) {
  StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << ToString(graph.status()) << "\n" << text;
  return graph.ok() ? *graph : Graph();
}

}  // namespace ag
