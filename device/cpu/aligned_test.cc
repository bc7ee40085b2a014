#include "device/cpu/aligned.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace ag::cpu {
namespace {

bool IsZero(const AlignedBuffer& buffer) {
  return std::all_of(buffer.data(), buffer.data() + buffer.size(),
                     [](std::byte b) { return b == std::byte{0}; });
}

void Dirty(const AlignedBuffer& buffer) {
  std::fill_n(buffer.data(), buffer.size(), std::byte{0xff});
}

TEST(AlignedBuffer, PiecesAreAlignedZeroAndApart) {
  std::vector<AlignedBuffer> buffers;
  for (const size_t bytes : {0ul, 1ul, 63ul, 64ul, 1000ul, 5ul << 20, 9ul << 20, 7ul << 20}) {
    buffers.push_back(*AlignedBuffer::Make(bytes));
    const AlignedBuffer& buffer = buffers.back();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0u) << bytes;
    EXPECT_EQ(buffer.size(), AlignUp(std::max<size_t>(bytes, 1)));
    EXPECT_TRUE(IsZero(buffer)) << bytes;  // Also after its neighbours were written to.
    Dirty(buffer);
  }
}

TEST(AlignedBuffer, MemoryUsedAnewIsZeroAgain) {
  std::set<const std::byte*> places;
  for (int round = 0; round < 40; ++round) {  // Enough for several regions.
    const AlignedBuffer buffer = *AlignedBuffer::Make(1 << 20);
    ASSERT_TRUE(IsZero(buffer)) << round;
    Dirty(buffer);
    // Others may hold pieces of the first region; from the second on all is free each time.
    if (round >= 20) places.insert(buffer.data());
  }
#if !defined(__SANITIZE_ADDRESS__)  // There each piece is an allocation, kept aside when freed.
  EXPECT_EQ(places.size(), 1u);
#endif
}

TEST(AlignedBuffer, APieceOutlivesItsNeighbours) {
  const AlignedBuffer kept = *AlignedBuffer::Make(4096);
  Dirty(kept);
  for (int round = 0; round < 40; ++round) ASSERT_TRUE(IsZero(*AlignedBuffer::Make(1 << 20)));
  EXPECT_EQ(kept.data()[0], std::byte{0xff});
  EXPECT_EQ(kept.data()[4095], std::byte{0xff});
}

TEST(AlignedBuffer, ThreadsGetPiecesOfTheirOwn) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int round = 0; round < 200; ++round) {
        const AlignedBuffer buffer = *AlignedBuffer::Make(10'000);
        EXPECT_TRUE(IsZero(buffer));
        Dirty(buffer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(AlignedBuffer, TooMuchIsAnErrorWithTheBytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer ends the process instead of returning null";
#endif
  EXPECT_EQ(ToString(AlignedBuffer::Make(size_t{1} << 60).status()),
            "RESOURCE_EXHAUSTED: cpu memory: cannot allocate 1152921504606846976 bytes");
}

// What is made on other threads, or while no list is there, is on no list.
TEST(BufferList, ListsWhatThisThreadMakesAndTakes) {
  const AlignedBuffer before = *AlignedBuffer::Make(64);
  BufferList list;
  const AlignedBuffer made = *AlignedBuffer::Make(100);
  std::thread([] { EXPECT_TRUE(AlignedBuffer::Make(64).ok()); }).join();
  {
    BufferList nested;
    BufferList::Note(before);
    const std::vector<WeakBuffer> inner = nested.Take();
    ASSERT_EQ(inner.size(), 1u);
    EXPECT_EQ(inner[0].Lock().data(), before.data());
  }
  const std::vector<WeakBuffer> listed = list.Take();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].Lock().data(), made.data());
  EXPECT_EQ(listed[0].Lock().size(), 128u);
}

}  // namespace
}  // namespace ag::cpu
