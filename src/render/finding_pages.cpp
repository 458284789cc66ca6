#include "render/finding.h"

#include "render/findings_pages.h"

namespace hf::report {
namespace {

constexpr std::string_view kHeading = "\n## ";

}  // namespace

std::string page_of(std::string_view code) {
  const std::string_view pages = kFindingsPages;
  const std::string heading = std::string(kHeading) + std::string(code) + " ";
  const std::size_t start = pages.find(heading);
  if (start == std::string_view::npos) {
    return {};
  }
  const std::size_t end = pages.find(kHeading, start + heading.size());
  return std::string(pages.substr(start + kHeading.size(),
                                  end == std::string_view::npos ? end : end - start - kHeading.size())) +
         "\n";
}

std::vector<std::string> codes_with_pages() {
  std::vector<std::string> codes;
  const std::string_view pages = kFindingsPages;
  for (std::size_t at = pages.find(kHeading); at != std::string_view::npos; at = pages.find(kHeading, at + 1)) {
    const std::string_view line = pages.substr(at + kHeading.size());
    const std::string_view code = line.substr(0, line.find_first_of(" \n"));
    if (code.starts_with("HF-")) {
      codes.emplace_back(code);
    }
  }
  return codes;
}

}  // namespace hf::report
