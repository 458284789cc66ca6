#include "services/plugin/watcher_service.h"

#include <utility>

#include <grpcpp/grpcpp.h>

#include "adapters/kube/plugin_registration.grpc.pb.h"

namespace hf::plugin {
namespace {

using Registered = std::function<void(bool is_registered, const std::string& error)>;

grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

class WatcherService final : public pluginregistration::Registration::CallbackService {
 public:
  WatcherService(kernel::EventLoop& loop, PluginIdentity identity, Registered registered)
      : loop_(loop), identity_(std::move(identity)), registered_(std::move(registered)) {}

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest* /*request*/,
                                    pluginregistration::PluginInfo* response) override {
    response->set_type(identity_.type);
    response->set_name(identity_.name);
    response->set_endpoint(identity_.endpoint);
    response->mutable_supported_versions()->Assign(identity_.versions.begin(), identity_.versions.end());
    return finish(context);
  }

  grpc::ServerUnaryReactor* NotifyRegistrationStatus(
      grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
      pluginregistration::RegistrationStatusResponse* /*response*/) override {
    loop_.post([this, is_registered = request->plugin_registered(), error = request->error()] {
      registered_(is_registered, error);
    });
    return finish(context);
  }

 private:
  kernel::EventLoop& loop_;
  PluginIdentity identity_;
  Registered registered_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_watcher_service(kernel::EventLoop& loop, PluginIdentity identity,
                                                    Registered registered) {
  return std::make_unique<WatcherService>(loop, std::move(identity), std::move(registered));
}

}  // namespace hf::plugin
