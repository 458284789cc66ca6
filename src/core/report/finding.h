// Finding: one thing that is wrong, or will be: a stable code, a verdict, what was read where, and what helps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hf::report {

// note: worth knowing, nothing to do. warning: will hurt, or hurts a little. critical: somebody cannot work.
enum class Severity : std::uint8_t { note, warning, critical };
std::string to_string(Severity severity);

struct Finding {
  std::string code;  // "HF-101"; docs/FINDINGS.md has its page
  Severity severity = Severity::warning;
  std::string subject;    // "host", or the container as people call it
  std::string container;  // its id; "" for the host
  std::string verdict;    // one sentence
  std::vector<std::string> evidence;
  std::vector<std::string> cure;  // commands for this host, or what to do where no command helps
};

// For people: each with its evidence and its cure.
std::string render_text(const std::vector<Finding>& findings);

// The page of a code in docs/FINDINGS.md, "" where there is none.
std::string page_of(std::string_view code);
std::vector<std::string> codes_with_pages();

}  // namespace hf::report
