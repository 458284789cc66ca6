#include "adapters/apiserver/access.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "adapters/document/yaml.h"
#include "core/base/base64.h"
#include "core/base/text.h"
#include "kernel/files/file.h"

namespace hf::apiserver {
namespace {

using document::Yaml;

constexpr const char* kAccount = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::size_t kMostBytes = std::size_t(1) << 20U;  // of a kubeconfig, a certificate or a token

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Result<std::string> read_small(const kernel::Host& host, const std::string& path) {
  std::string text = TRY(kernel::read_start(host.root.get(), kernel::below_root(path), kMostBytes));
  if (text.size() == kMostBytes) {
    return fail(std::errc::file_too_large, path + ": more than 1 MiB");
  }
  return text;
}

Result<Access> read_service_account(const kernel::Host& host) {
  Access access;
  access.host = variable("KUBERNETES_SERVICE_HOST");
  access.port = variable("KUBERNETES_SERVICE_PORT");
  if (access.host.empty() || access.port.empty()) {
    return fail(
        std::errc::no_such_file_or_directory,
        "no API server: this is no pod (KUBERNETES_SERVICE_HOST is not set), and kube.api.kubeconfig is not set");
  }
  access.authority = TRY(read_small(host, std::string(kAccount) + "/ca.crt"));
  access.token_file = std::string(kAccount) + "/token";
  (void)TRY(read_small(host, access.token_file));
  const Result<std::string> name_space = read_small(host, std::string(kAccount) + "/namespace");
  access.name_space = name_space && !trim(*name_space).empty() ? std::string(trim(*name_space)) : "default";
  return access;
}

// ---- A kubeconfig ----

// Editors break long lines.
Result<std::string> decode_lines(std::string_view text) {
  std::string packed;
  std::ranges::copy_if(text, std::back_inserter(packed), [](char character) { return character > ' '; });
  const std::optional<std::string> bytes = decode_base64(packed);
  return bytes ? Result<std::string>(*bytes) : fail(std::errc::invalid_argument, "not base64");
}

class Kubeconfig {
 public:
  Kubeconfig(const kernel::Host& host, const std::string& path, Yaml file) : host_(host), path_(path), file_(file) {}

  Result<Access> read() {
    const std::string current = file_["current-context"].scalar();
    if (current.empty()) {
      return malformed("current-context is not set");
    }
    const Yaml context = TRY(find("contexts", "context", current));
    const Yaml cluster = TRY(find("clusters", "cluster", context["cluster"].scalar()));
    Access access;
    const std::string name_space = context["namespace"].scalar();
    access.name_space = name_space.empty() ? "default" : name_space;
    TRY(read_cluster(cluster, access));
    if (!context["user"].scalar().empty()) {
      TRY(read_user(TRY(find("users", "user", context["user"].scalar())), access));
    }
    return access;
  }

 private:
  [[nodiscard]] std::unexpected<Error> malformed(const std::string& why) const {
    return fail(std::errc::invalid_argument, "kubeconfig " + path_ + ": " + why);
  }

  // An entry of one of its three lists.
  [[nodiscard]] Result<Yaml> find(const char* list, const char* key, const std::string& name) const {
    for (const Yaml entry : file_[list].elements()) {
      if (entry["name"].scalar() == name && entry[key].is_map()) {
        return entry[key];
      }
    }
    return malformed(std::string(list) + " has no " + quote(name));
  }

  // "key-data" as base64, or the file that "key" names.
  [[nodiscard]] Result<std::string> read_text(Yaml map, const std::string& key) const {
    if (const std::string data = map[key + "-data"].scalar(); !data.empty()) {
      const Result<std::string> text = decode_lines(data);
      return text ? *text : Result<std::string>(malformed(key + "-data: " + text.error().message));
    }
    const std::string file = map[key].scalar();
    return file.empty() ? Result<std::string>(std::string()) : read_small(host_, resolve(file));
  }

  // kubectl: paths are relative to the file's own directory.
  [[nodiscard]] std::string resolve(const std::string& file) const {
    return file.starts_with('/') ? file : path_.substr(0, path_.rfind('/') + 1) + file;
  }

