#include "services/plugin/dra/dra_rpc.h"

#include <chrono>
#include <optional>
#include <set>

#include <grpcpp/grpcpp.h>

#include "adapters/kube/dra_health_v1.grpc.pb.h"
#include "adapters/kube/dra_health_v1alpha1.grpc.pb.h"
#include "adapters/kube/dra_v1.grpc.pb.h"
#include "adapters/kube/dra_v1beta1.grpc.pb.h"
#include "services/plugin/grpc_server.h"
#include "services/plugin/server_stream.h"
#include "services/plugin/watcher_service.h"

namespace hf::plugin {
namespace {

namespace apis = k8s::io::kubelet::pkg::apis::dra;
using apis::v1::NodePrepareResourcesRequest;
using apis::v1::NodePrepareResourcesResponse;
using apis::v1::NodeUnprepareResourcesRequest;
using apis::v1::NodeUnprepareResourcesResponse;
using v1::NodeWatchResourcesRequest;
using v1::NodeWatchResourcesResponse;

using HealthStream = ServerStream<NodeWatchResourcesResponse>;

// The versions of each service differ in its name only.
template <class Service>
class HealthService final : public Service::CallbackService {
 public:
  HealthService(kernel::EventLoop& loop, HealthStream::Callbacks callbacks)
      : loop_(loop), callbacks_(std::move(callbacks)) {}

  grpc::ServerWriteReactor<NodeWatchResourcesResponse>* NodeWatchResources(
      grpc::CallbackServerContext* /*context*/, const NodeWatchResourcesRequest* /*request*/) override {
    return new HealthStream(loop_, callbacks_);
  }

 private:
  kernel::EventLoop& loop_;
  HealthStream::Callbacks callbacks_;
};

template <class Service>
class ClaimService final : public Service::CallbackService {
 public:
  ClaimService(kernel::EventLoop& loop, const DraRpc::Handlers& handlers) : loop_(loop), handlers_(handlers) {}

  // Request and response live until the reactor finishes.
  grpc::ServerUnaryReactor* NodePrepareResources(grpc::CallbackServerContext* context,
                                                 const NodePrepareResourcesRequest* request,
                                                 NodePrepareResourcesResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    loop_.post([this, request, response, reactor] {
      handlers_.prepare(kube::claims_in(*request), [response, reactor](const kube::PrepareAnswers& answers) {
        kube::fill(*response, answers);
        reactor->Finish(grpc::Status::OK);
      });
    });
    return reactor;
  }

  grpc::ServerUnaryReactor* NodeUnprepareResources(grpc::CallbackServerContext* context,
                                                   const NodeUnprepareResourcesRequest* request,
                                                   NodeUnprepareResourcesResponse* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    loop_.post([this, request, response, reactor] {
      kube::fill(*response, handlers_.unprepare(kube::claims_in(*request)));
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

 private:
  kernel::EventLoop& loop_;
  const DraRpc::Handlers& handlers_;
};

}  // namespace

struct DraRpc::State {
  State(kernel::EventLoop& on, const std::string& driver, const std::string& endpoint, Handlers to_call)
      : loop(on),
        handlers(std::move(to_call)),
        callbacks{[this](HealthStream& stream) { open(stream); },
                  [this](HealthStream& stream) { streams.erase(&stream); }},
        registration(
            make_watcher_service(loop, {"DRAPlugin", driver, endpoint, kube::dra_services()}, handlers.registered)) {}

  void open(HealthStream& stream) {
    streams.insert(&stream);
    was_watched = true;
    if (is_stopping) {
      stream.end();
    } else if (list) {
      stream.send(*list);
    }
  }

  kernel::EventLoop& loop;
  Handlers handlers;
  HealthStream::Callbacks callbacks;
  std::unique_ptr<grpc::Service> registration;
  ClaimService<apis::v1::DRAPlugin> claims{loop, handlers};
  ClaimService<apis::v1beta1::DRAPlugin> claims_beta{loop, handlers};
  HealthService<v1::DRAResourceHealth> health{loop, callbacks};
  HealthService<v1alpha1::DRAResourceHealth> health_alpha{loop, callbacks};
  std::set<HealthStream*> streams;
  bool was_watched = false;  // since the registration
  std::optional<NodeWatchResourcesResponse> list;
  bool is_stopping = false;
  // The last: it calls all of the above.
  GrpcServer server{loop, {registration.get(), &claims, &claims_beta, &health, &health_alpha}};
};

DraRpc::DraRpc(kernel::EventLoop& loop, const std::string& driver, const std::string& endpoint, Handlers handlers)
    : state_(std::make_unique<State>(loop, driver, endpoint, std::move(handlers))) {}

DraRpc::~DraRpc() = default;

void DraRpc::accept(kernel::Fd client) { state_->server.accept(std::move(client)); }

void DraRpc::note_registration() { state_->was_watched = !state_->streams.empty(); }

bool DraRpc::is_abandoned() const { return state_->was_watched && state_->streams.empty(); }

void DraRpc::publish(const std::vector<resource::ClusterDevice>& devices, const std::string& pool) {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  state_->list = kube::health_of(devices, pool, now.count());
  for (HealthStream* const stream : state_->streams) {
    stream->send(*state_->list);
  }
}

void DraRpc::stop(std::function<void()> stopped) {
  state_->is_stopping = true;
  for (HealthStream* const stream : state_->streams) {
    stream->end();
  }
  state_->server.stop(std::move(stopped));
}

}  // namespace hf::plugin
