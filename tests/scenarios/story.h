// Story: an invented machine from a directory of files (README.md), and the expected findings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/cgroup/filters.h"
#include "kernel/container/node_prober.h"
#include "kernel/files/host.h"
#include "support/fake_bpf.h"

namespace hf::test {

inline constexpr std::int64_t kBoot = 1'000'000'000;
inline constexpr std::int64_t kNow = 1'000'100'000;

std::vector<std::string> list_stories(const std::string& directory);

// One line of `expected`.
struct Expectation {
  std::string code;
  std::string subject;
  std::string text;        // must occur in the finding; "" for any
  bool is_banned = false;  // the text must not occur
};

// Answers probes from inside: nodes as they lie in the tree, access and open as the file `access` says.
class FakeNodeProber final : public kernel::NodeProber {
 public:
  FakeNodeProber(std::string root, const std::vector<std::vector<std::string>>& answers);

  Result<std::vector<container::NodeView>> probe(const kernel::ProbeRequest& request) override;
  // Refused where the file says something that rules and permission bits do not tell.
  Result<std::vector<container::NodeView>> look_up(const kernel::ProbeRequest& request) override;

 private:
  struct Answer {
    int access = 0;
    std::optional<int> open;
  };

  std::string root_;
  std::map<std::pair<int, std::string>, Answer> answers_;
};

class Story {
 public:
  Story(const std::string& directory, const std::string& name);  // throws if one of its files makes no sense
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;
  ~Story();

  [[nodiscard]] const kernel::Host& host() const { return *host_; }
  [[nodiscard]] kernel::Filters& filters() { return *filters_; }
  [[nodiscard]] kernel::NodeProber& prober() { return *prober_; }
  [[nodiscard]] const std::vector<Expectation>& findings() const { return findings_; }
  [[nodiscard]] const std::map<std::string, std::string>& states() const { return states_; }

 private:
  void add_layer(const std::string& directory);
  void make_nodes();
  void make_links();
  void set_modes();
  void make_process(const std::map<std::string, std::string>& fields);
  void attach_filters();
  void read_expected(const std::string& directory);

  std::string root_;
  std::map<std::string, std::vector<std::string>> nodes_;
  std::map<std::string, std::string> links_;
  std::map<std::string, std::map<std::string, std::string>> processes_;
  std::vector<std::string> filter_lines_;
  std::vector<std::vector<std::string>> access_;
  std::vector<std::vector<std::string>> modes_;
  std::vector<Expectation> findings_;
  std::map<std::string, std::string> states_;
  std::optional<kernel::Host> host_;
  FakeBpf bpf_;
  std::unique_ptr<kernel::Filters> filters_;
  std::unique_ptr<FakeNodeProber> prober_;
};

}  // namespace hf::test
