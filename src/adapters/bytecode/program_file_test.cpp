#include "adapters/bytecode/program_file.h"

#include <gtest/gtest.h>

namespace hf::bytecode {
namespace {

TEST(ProgramFile, ReadsHexAndRecords) {
  const ProgramFile hex = *parse_program_file("# deny everything\nb700000000000000\n\n9500000000000000\n");
  EXPECT_EQ(hex.code.size(), 2U);
  const ProgramFile record = *parse_program_file(
      R"({"insns":["b700000000000000","9500000000000000"],"prog_name":"sd_devices","kernel":"6.1"})");
  EXPECT_TRUE(bpf::same(hex.code, record.code));
  EXPECT_EQ(record.name, "sd_devices");
  EXPECT_EQ(record.kernel, "6.1");
  EXPECT_TRUE(bpf::same(*bpf::parse_hex(bpf::to_hex(hex.code)), hex.code));
}

TEST(ProgramFile, RefusesATextThatIsNoProgram) {
  for (const char* text :
       {"", "{", "{}", "[]", "b7000000000000", "b70000000000000x\n9500000000000000", "b700000000000000",
        R"({"insns":"b7"})", R"({"insns":[1]})", R"({"insns":["b7"]})", R"({"insns":[]})",
        "1800000000000000\n9500000000000000", "5500050000000000\n9500000000000000", "1800000000000000"}) {
    const Result<ProgramFile> file = parse_program_file(text);
    ASSERT_FALSE(file) << text;
    EXPECT_FALSE(file.error().message.empty());
  }
}

}  // namespace
}  // namespace hf::bytecode
