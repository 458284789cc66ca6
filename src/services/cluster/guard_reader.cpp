#include "services/cluster/guard_reader.h"

#include <algorithm>
#include <cctype>

#include "adapters/node_report/host_state.h"
#include "core/base/text.h"

namespace hf::cluster {
namespace {

constexpr std::size_t kMostBytes = std::size_t(64) << 20U;

bool is_same_field(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

Result<GuardAnswer> parse_answer(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  const std::string_view head = text.substr(0, std::min(end, text.size()));
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const std::optional<unsigned> status =
      head.starts_with(kVersion) ? parse_number<unsigned>(head.substr(kVersion.size(), 3)) : std::nullopt;
  if (end == std::string_view::npos || !status) {
    return fail(std::errc::protocol_error, "holdfastd: its answer is no HTTP");
  }
  GuardAnswer answer{*status, "", text.substr(end + 4)};
  for (const std::string_view line : split(head, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      continue;
    }
    const std::string_view value = trim(line.substr(colon + 1));
    if (is_same_field(line.substr(0, colon), "etag")) {
      answer.tag = value;
    }
    const bool is_length = is_same_field(line.substr(0, colon), "content-length");
    if (is_length && parse_number<std::size_t>(value) != answer.body.size() && *status != 304) {
      return fail(std::errc::protocol_error, "holdfastd: its answer is incomplete");
    }
  }
  return answer;
}

Result<std::optional<notice::HostState>> GuardReader::read(kernel::Clock::time_point deadline) {
  if (socket_.empty()) {
    return fail(std::errc::no_such_file_or_directory, "web.socket is off in the config");
  }
  kernel::Stream stream = TRY(kernel::Stream::open(host_, socket_, deadline));
  const std::string condition = tag_.empty() ? "" : "If-None-Match: " + tag_ + "\r\n";
  TRY(stream.send("GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + condition + "\r\n",
                  deadline));
  std::string text;
  for (;;) {
    const Result<std::string> more = stream.receive(deadline);
    if (!more && more.error().code == std::errc::not_connected) {
      break;
    }
    text += TRY(more);
    if (text.size() > kMostBytes) {
      return fail(std::errc::message_size, socket_ + ": an answer of more than 64 MiB");
    }
  }
  const GuardAnswer answer = TRY(parse_answer(text));
  if (answer.status == 304) {
    return std::nullopt;
  }
  if (answer.status != 200) {
    return fail(std::errc::resource_unavailable_try_again,
                "holdfastd: " + std::to_string(answer.status) + " " + printable(trim(answer.body)));
  }
  notice::HostState state = TRY(node_report::parse_host_state(answer.body));
  tag_ = answer.tag;
  return state;
}

}  // namespace hf::cluster
