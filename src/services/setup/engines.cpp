#include "services/setup/engines.h"

#include "adapters/engine/containerd_config.h"
#include "adapters/engine/crio_config.h"
#include "adapters/engine/docker_config.h"
#include "adapters/engine/podman_config.h"
#include "core/base/text.h"
#include "services/setup/config_place.h"

namespace hf::setup {
namespace {

using Others = std::vector<std::string>;

constexpr const char* kRuntimeClass =
    "apiVersion: node.k8s.io/v1\n"
    "kind: RuntimeClass\n"
    "metadata:\n"
    "  name: holdfast\n"
    "handler: holdfast\n";

constexpr const char* kPodmanGpus =
    "podman run --gpus: podman 5 and later take it as CDI devices (holdfast cdi generate --file "
    "/etc/cdi/nvidia.yaml); older ones ignore it: use --device nvidia.com/gpu=all";

constexpr const char* kDockerGpus =
    "docker run --gpus all: with --runtime holdfast, or alone after 'holdfast setup docker --default'";

constexpr const char* kPodAnnotations =
    "pods on a containerd without CDI (1.6): 'holdfast setup containerd --pod-annotations' lets their annotations "
    "cdi.k8s.io/… reach the runtime";

// For engines with a single config file.
auto without_others(Result<engine::Edited> (*add)(std::string_view, const engine::Registration&)) {
  return [add](std::string_view text, const engine::Registration& registration, const Others& /*others*/) {
    return add(text, registration);
  };
}

auto add_to_containerd_in(const std::string& file) {
  const char* version = is_v3_drop_in(file) ? "3" : "2";
  return [version](std::string_view text, const engine::Registration& registration, const Others& mains) {
    return engine::add_to_containerd_drop_in(text, registration, mains, version);
  };
}

Engine docker_engine(const std::string& unit, const std::string& restart) {
  return Engine{"docker",
                "/etc/docker/daemon.json",
                {},
                unit,
                "systemctl reload " + unit,
                restart,  // a reload removes no runtime and no default
                "",
                kDockerGpus,
                without_others(engine::add_to_docker),
                engine::remove_from_docker,
                engine::find_in_docker,
                engine::is_empty_docker_config};
}

Engine containerd_engine(const std::string& file, const std::string& unit, const std::string& restart) {
  return Engine{"containerd",
                "/etc/containerd/config.toml",
                main_files_of(file),
                unit,
                restart,
                restart,
                kRuntimeClass,
                kPodAnnotations,
                add_to_containerd_in(file),
                engine::remove_from_containerd,
                engine::find_in_containerd,
                engine::is_empty_containerd_config};
}

Engine crio_engine(const std::string& unit, const std::string& restart) {
  return Engine{"crio",
                "/etc/crio/crio.conf.d/99-holdfast.conf",
                {"/etc/crio/crio.conf", "/etc/crio/crio.conf.d"},
                unit,
                restart,
                restart,
                kRuntimeClass,
                "",
                engine::add_to_crio,
                engine::remove_from_crio,
                engine::find_in_crio,
                engine::is_empty_toml};
}

Engine podman_engine() {
  return Engine{"podman",
                "/etc/containers/containers.conf.d/99-holdfast.conf",
                {},
                "",
                "",
                "",
                "",
                kPodmanGpus,
                without_others(engine::add_to_podman),
                engine::remove_from_podman,
                engine::find_in_podman,
                engine::is_empty_toml};
}

}  // namespace

Result<Engine> find_engine(const EngineSetupOptions& options) {
  const std::string& name = options.engine;
  const std::string unit = options.unit.empty() ? name : options.unit;
  const std::string restart = "systemctl restart " + unit;
  if (name == "docker") {
    return docker_engine(unit, restart);
  }
  if (name == "containerd") {
    return containerd_engine(options.file, unit, restart);
  }
  if (name == "crio") {
    return crio_engine(unit, restart);
  }
  if (name == "podman") {
    return podman_engine();
  }
  return fail(std::errc::invalid_argument, "engine " + quote(name) + ": want docker, containerd, crio or podman");
}

}  // namespace hf::setup
