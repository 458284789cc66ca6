// ExitCode: what the commands of people exit with.
#pragma once

namespace hf::programs {

// 0: fine. 1: a problem was found. 2: usage, or it could not be determined.
inline constexpr int kFine = 0;
inline constexpr int kProblem = 1;
inline constexpr int kCannotTell = 2;

}  // namespace hf::programs
