#include "adapters/apiserver/access.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "support/fake_host.h"

namespace hf::apiserver {
namespace {

constexpr const char* kMounts = "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n";
constexpr const char* kAccount = "var/run/secrets/kubernetes.io/serviceaccount/";

std::string config_with(const std::string& cluster, const std::string& user = "{token: secret}") {
  return "current-context: c\ncontexts: [{name: other, context: {}}, {name: c, context: {cluster: k, user: u, "
         "namespace: gpus}}]\nclusters: [{name: k, cluster: " +
         cluster + "}]\nusers: [{name: u, user: " + user + "}]\n";
}

class AccessTest : public testing::Test {
 protected:
  Result<Access> read(const std::string& text) {
    const test::FakeHost fake({{"proc/self/mountinfo", kMounts},
                               {"sys/fs/cgroup/", ""},
                               {"etc/k/config", text},
                               {"etc/k/ca.crt", "AUTHORITY"},
                               {"etc/k/me.crt", "CERTIFICATE"},
                               {"etc/k/me.key", "KEY"}});
    return read_access(fake.open(), "/etc/k/config");
  }

  void SetUp() override {
    ::unsetenv("KUBERNETES_SERVICE_HOST");
    ::unsetenv("KUBERNETES_SERVICE_PORT");
  }
};

TEST_F(AccessTest, ReadsAKubeconfig) {
  const Result<Access> access =
      read(config_with("{server: 'https://api.example:6443/prefix/', certificate-authority: ca.crt}"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->host, "api.example");
  EXPECT_EQ(access->port, "6443");
  EXPECT_EQ(access->prefix, "/prefix");
  EXPECT_EQ(access->authority, "AUTHORITY");
  EXPECT_EQ(access->token, "secret");
  EXPECT_EQ(access->name_space, "gpus");
  EXPECT_FALSE(access->is_plain);
}

TEST_F(AccessTest, ReadsAddressesOfAllKinds) {
  const std::vector<std::array<std::string, 3>> table = {
      {"https://10.0.0.1", "10.0.0.1", "443"},        {"https://[fd00::1]:6443", "fd00::1", "6443"},
      {"https://[fd00::1]", "fd00::1", "443"},        {"https://api", "api", "443"},
      {"http://127.0.0.1:8001", "127.0.0.1", "8001"},
  };
  for (const auto& [server, host, port] : table) {
    const Result<Access> access = read(config_with("{server: '" + server + "', certificate-authority: ca.crt}", "{}"));
    ASSERT_TRUE(access) << access.error().message;
    EXPECT_EQ(access->host, host);
    EXPECT_EQ(access->port, port);
    EXPECT_EQ(access->is_plain, server.starts_with("http:"));
  }
}

TEST_F(AccessTest, ReadsCertificatesFromFilesAndFromText) {
  const std::string server = "server: 'https://a', ";
  Result<Access> access = read(config_with("{" + server + "certificate-authority-data: QVVUSA==}",
                                           "{client-certificate: me.crt, client-key: /etc/k/me.key}"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->authority, "AUTH");
  EXPECT_EQ(access->certificate, "CERTIFICATE");
  EXPECT_EQ(access->key, "KEY");
  access = read(config_with("{" + server + "certificate-authority-data: QVVUSDE=}", "{tokenFile: token}"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->authority, "AUTH1");
  EXPECT_EQ(access->token_file, "/etc/k/token");
}

TEST_F(AccessTest, RefusesInOneLineThatNamesTheFile) {
  const std::string fine = "{server: 'https://a', certificate-authority: ca.crt}";
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "no keys"},
      {"{]", "kubeconfig"},
      {"current-context: x\n", "contexts has no 'x'"},
      {"contexts: []\n", "current-context is not set"},
      {config_with("{server: 'http://10.0.0.1', certificate-authority: ca.crt}"), "http is for 127.0.0.1 only"},
      {config_with("{server: 'http://127.0.0.1:8001'}"), "http carries no token"},
      {config_with("{server: 'http://127.0.0.1:8001'}", "{client-certificate: me.crt, client-key: me.key}"),
       "http carries no token"},
      {config_with("{server: 'ftp://a', certificate-authority: ca.crt}"), "no https:// address"},
      {config_with("{server: 'https://a:b', certificate-authority: ca.crt}"), "no host and port"},
      {config_with("{server: 'https://', certificate-authority: ca.crt}"), "no host and port"},
      {config_with("{server: 'https://a'}"), "no certificate-authority"},
      {config_with("{server: 'https://a', certificate-authority: none}"), "none"},
      {config_with("{server: 'https://a', certificate-authority-data: '?'}"), "not base64"},
      {config_with("{server: 'https://a', insecure-skip-tls-verify: true}"), "insecure-skip-tls-verify"},
      {config_with("{server: 'https://a', certificate-authority: ca.crt, proxy-url: 'http://p'}"), "proxy-url"},
      {config_with(fine, "{exec: {command: aws}}"), "exec is not supported"},
      {config_with(fine, "{username: me, password: x}"), "username is not supported"},
      {config_with(fine, "{client-certificate: me.crt}"), "needs a client-key"},
  };
  for (const auto& [text, why] : table) {
    const Result<Access> access = read(text);
    ASSERT_FALSE(access) << text;
    EXPECT_NE(access.error().message.find(why), std::string::npos) << access.error().message;
    EXPECT_EQ(access.error().message.find('\n'), std::string::npos) << access.error().message;
  }
}

TEST_F(AccessTest, ReadsTheServiceAccountOfAPod) {
  const test::FakeHost fake({{"proc/self/mountinfo", kMounts},
                             {"sys/fs/cgroup/", ""},
                             {std::string(kAccount) + "ca.crt", "AUTHORITY"},
                             {std::string(kAccount) + "token", "t0ken"},
                             {std::string(kAccount) + "namespace", "kube-system\n"}});
  const kernel::Host host = fake.open();
  EXPECT_FALSE(is_in_cluster(host));
  const Result<Access> none = read_access(host, "");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("KUBERNETES_SERVICE_HOST"), std::string::npos);
  ::setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  EXPECT_TRUE(is_in_cluster(host));
  const Result<Access> access = read_access(host, "");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->host, "10.96.0.1");
  EXPECT_EQ(access->token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
  EXPECT_EQ(access->name_space, "kube-system");
  EXPECT_EQ(access->authority, "AUTHORITY");
}

}  // namespace
}  // namespace hf::apiserver
