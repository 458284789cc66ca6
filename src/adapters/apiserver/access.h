// Access: where the API server is, and the identity that requests have there.
#pragma once

#include <string>

#include "core/base/result.h"
#include "kernel/files/host.h"

namespace hf::apiserver {

struct Access {
  std::string host;  // a name or an address
  std::string port = "443";
  std::string prefix;       // of every path, "" as a rule
  std::string authority;    // PEM text of the certificate authority
  std::string server_name;  // in the server's certificate; "": the host
  std::string token_file;   // "" for none; read again when the server says 401, and every minute: tokens expire
  std::string token;        // where a kubeconfig has it in the text
  std::string certificate;  // PEM of a client certificate and its key, "" for none
  std::string key;          // PEM
  std::string name_space;   // our own namespace, "default" where unknown
  bool is_plain = false;    // HTTP without TLS, only on 127.0.0.1: as `kubectl proxy` serves it

  friend bool operator==(const Access&, const Access&) = default;
};

// Whether this process runs in a pod that has a service account.
bool is_in_cluster(const kernel::Host& host);

// `kubeconfig`: a path; "": the service account of this pod. What a kubeconfig asks for and this client cannot do is an
// error that names it.
Result<Access> read_access(const kernel::Host& host, const std::string& kubeconfig);

}  // namespace hf::apiserver
