#include "services/plugin/rpc.h"

#include <chrono>
#include <set>
#include <thread>

#include <fcntl.h>

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include "adapters/kube/device_plugin.grpc.pb.h"
#include "adapters/kube/plugin_messages.h"
#include "adapters/kube/plugin_registration.grpc.pb.h"
#include "kernel/net/socket.h"

namespace hf::plugin {
namespace {

grpc::Status status_of(const Error& error) {
  return {
      error.code == std::errc::invalid_argument ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::UNAVAILABLE,
      error.message};
}

void set_nonblocking(int descriptor) { (void)::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK); }

// One open ListAndWatch. All of it happens in the loop, but for the calls of gRPC, which only post.
class Stream final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
 public:
  struct Callbacks {
    std::function<void(Stream&)> opened;
    std::function<void(Stream&)> ended;  // it is destroyed afterwards
  };

  Stream(kernel::EventLoop& loop, Callbacks callbacks) : loop_(loop), callbacks_(std::move(callbacks)) {
    loop_.post([this] { callbacks_.opened(*this); });
  }

  // A list that is not sent yet is replaced by the new one.
  void send(const v1beta1::ListAndWatchResponse& list) {
    next_ = list;
    has_next_ = true;
    write();
  }

  void finish(const grpc::Status& status) {
    if (!is_finished_) {
      is_finished_ = true;
      Finish(status);
    }
  }

  void OnWriteDone(bool is_fine) override {
    loop_.post([this, is_fine] {
      is_writing_ = false;
      if (is_fine) {
        write();
      } else {
        finish(grpc::Status::CANCELLED);
      }
    });
  }
  void OnCancel() override {
    loop_.post([this] { finish(grpc::Status::CANCELLED); });
  }
  void OnDone() override {
    loop_.post([this] {
      callbacks_.ended(*this);
      delete this;
    });
  }

 private:
  void write() {
    if (has_next_ && !is_writing_ && !is_finished_) {
      current_ = std::move(next_);
      has_next_ = false;
      is_writing_ = true;
      StartWrite(&current_);
    }
  }

  kernel::EventLoop& loop_;
  Callbacks callbacks_;
  v1beta1::ListAndWatchResponse current_;  // gRPC reads it while it writes
  v1beta1::ListAndWatchResponse next_;
  bool has_next_ = false;
  bool is_writing_ = false;
  bool is_finished_ = false;
};

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

class WatcherService final : public pluginregistration::Registration::CallbackService {
 public:
  WatcherService(kernel::EventLoop& loop, const Rpc::Handlers& handlers, std::string resource, std::string endpoint)
      : loop_(loop), handlers_(handlers), resource_(std::move(resource)), endpoint_(std::move(endpoint)) {}

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest* /*request*/,
                                    pluginregistration::PluginInfo* response) override {
    response->set_type("DevicePlugin");
    response->set_name(resource_);
    response->set_endpoint(endpoint_);
    response->add_supported_versions(kube::kPluginApi);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse* /*response*/) override {
    loop_.post([this, is_registered = request->plugin_registered(), error = request->error()] {
      handlers_.registered(is_registered, error);
    });
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  kernel::EventLoop& loop_;
  const Rpc::Handlers& handlers_;
  std::string resource_;
  std::string endpoint_;
};

}  // namespace

struct Rpc::State {
  State(kernel::EventLoop& on, const std::string& resource, const std::string& endpoint, Handlers to_call)
      : loop(on),
        handlers(std::move(to_call)),
        service(loop, handlers, {[this](Stream& stream) { open(stream); }, [this](Stream& stream) { end(stream); }}),
        watcher(loop, handlers, resource, endpoint) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    builder.RegisterService(&watcher);
    server = builder.BuildAndStart();
  }

  void open(Stream& stream) {
    streams.insert(&stream);
    if (is_stopping) {
      stream.finish(grpc::Status::CANCELLED);
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
  WatcherService watcher;
  std::unique_ptr<grpc::Server> server;
  std::set<Stream*> streams;
  std::optional<v1beta1::ListAndWatchResponse> list;
  bool is_stopping = false;
  std::thread stopper;
};

Rpc::Rpc(kernel::EventLoop& loop, const std::string& resource, const std::string& endpoint, Handlers handlers)
    : state_(std::make_shared<State>(loop, resource, endpoint, std::move(handlers))) {}

Rpc::~Rpc() {
  if (state_->stopper.joinable()) {
    state_->stopper.join();
  }
}

void Rpc::accept(kernel::Fd client) {
  set_nonblocking(client.get());
  grpc::AddInsecureChannelFromFd(state_->server.get(), client.release());
}

void Rpc::publish(const resource::Offer& offer) {
  state_->list = kube::list_of(offer);
  for (Stream* const stream : state_->streams) {
    stream->send(*state_->list);
  }
}

std::size_t Rpc::streams() const { return state_->streams.size(); }

// Shutdown waits for calls that the loop finishes, so another thread waits for it.
void Rpc::stop(std::function<void()> stopped) {
  state_->is_stopping = true;
  for (Stream* const stream : state_->streams) {
    stream->finish(grpc::Status::CANCELLED);
  }
  state_->stopper = std::thread([state = state_, stopped = std::move(stopped)] {
    state->server->Shutdown(std::chrono::system_clock::now());
    state->loop.post(stopped);
  });
}

void register_with_kubelet(kernel::EventLoop& loop, const RegisterRequest& request,
                           std::function<void(Result<void>)> done) {
  constexpr std::chrono::seconds kLimit{10};
  Result<kernel::Fd> socket = kernel::connect_unix(request.kubelet);
  if (!socket) {
    loop.post([done = std::move(done), error = socket.error()] { done(std::unexpected(error)); });
    return;
  }
  set_nonblocking(socket->get());
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
