#include "services/demo/tally.h"

#include <gtest/gtest.h>

#include "services/demo/temporary_directory.h"

namespace hf::demo {
namespace {

class TallyTest : public testing::Test {
 protected:
  Result<TemporaryDirectory> directory_ = TemporaryDirectory::make();
  std::string path_ = directory_ ? directory_->path() + "/tally" : "";
};

TEST_F(TallyTest, ShowsWhatTheProgramInsideCounts) {
  const Result<Tally> ours = Tally::create(path_);
  ASSERT_TRUE(ours) << ours.error().message;
  const Result<Tally> inside = Tally::open(path_);
  ASSERT_TRUE(inside) << inside.error().message;
  inside->counts().opens = 7;
  inside->counts().refused = 2;
  inside->counts().outages = 1;
  inside->counts().longest_ns = 500;
  const report::Opens read = ours->read();
  EXPECT_EQ(read.count, 7U);
  EXPECT_EQ(read.refused, 2U);
  EXPECT_EQ(read.outages, 1U);
  EXPECT_EQ(read.longest_ns, 500U);
}

TEST_F(TallyTest, KeepsTheTimesWhenItIsReset) {
  const Result<Tally> tally = Tally::create(path_);
  ASSERT_TRUE(tally) << tally.error().message;
  tally->counts().refused = 2;
  tally->counts().last_refused_at = 1000;
  tally->reset();
  EXPECT_EQ(tally->read().refused, 0U);
  EXPECT_EQ(tally->counts().last_refused_at, 1000U);
}

TEST_F(TallyTest, NeverUsesAFileThatIsThereAlready) {
  EXPECT_FALSE(Tally::open(path_)) << "it does not exist yet";
  ASSERT_TRUE(Tally::create(path_));
  EXPECT_FALSE(Tally::create(path_));
}

}  // namespace
}  // namespace hf::demo
