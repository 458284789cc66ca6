// Story: a made-up machine from a folder of files (README.md), and what is expected of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/filters.h"
#include "kernel/host.h"
#include "kernel/seat.h"
#include "support/fake_bpf.h"

namespace hf::test {

inline constexpr std::int64_t kBoot = 1'000'000'000;
inline constexpr std::int64_t kNow = 1'000'100'000;

std::vector<std::string> list_stories(const std::string& folder);

// What one line of `expected` wants.
struct Expectation {
  std::string code;
  std::string subject;
  std::string words;       // that stand somewhere in the finding; "" for any
  bool is_banned = false;  // they must not stand there
};

// Answers from a seat: nodes as they lie in the tree, access and open as the story tells.
class FakeSeats final : public kernel::Seats {
 public:
  FakeSeats(std::string root, const std::vector<std::vector<std::string>>& told);

  Result<std::vector<container::Seen>> look(const kernel::Look& look) override;

 private:
  struct Told {
    int access = 0;
    std::optional<int> open;
  };

  std::string root_;
  std::map<std::pair<int, std::string>, Told> told_;
};

class Story {
 public:
  Story(const std::string& folder, const std::string& name);  // throws where a file of it makes no sense
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;
  ~Story();

  [[nodiscard]] const kernel::Host& host() const { return *host_; }
  [[nodiscard]] kernel::Filters& filters() { return *filters_; }
  [[nodiscard]] kernel::Seats& seats() { return *seats_; }
  [[nodiscard]] const std::vector<Expectation>& findings() const { return findings_; }
  [[nodiscard]] const std::map<std::string, std::string>& states() const { return states_; }

 private:
  void lay(const std::string& folder);
  void make_nodes();
  void make_links();
  void set_modes();
  void make_process(const std::map<std::string, std::string>& words);
  void attach_filters();
  void read_expected(const std::string& folder);

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
  std::unique_ptr<FakeSeats> seats_;
};

}  // namespace hf::test
