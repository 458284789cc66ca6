#include "services/web/request.h"

#include <gtest/gtest.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "services/web/request_check.h"

namespace hf::web {
namespace {

Result<Request> parse(const std::string& head) {
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser;
  boost::beast::error_code error;
  parser.put(boost::asio::buffer(head + "\r\n\r\n"), error);
  return error ? fail(std::errc::bad_message, error.message()) : request_of(parser.get());
}

TEST(Request, IsReadFromAHead) {
  const Result<Request> request =
      parse("GET /api/v1/events?after=7 HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID:  12 ");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/api/v1/events");
  EXPECT_EQ(request->query, "after=7");
  EXPECT_EQ(request->header("last-event-id"), "12");
  EXPECT_TRUE(request->keeps_alive);
}

TEST(Request, ClosesTheConnectionIfItHasABody) {
  for (const char* line : {"Content-Length: 5", "Transfer-Encoding: chunked", "Connection: Close"}) {
    const Result<Request> request = parse("POST / HTTP/1.1\r\nHost: a\r\n" + std::string(line));
    ASSERT_TRUE(request) << line;
    EXPECT_FALSE(request->keeps_alive) << line;
  }
  EXPECT_FALSE(parse("GET / HTTP/1.0")->keeps_alive);
}

TEST(Request, IsRefusedIfMalformed) {
  for (const std::string& head :
       {std::string(""), std::string("GET"), std::string("GET /"), std::string("GET  / HTTP/1.1"),
        std::string("GET / HTTP/2"), std::string("GET http://x/ HTTP/1.1"), std::string("GET / HTTP/1.1\r\nno colon"),
        std::string("GET / HTTP/1.1\r\n folded: x"), std::string("GET / HTTP/1.1\r\nHost : x"),
        std::string("GET / HTTP/1.1\r\nHost: x\r\nhost: y"), std::string("GET / HTTP/1.1\r\nA: \x01"),
        std::string("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2"), std::string("GET /\0 HTTP/1.1", 15),
        std::string("G\xc3\xa4T / HTTP/1.1"), std::string("\r\nGET / HTTP/1.1")}) {
    EXPECT_FALSE(parse(head)) << head;
  }
}

std::string refusal(const std::string& host, const std::string& origin = "") {
  Request request;
  request.headers["host"] = host;
  if (!origin.empty()) {
    request.headers["origin"] = origin;
  }
  return why_refused(request, "gpu-7.example.com");
}

TEST(RequestCheck, AcceptsAnAddressOrTheHostsOwnName) {
  for (const char* host : {"127.0.0.1:9465", "10.1.2.3", "[::1]:9465", "[fe80::1]", "localhost", "LocalHost:1",
                           "gpu-7.example.com:9465", "GPU-7.example.com"}) {
    EXPECT_EQ(refusal(host), "") << host;
  }
}

TEST(RequestCheck, RefusesAnyOtherHostName) {
  for (const char* host : {"", "evil.example", "evil.example:9465", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.1", "0x7f000001", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "[::1", "::1", "[]",
                           "localhost:1:2", "127.0.0.1 ", "user@127.0.0.1", "gpu-7"}) {
    EXPECT_NE(refusal(host), "") << host;
  }
  EXPECT_NE(why_refused({}, ""), "");
}

TEST(RequestCheck, RefusesPagesOfAnotherOrigin) {
  EXPECT_EQ(refusal("localhost:9465", "http://localhost:9465"), "");
  EXPECT_EQ(refusal("localhost:9465", "https://LOCALHOST:9465"), "");
  for (const char* origin : {"null", "http://evil.example", "http://localhost", "http://localhost:9466",
                             "http://localhost:9465.evil.example", "localhost:9465", "ftp://localhost:9465"}) {
    EXPECT_NE(refusal("localhost:9465", origin), "") << origin;
  }
}

}  // namespace
}  // namespace hf::web
