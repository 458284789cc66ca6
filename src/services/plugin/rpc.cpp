#include "services/plugin/rpc.h"

#include <chrono>
#include <optional>
#include <set>

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include "adapters/kube/device_plugin.grpc.pb.h"
#include "adapters/kube/plugin_messages.h"
#include "kernel/net/socket.h"
#include "services/plugin/grpc_server.h"
#include "services/plugin/server_stream.h"
#include "services/plugin/watcher_service.h"

namespace hf::plugin {
namespace {

grpc::Status status_of(const Error& error) {
  return {
      error.code == std::errc::invalid_argument ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::UNAVAILABLE,
      error.message};
}

using Stream = ServerStream<v1beta1::ListAndWatchResponse>;

class PluginService final : public v1beta1::DevicePlugin::CallbackService {
 public:
  PluginService(kernel::EventLoop& loop, const Rpc::Handlers& handlers, Stream::Callbacks callbacks)
      : loop_(loop), handlers_(handlers), callbacks_(std::move(callbacks)) {}

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const v1beta1::Empty* /*request*/,
                                                   v1beta1::DevicePluginOptions* response) override {
    response->set_get_preferred_allocation_available(true);
    return finish(context, grpc::Status::OK);
  }

  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(grpc::CallbackServerContext* /*context*/,
                                                                        const v1beta1::Empty* /*request*/) override {
    return new Stream(loop_, callbacks_);
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(grpc::CallbackServerContext* context,
                                                   const v1beta1::PreferredAllocationRequest* request,
                                                   v1beta1::PreferredAllocationResponse* response) override {
    return in_loop(context, [this, request, response]() -> grpc::Status {
      for (const resource::Choice& choice : kube::choices_in(*request)) {
        const Result<std::vector<std::string>> preferred = handlers_.prefer(choice);
        if (!preferred) {
          return status_of(preferred.error());
        }
        auto& ids = *response->add_container_responses()->mutable_deviceids();
        ids.Assign(preferred->begin(), preferred->end());
      }
      return grpc::Status::OK;
    });
  }

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context, const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) override {
    return in_loop(context, [this, request, response]() -> grpc::Status {
      for (const std::vector<std::string>& ids : kube::ids_in(*request)) {
        const Result<resource::Allocation> allocation = handlers_.allocate(ids);
        if (!allocation) {
          response->clear_container_responses();
          return status_of(allocation.error());
        }
        kube::add_to(*response, *allocation);
      }
      return grpc::Status::OK;
    });
  }

  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const v1beta1::PreStartContainerRequest* /*request*/,
                                              v1beta1::PreStartContainerResponse* /*response*/) override {
    return finish(context, grpc::Status::OK);
  }

 private:
  static grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext* context, const grpc::Status& status) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(status);
    return reactor;
  }

  // Request and response live until the reactor finishes.
  grpc::ServerUnaryReactor* in_loop(grpc::CallbackServerContext* context, std::function<grpc::Status()> work) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    loop_.post([reactor, work = std::move(work)] { reactor->Finish(work()); });
    return reactor;
  }

  kernel::EventLoop& loop_;
  const Rpc::Handlers& handlers_;
  Stream::Callbacks callbacks_;
};

}  // namespace

struct Rpc::State {
  State(kernel::EventLoop& on, const std::string& resource, const std::string& endpoint, Handlers to_call)
      : loop(on),
        handlers(std::move(to_call)),
        service(loop, handlers, {[this](Stream& stream) { open(stream); }, [this](Stream& stream) { end(stream); }}),
        watcher(make_watcher_service(loop, {"DevicePlugin", resource, endpoint, {kube::kPluginApi}},
                                     handlers.registered)) {}

  void open(Stream& stream) {
    streams.insert(&stream);
    if (is_stopping) {
      stream.end();
      return;
    }
    if (list) {
      stream.send(*list);
    }
    handlers.stream_opened();
  }

  void end(Stream& stream) {
    streams.erase(&stream);
    if (!is_stopping) {
      handlers.stream_ended();
    }
  }

  kernel::EventLoop& loop;
  Handlers handlers;
  PluginService service;
  std::unique_ptr<grpc::Service> watcher;
  std::set<Stream*> streams;
  std::optional<v1beta1::ListAndWatchResponse> list;
  bool is_stopping = false;
  GrpcServer server{loop, {&service, watcher.get()}};  // the last: it calls all of the above
};

Rpc::Rpc(kernel::EventLoop& loop, const std::string& resource, const std::string& endpoint, Handlers handlers)
    : state_(std::make_unique<State>(loop, resource, endpoint, std::move(handlers))) {}

Rpc::~Rpc() = default;

void Rpc::accept(kernel::Fd client) { state_->server.accept(std::move(client)); }

void Rpc::publish(const resource::Offer& offer) {
  state_->list = kube::list_of(offer);
  for (Stream* const stream : state_->streams) {
    stream->send(*state_->list);
  }
}

std::size_t Rpc::streams() const { return state_->streams.size(); }

void Rpc::stop(std::function<void()> stopped) {
  state_->is_stopping = true;
  for (Stream* const stream : state_->streams) {
    stream->end();
  }
  state_->server.stop(std::move(stopped));
}

void register_with_kubelet(kernel::EventLoop& loop, const RegisterRequest& request,
                           std::function<void(Result<void>)> done) {
  constexpr std::chrono::seconds kLimit{10};
  Result<kernel::Fd> socket = kernel::connect_unix(request.kubelet);
  if (!socket) {
    loop.post([done = std::move(done), error = socket.error()] { done(std::unexpected(error)); });
    return;
  }
  set_nonblocking(*socket);
  struct Call {
    grpc::ClientContext context;
    v1beta1::RegisterRequest request;
    v1beta1::Empty response;
    std::unique_ptr<v1beta1::Registration::Stub> stub;
  };
  const auto call = std::make_shared<Call>();
  call->stub = v1beta1::Registration::NewStub(grpc::CreateInsecureChannelFromFd("kubelet", socket->release()));
  call->context.set_deadline(std::chrono::system_clock::now() + kLimit);
  call->request.set_version(kube::kPluginApi);
  call->request.set_endpoint(request.endpoint);
  call->request.set_resource_name(request.resource);
  call->request.mutable_options()->set_get_preferred_allocation_available(true);
  call->stub->async()->Register(
      &call->context, &call->request, &call->response,
      [&loop, call, done = std::move(done)](const grpc::Status& status) {
        loop.post([call, done, status] {
          done(status.ok() ? Result<void>()
                           : fail(std::errc::connection_refused, "register with kubelet: " + status.error_message()));
        });
      });
}

}  // namespace hf::plugin
