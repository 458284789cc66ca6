#include "services/web/server.h"

#include <chrono>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernel/files/clock.h"
#include "kernel/net/socket.h"
#include "services/web/server_test.h"

namespace hf::web {
namespace {

TEST_F(ServerTest, AnswersEachPath) {
  EXPECT_TRUE(has_status(ask("GET /healthz"), 200));
  EXPECT_TRUE(has_status(ask("GET /readyz"), 503));
  EXPECT_TRUE(has_status(ask("GET /metrics"), 503));
  publish_snapshot();
  EXPECT_TRUE(has_status(ask("GET /readyz"), 200));
  EXPECT_NE(ask("GET /metrics").find("\nholdfast_blind 0\n"), std::string::npos);
  EXPECT_NE(ask("GET /").find("<!doctype html>"), std::string::npos);
  const std::string answer = ask("GET /api/v1/snapshot");
  EXPECT_EQ(nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n")))["host_name"], "</script>\"");
}

TEST_F(ServerTest, IsReadyOnlyWithAFreshSnapshotThatIsNotBlind) {
  publish_snapshot(true);
  const std::string blind = ask("GET /readyz");
  EXPECT_TRUE(has_status(blind, 503));
  EXPECT_NE(blind.find("blind: no? capability\n"), std::string::npos);
  EXPECT_NE(ask("GET /metrics").find("\nholdfast_blind 1\n"), std::string::npos);
  publish_snapshot(false, 181'000);
  EXPECT_TRUE(has_status(ask("GET /readyz"), 503));
  publish_snapshot(false, 170'000);
  EXPECT_TRUE(has_status(ask("GET /readyz"), 200));
  EXPECT_TRUE(has_status(ask("GET /healthz"), 200));
}

TEST_F(ServerTest, SendsSecurityHeadersWithEveryReply) {
  for (const char* line : {"GET /", "GET /nothing", "POST /", "GET /healthz"}) {
    const std::string answer = ask(line);
    for (const char* header :
         {"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';",
          "X-Content-Type-Options: nosniff", "X-Frame-Options: DENY", "Referrer-Policy: no-referrer",
          "Cache-Control: no-store"}) {
      EXPECT_NE(answer.find(header), std::string::npos) << line << "\n" << answer;
    }
    EXPECT_EQ(answer.find("Access-Control"), std::string::npos);
  }
}

TEST_F(ServerTest, RefusesOtherMethodsAndUnknownPaths) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "PRI"}) {
    const std::string answer = ask(std::string(method) + " /healthz");
    EXPECT_TRUE(has_status(answer, 405)) << method << answer;
    EXPECT_NE(answer.find("Allow: GET, HEAD\r\n"), std::string::npos);
  }
  for (const char* path :
       {"/nothing", "/index.html", "/../etc/passwd", "/%2e", "//", "/metrics/", "/api/v1/snapshot2"}) {
    EXPECT_TRUE(has_status(ask(std::string("GET ") + path), 404)) << path;
  }
}

TEST_F(ServerTest, SendsNoBodyForHead) {
  publish_snapshot();
  for (const char* path : {"/", "/metrics", "/api/v1/snapshot", "/api/v1/events"}) {
    const std::string answer = ask(std::string("HEAD ") + path);
    EXPECT_TRUE(has_status(answer, 200)) << path;
    EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << path;
  }
}

TEST_F(ServerTest, ServesThePagesOfFindings) {
  const std::string page = ask("GET /findings/HF-101");
  EXPECT_TRUE(has_status(page, 200));
  EXPECT_NE(page.find("Content-Security-Policy: default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("<h1>HF-101 A container lost a right it had</h1>"), std::string::npos);
  EXPECT_NE(ask("GET /findings").find("\"/findings/HF-319\""), std::string::npos);
  EXPECT_TRUE(has_status(ask("GET /findings/HF-999"), 404));
  EXPECT_TRUE(has_status(ask("GET /findings/"), 404));
}

TEST_F(ServerTest, ChecksHostAndOrigin) {
  EXPECT_TRUE(has_status(ask("GET /healthz", "Host: evil.example\r\n"), 403));
  EXPECT_TRUE(has_status(ask("GET /healthz", ""), 403));
  EXPECT_TRUE(has_status(ask("GET /healthz", "Host: localhost\r\nOrigin: http://evil.example\r\n"), 403));
  EXPECT_TRUE(has_status(ask("GET /api/v1/events", "Host: evil.example\r\n"), 403));
  EXPECT_TRUE(has_status(ask("POST /healthz", "Host: evil.example\r\n"), 403));
  EXPECT_TRUE(has_status(ask("GET /healthz", "Host: a\r\nHost: localhost\r\n"), 400));
  EXPECT_TRUE(has_status(ask("GET /healthz", "Host: localhost:1\r\nOrigin: http://localhost:1\r\n"), 200));
  EXPECT_TRUE(has_status(ask("GET /healthz", "Host: " + kernel::own_host_name() + "\r\n"), 200));
}

TEST_F(ServerTest, AnswersSeveralRequestsOnOneConnection) {
  Client client = connect_client();
  const std::string request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.send(request + request + "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string received = client.receive("there is nothing here");
  EXPECT_EQ(received.find("200 OK"), 9U);
  EXPECT_NE(received.rfind("200 OK"), 9U);
  EXPECT_FALSE(client.ended());
}

TEST_F(ServerTest, DoesNotParseABodyAsARequest) {
  Client client = connect_client();
  client.send(
      "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200\r\n\r\n"
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string received = client.receive("");
  EXPECT_TRUE(has_status(received, 405));
  EXPECT_EQ(received.find("200 OK"), std::string::npos);
}

TEST_F(ServerTest, RefusesHeadsThatAreTooLongOrMalformed) {
  EXPECT_TRUE(has_status(ask("GET /" + std::string(9000, 'x')), 431));
  EXPECT_TRUE(has_status(ask("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x') + "\r\n"), 431));
  EXPECT_TRUE(has_status(ask("\x16\x03\x01 hello"), 400));
}

TEST_F(ServerTest, SendsASnapshotAgainOnlyIfItHasChanged) {
  publish_snapshot();
  const std::string first = ask("GET /api/v1/snapshot");
  const std::size_t at = first.find("ETag: ") + 6;
  const std::string tag = first.substr(at, first.find("\r\n", at) - at);
  const std::string headers = "Host: localhost\r\nIf-None-Match: " + tag + "\r\n";
  EXPECT_TRUE(has_status(ask("GET /api/v1/snapshot", headers), 304));
  publish_snapshot();
  EXPECT_TRUE(has_status(ask("GET /api/v1/snapshot", headers), 200));
}

TEST_F(ServerTest, StreamsRecordsAsTheyCome) {
  publish_record(1);
  Client client = stream();
  publish_record(2);
  const std::string received = client.receive("id: 2\n");
  EXPECT_NE(received.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  EXPECT_EQ(received.find("id: 1\n"), std::string::npos);
  EXPECT_NE(client.receive("\n\n").find("data: {\"version\":1,\"number\":2,"), std::string::npos);
}

TEST_F(ServerTest, ResumesAStreamAfterTheLastEventSeen) {
  for (std::uint64_t number = 5; number < 10; ++number) {
    publish_record(number);
  }
  Client back = stream("Last-Event-ID: 7\r\n");
  const std::string& received = back.receive("id: 9\n");
  EXPECT_NE(received.find("id: 8\n"), std::string::npos);
  EXPECT_EQ(received.find("id: 7\n"), std::string::npos);
  EXPECT_EQ(received.find("event: lost"), std::string::npos);
  Client late = stream("Last-Event-ID: 1\r\n");
  EXPECT_NE(late.receive("id: 5\n").find("event: lost\ndata: {\"lost\": 3}\n\n"), std::string::npos);
  Client garbage = stream("Last-Event-ID: x\r\n");
  publish_record(11);
  EXPECT_EQ(garbage.receive("id: 11\n").find("id: 9\n"), std::string::npos);
}

TEST_F(ServerTest, ReportsLostRecordsToASlowReader) {
  Client slow = stream();
  Client quick = stream();
  const Clock::time_point begin = Clock::now();
  for (std::uint64_t number = 1; number <= 6000; ++number) {
    publish_record(number, 2000);
  }
  EXPECT_LT(Clock::now() - begin, 20s);
  quick.receive("id: 6000\n", 10s);
  EXPECT_NE(slow.receive("id: 6000\n", 10s).find("event: lost\n"), std::string::npos);
}

TEST_F(ServerTest, AllowsSixteenStreams) {
  std::vector<Client> streams;
  for (int i = 0; i < 16; ++i) {
    streams.push_back(stream());
  }
  EXPECT_TRUE(has_status(ask("GET /api/v1/events"), 503));
  EXPECT_TRUE(has_status(ask("GET /healthz"), 200));
  publish_record(1);
  for (Client& client : streams) {
    EXPECT_NE(client.receive("id: 1\n").find("id: 1\n"), std::string::npos);
  }
  streams.pop_back();
  for (int i = 0; i < 100 && streams.size() < 16; ++i) {
    Client another = connect_client();
    another.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    if (has_status(another.receive("\r\n\r\n"), 200)) {
      streams.push_back(std::move(another));
    }
  }
  EXPECT_EQ(streams.size(), 16U);
}

TEST_F(ServerTest, StopsAtOnceWithOpenStreams) {
  std::vector<Client> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(stream());
    clients.push_back(connect_client());
  }
  const Clock::time_point begin = Clock::now();
  server_.reset();
  EXPECT_LT(Clock::now() - begin, 4s);  // clients have 5 s for a request
  clients.front().receive("");
  EXPECT_TRUE(clients.front().ended());
}

TEST_F(ServerTest, IsNotBlockedBySilentClients) {
  std::vector<Client> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(connect_client());
    silent.back().send("GET / HT");
  }
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(has_status(ask("GET /healthz"), 200));
  }
  EXPECT_LT(Clock::now() - begin, 5s);
}

TEST_F(ServerTest, GivesAClientTimeToSendItsRequest) {
  bool is_answered = false;
  for (int i = 0; i < 10 && !is_answered; ++i) {  // connecting the others may take too long on a busy machine
    Client client = connect_client();
    std::vector<Client> others;
    for (int other = 0; other < 200; ++other) {
      others.push_back(connect_client());
    }
    client.receive("", 50ms);  // the server accepts them
    client.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    is_answered = has_status(client.receive(""), 200);
  }
  EXPECT_TRUE(is_answered);
}

TEST_F(ServerTest, ClosesAClientThatSendsItsRequestTooSlowly) {
  Client slow = connect_client();
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 200 && !slow.ended(); ++i) {
    slow.send("G");
    slow.receive("", 100ms);
  }
  EXPECT_TRUE(slow.ended());
  EXPECT_LT(Clock::now() - begin, 19s);
}

TEST_F(ServerTest, SurvivesGarbage) {
  unsigned seed = 1;
  for (int i = 0; i < 200; ++i) {
    std::string bytes(std::size_t(1 + i * 7), '\0');
    for (char& byte : bytes) {
      seed = seed * 1'103'515'245U + 12'345U;
      byte = char(seed >> 16U);
    }
    connect_client().send(bytes + "\r\n\r\n");
  }
  EXPECT_TRUE(has_status(ask("GET /healthz"), 200));
}

TEST_F(ServerTest, ReportsWhyItCannotListen) {
  for (const char* address : {"localhost", "x:1", "127.0.0.1:99999", "evil.example:80", "127.0.0.1:"}) {
    const Result<std::unique_ptr<Server>> server = Server::start({address, ""}, board_);
    ASSERT_FALSE(server) << address;
    EXPECT_NE(server.error().message.find(address), std::string::npos);
  }
}

TEST_F(ServerTest, WaitsForAnAddressInUse) {
  std::string logged;
  Settings settings{server_->address(), ""};
  settings.log = [&logged](const std::string& line, bool is_warning) { logged += is_warning ? line : ""; };
  const Result<std::unique_ptr<Server>> second = Server::start(settings, board_);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->address(), "");
  EXPECT_NE(logged.find("not-listening"), std::string::npos) << logged;
  EXPECT_NE(logged.find(server_->address()), std::string::npos) << logged;
}

}  // namespace
}  // namespace hf::web