  Result<void> read_cluster(Yaml cluster, Access& access) const {
    TRY(read_server(cluster["server"].scalar(), access));
    if (cluster["insecure-skip-tls-verify"].scalar() == "true") {
      return malformed("insecure-skip-tls-verify is not supported: any host could pose as the API server");
    }
    if (cluster["proxy-url"]) {
      return malformed("proxy-url is not supported");
    }
    access.server_name = cluster["tls-server-name"].scalar();
    access.authority = TRY(read_text(cluster, "certificate-authority"));
    if (access.authority.empty() && !access.is_plain) {
      return malformed("the cluster has no certificate-authority");
    }
    return {};
  }

  Result<void> read_server(std::string_view server, Access& access) const {
    constexpr std::string_view kSecure = "https://";
    constexpr std::string_view kPlain = "http://";
    access.is_plain = server.starts_with(kPlain);
    if (!access.is_plain && !server.starts_with(kSecure)) {
      return malformed("server " + quote(server) + " is no https:// address");
    }
    access.port = access.is_plain ? "80" : "443";
    std::string_view rest = server.substr(access.is_plain ? kPlain.size() : kSecure.size());
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    access.prefix = rest.substr(slash);
    while (access.prefix.ends_with('/')) {
      access.prefix.pop_back();
    }
    rest = rest.substr(0, slash);
    const std::size_t colon = rest.rfind(':');
    if (colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos) {
      access.port = rest.substr(colon + 1);
      rest = rest.substr(0, colon);
    }
    access.host = rest.starts_with('[') && rest.ends_with(']') ? rest.substr(1, rest.size() - 2) : rest;
    if (access.host.empty() || !parse_number<std::uint16_t>(access.port)) {
      return malformed("server " + quote(server) + " has no host and port");
    }
    if (access.is_plain && access.host != "127.0.0.1") {
      return malformed("server " + quote(server) + ": http is for 127.0.0.1 only, everything else needs https");
    }
    return {};
  }

  Result<void> read_user(Yaml user, Access& access) const {
    for (const char* key : {"exec", "auth-provider", "username", "as"}) {
      if (user[key]) {
        return malformed(std::string("user: ") + key + " is not supported; token, tokenFile and certificates are");
      }
    }
    access.token = user["token"].scalar();
    access.token_file = user["tokenFile"].scalar().empty() ? "" : resolve(user["tokenFile"].scalar());
    access.certificate = TRY(read_text(user, "client-certificate"));
    access.key = TRY(read_text(user, "client-key"));
    const bool has_secret = !access.token.empty() || !access.token_file.empty() || !access.key.empty();
    if (access.is_plain && has_secret) {  // any local process may have taken the port of a proxy that ended
      return malformed("user: http carries no token and no certificate; use https, or a proxy that adds them");
    }
    if (access.certificate.empty() != access.key.empty()) {
      return malformed("user: a client-certificate needs a client-key");
    }
    return {};
  }

  const kernel::Host& host_;
  const std::string& path_;
  Yaml file_;
};

}  // namespace

bool is_in_cluster(const kernel::Host& host) {
  return !variable("KUBERNETES_SERVICE_HOST").empty() &&
         kernel::exists(host.root.get(), kernel::below_root(std::string(kAccount) + "/token"));
}

Result<Access> read_access(const kernel::Host& host, const std::string& kubeconfig) {
  if (kubeconfig.empty()) {
    return read_service_account(host);
  }
  const std::string text = TRY(read_small(host, kubeconfig));
  const Result<document::YamlDocument> document = document::YamlDocument::parse(text);
  if (!document) {
    return fail(document.error().code, "kubeconfig " + kubeconfig + ": " + document.error().message);
  }
  if (!document->root().is_map()) {
    return fail(std::errc::invalid_argument, "kubeconfig " + kubeconfig + ": no keys with values");
  }
  return Kubeconfig(host, kubeconfig, document->root()).read();
}

}  // namespace hf::apiserver
