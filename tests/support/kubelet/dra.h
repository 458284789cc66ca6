// DraDrivers: kubelet's side of Dynamic Resource Allocation: the drivers that its watcher of sockets found, their
// health streams, the claims that it had them prepare, and the file in which it remembers these, dra_manager_state.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json_fwd.hpp>

class DraDrivers {
 public:
  using Print = std::function<void(const nlohmann::ordered_json&)>;

  // `is_old`: as a kubelet before 1.34, which knows v1beta1 only.
  DraDrivers(std::string file, bool is_old, Print print)
      : file_(std::move(file)), is_old_(is_old), print_(std::move(print)) {}

  grpc::Status add(const std::string& name, const std::string& endpoint, const std::vector<std::string>& services);
  void remove(const std::string& name);

  // prepare DRIVER POD (NAMESPACE NAME UID)…     unprepare DRIVER (NAMESPACE NAME UID)…
  bool carry_out(const std::vector<std::string>& words);

 private:
  struct Driver;
  using DriverPtr = std::shared_ptr<Driver>;  // of this object, and of the thread that reads its health

  DriverPtr find(const std::string& name);
  void prepare(Driver& driver, const std::string& pod, const std::vector<std::string>& claims);
  void unprepare(Driver& driver, const std::vector<std::string>& claims);
  void read_health(const DriverPtr& driver) const;
  void write() const;

  std::string file_;
  bool is_old_;
  Print print_;
  std::mutex mutex_;
  std::map<std::string, DriverPtr> drivers_;
  std::map<std::string, std::string> prepared_;  // JSON of the claims, by UID
};
