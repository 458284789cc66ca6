// Every recorded filter: analyse and interpret agree wherever they could differ.
#include <gtest/gtest.h>

#include "core/bpf/analyse.h"
#include "core/bpf/generate.h"
#include "core/bpf/interpret.h"
#include "core/bpf/producer.h"
#include "core/device/shortest.h"
#include "support/vectors.h"

namespace hf::bpf {
namespace {

class Vectors : public testing::Test {
 protected:
  void SetUp() override {
    vectors_ = test::read_bpf_vectors();
    if (vectors_.empty()) {
      GTEST_SKIP() << "no recorded filters at " << test::vectors_directory();
    }
  }

  std::vector<test::Vector> vectors_;
};

TEST_F(Vectors, AreReadExactlyExceptThoseThatDependOnMaps) {
  for (const test::Vector& vector : vectors_) {
    const Readable<device::Table> table = analyse(vector.program.code);
    if (vector.name.find("map") != std::string::npos) {
      ASSERT_FALSE(table) << vector.name;
      EXPECT_NE(table.error().why.find("map"), std::string::npos) << table.error().why;
      continue;
    }
    ASSERT_TRUE(table) << vector.name << ": " << table.error().why;
    for (const device::Device& device : test::landmark_devices(vector.program.code)) {
      for (unsigned access = 1; access <= 7; ++access) {
        const device::Request request{device, device::Access(access)};
        const Readable<Verdict> verdict = interpret(vector.program.code, request);
        ASSERT_TRUE(verdict) << vector.name << " " << to_string(request) << ": " << verdict.error().why;
        ASSERT_EQ(*verdict == Verdict::allow, table->allows(request)) << vector.name << " " << to_string(request);
      }
    }
  }
}

TEST_F(Vectors, AreGeneratedAgainWithTheSameMeaning) {
  for (const test::Vector& vector : vectors_) {
    if (const Readable<device::Table> table = analyse(vector.program.code)) {
      const Result<Code> code = generate(*table);
      ASSERT_TRUE(code) << vector.name << ": " << code.error().message;
      ASSERT_EQ(*analyse(*code), *table) << vector.name;
    }
  }
}

TEST_F(Vectors, HaveAProducerThatIsRecognisedByTheCode) {
  for (const test::Vector& vector : vectors_) {
    const std::string producer =
        producer_of(vector.program.code, vector.program.name == "nvcgo" ? "" : vector.program.name);
    if (vector.name.starts_with("adv-")) {
      EXPECT_EQ(producer, "") << vector.name;
    } else if (vector.name.starts_with("nvcgo")) {
      EXPECT_EQ(producer, "libnvidia-container") << vector.name;
    } else {
      EXPECT_NE(vector.name.find(producer), std::string::npos) << vector.name << " taken for " << producer;
      EXPECT_NE(producer, "") << vector.name;
    }
  }
}

TEST_F(Vectors, WithRangesShowThemAsRanges) {
  for (const test::Vector& vector : vectors_) {
    if (vector.name == "adv-rangecheck") {
      std::string text;
      for (const device::Rule& rule : device::shortest_rules(*analyse(vector.program.code))) {
        text += to_string(rule) + ";";
      }
      EXPECT_EQ(text, "c 1:3 rwm;c 1:5 rwm;c 195:0-7 rw;c 240-254:* rwm;");
    }
  }
}

}  // namespace
}  // namespace hf::bpf
