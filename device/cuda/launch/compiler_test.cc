#include "device/cuda/launch/compiler.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "device/cuda/launch/image_cache.h"

namespace ag::cuda {
namespace {

// A program in place of autograph-nvrtc.
class Fake {
 public:
  explicit Fake(const std::string& script)
      : folder_(*TempDir::Make("compiler-test")), program_(folder_.path() + "/program") {
    AG_CHECK(WriteFileAtomically(program_, "#!/bin/sh\n" + script).ok());
    AG_CHECK(chmod(program_.c_str(), 0700) == 0);
  }
  std::unique_ptr<Compiler> Make(Nanos time_max = Nanos(20'000'000'000)) const {
    return MakeNvrtcCompiler({.program = program_,
                              .cache_folder = folder_.path() + "/cache",
                              .children = 2,
                              .time_max = time_max});
  }

 private:
  TempDir folder_;
  std::string program_;
};

TEST(NvrtcCompiler, ACrashIsAStatusAndTheNextSourceGetsAFreshChild) {
  const Fake fake("kill -SEGV $$\n");
  const auto compiler = fake.Make();
  for (int i = 0; i < 2; ++i) {
    const auto image = compiler->Compile("text", 90);
    EXPECT_EQ(image.status().code(), StatusCode::kUnavailable);
    EXPECT_TRUE(Message(image.status()).starts_with("the compiler died: ")) << image.status();
  }
}

TEST(NvrtcCompiler, AHangIsEnded) {
  const Fake fake("exec sleep 100\n");
  EXPECT_EQ(ToString(fake.Make(Nanos(50'000'000))->Compile("text", 90).status()),
            "DEADLINE_EXCEEDED: the compiler took longer than 0 s");
}

TEST(NvrtcCompiler, SaysThatThereIsNone) {
  const auto compiler = MakeNvrtcCompiler({.program = "/none", .cache_folder = ""});
  EXPECT_EQ(compiler->Compile("text", 90).status().code(), StatusCode::kNotFound);
}

// What is prepared and not wanted any more is let go with the compiler.
TEST(NvrtcCompiler, MayBeLeftWithWorkInItsQueue) {
  const Fake fake("exec sleep 100\n");
  const auto compiler = fake.Make(Nanos(50'000'000));
  for (int i = 0; i < 5; ++i) compiler->Prepare(fmt::format("text {}", i), 90);
}

TEST(ImageCache, FindsWhatItWasGivenAndNothingThatIsSpoilt) {
  const TempDir folder = *TempDir::Make("image-cache-test");
  const ImageCache cache(folder.path() + "/a/b", 1 << 20);
  const Digest key = Sha256("key");
  EXPECT_FALSE(cache.Find(key).has_value());
  cache.Put(key, "image");
  EXPECT_EQ(cache.Find(key), "image");
  EXPECT_FALSE(cache.Find(Sha256("other")).has_value());
  const std::string path = folder.path() + "/a/b/" + key.Hex();
  std::string bytes = *ReadFile(path);
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  EXPECT_FALSE(cache.Find(key).has_value());
  ASSERT_TRUE(WriteFileAtomically(path, "short").ok());
  EXPECT_FALSE(cache.Find(key).has_value());
}

TEST(ImageCache, LetsTheOldestGo) {
  const TempDir folder = *TempDir::Make("image-cache-test");
  const std::string image(1000, 'x');
  {
    const ImageCache cache(folder.path(), 1 << 20);
    for (int i = 0; i < 10; ++i) cache.Put(Sha256(fmt::format("{}", i)), image);
  }
  const ImageCache cache(folder.path(), 5000);
  EXPECT_LE(ListDir(folder.path())->size(), 2u);
}

TEST(ImageCache, DoesWithoutAFolderThatCannotBeMade) {
  const ImageCache cache("/proc/none", 1);
  cache.Put(Sha256("key"), "image");
  EXPECT_FALSE(cache.Find(Sha256("key")).has_value());
}

}  // namespace
}  // namespace ag::cuda
