// FakeApi: an API server that is a map, without threads.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "adapters/kube/claim_json.h"
#include "adapters/kube/slice_json.h"
#include "core/resource/slice.h"
#include "kernel/files/clock.h"
#include "kernel/net/event_loop.h"
#include "services/plugin/dra/api_calls.h"

namespace hf::plugin {

inline const resource::Pool kPool{"gpu.holdfast.dev", "node1", ""};

// Answers when it is told to, by the paths it knows.
class FakeApi {
 public:
  Api api() {
    return
        [this](apiserver::Request request, ApiDone done) { waiting_.push_back({std::move(request), std::move(done)}); };
  }

  // All requests that wait, and those that their answers lead to.
  void answer_all(kernel::EventLoop& loop) {
    while (!waiting_.empty()) {
      const Waiting one = std::move(waiting_.front());
      waiting_.pop_front();
      asked.push_back(one.request.method + " " + one.request.path.substr(0, one.request.path.find('?')));
      one.done(answer(one.request));
      loop.run_until(kernel::monotonic_now());
    }
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] const apiserver::Request& next() const { return waiting_.front().request; }

  std::map<std::string, std::string> objects;  // bodies, by path
  std::vector<std::string> asked;
  unsigned status_of_writes = 0;  // not 0: each write is answered with it
  unsigned status_of_reads = 0;   // the same
  bool is_away = false;
  bool is_forbidden = false;  // to read the node

 private:
  struct Waiting {
    apiserver::Request request;
    ApiDone done;
  };

  Result<apiserver::Response> answer(const apiserver::Request& request) {
    const std::string list = kube::slice_path("");
    if (is_away) {
      return fail(std::errc::connection_refused, "connect: Connection refused");
    }
    if (request.method == "GET" && status_of_reads != 0) {
      return apiserver::Response{status_of_reads, R"({"message":"refused"})"};
    }
    if (request.method == "GET" && request.path.starts_with(list + "?")) {
      std::string items;
      for (const auto& [path, body] : objects) {
        items += path.starts_with(list) ? (items.empty() ? "" : ",") + body : "";
      }
      return apiserver::Response{200, R"({"items":[)" + items + "]}"};
    }
    if (request.method == "GET" && request.path == kube::node_path("node1") && is_forbidden) {
      return apiserver::Response{403, R"({"message":"nodes is forbidden"})"};
    }
    if (request.method == "GET") {
      return objects.contains(request.path) ? apiserver::Response{200, objects[request.path]}
                                            : apiserver::Response{404, R"({"message":"not found"})"};
    }
    if (status_of_writes != 0) {
      return apiserver::Response{status_of_writes, R"({"message":"refused"})"};
    }
    const std::string name = "node1-gpu.holdfast.dev-0";
    if (request.method == "DELETE") {
      objects.erase(request.path);
    } else {
      objects[kube::slice_path(name)] = request.body;
    }
    return apiserver::Response{200, "{}"};
  }

  std::deque<Waiting> waiting_;
};

}  // namespace hf::plugin
