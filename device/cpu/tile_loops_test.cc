// The loops of every instruction set that this machine has, against plain ones.
#include "device/cpu/tile_loops.h"

#include <gtest/gtest.h>

#include "device/cpu/loops_testing.h"

namespace ag::cpu {
namespace {

TEST(TileLoops, ProductsAddUp) {
  for (const std::string& isa : UsableInstructionSets()) {
    const TileLoops& loops = TileLoopsFor(isa);
    for (const int64_t k : {0, 1, 7}) {
      for (int64_t vectors = 1; vectors <= kTileVectorsMax; ++vectors) {
        const int64_t width = vectors * loops.lanes;
        const Waves panel(k * loops.rows, 1), tile(k * width, 2), start(loops.rows, 3);
        const Waves out(loops.rows * width, 4);
        loops.product(panel.data(), tile.data(), k, vectors, start.data(), out.data());
        for (int64_t i = 0; i < loops.rows * width; ++i) {
          double sum = start.data()[i / width];
          for (int64_t j = 0; j < k; ++j) {
            sum += double{panel.data()[j * loops.rows + i / width]} *
                   tile.data()[j * width + i % width];
          }
          ASSERT_NEAR(out.data()[i], sum, 1e-5) << isa << " " << vectors << " vectors";
        }
      }
    }
  }
}

TEST(TileLoops, SumsGoToTheirPlaces) {
  for (const std::string& isa : UsableInstructionSets()) {
    const TileLoops& loops = TileLoopsFor(isa);
    for (const int64_t n : {0, 1, 5, 16, 37}) {
      const Waves a(n, 1), b(n, 2), out(3 * n + 2, 3);
      std::vector<float> expected(out.data(), out.data() + 3 * n + 2);
      const auto check = [&](const char* what) {
        for (size_t i = 0; i < expected.size(); ++i) {
          ASSERT_NEAR(out.data()[i], expected[i], 1e-5) << isa << " " << what << " " << i;
        }
      };
      loops.add_pairs(out.data(), a.data(), b.data(), n, 2, 3);
      for (int64_t i = 0; i < n; ++i) {
        expected[2 * i] += 2 * a.data()[i];
        expected[2 * i + 1] += 3 * b.data()[i];
      }
      check("add_pairs");
      for (const int64_t stride : {1, 3}) {
        loops.add(out.data(), a.data(), n, stride, -1);
        for (int64_t i = 0; i < n; ++i) expected[i * stride] -= a.data()[i];
        check("add");
      }
      loops.put_pairs(out.data(), a.data(), b.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        expected[2 * i] = a.data()[i];
        expected[2 * i + 1] = b.data()[i];
      }
      check("put_pairs");
    }
  }
}

}  // namespace
}  // namespace ag::cpu
