// Frame: how NRI carries calls over one socket: several connections in one stream, and ttRPC messages in each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace hf::nri {

// plugin: the engine calls us. runtime: we call the engine.
// NOLINTNEXTLINE(performance-enum-size): as the wire has it
enum class Connection : std::uint32_t { plugin = 1, runtime = 2 };

enum class MessageType : std::uint8_t { request = 1, response = 2, data = 3 };

struct Message {
  std::uint32_t stream = 0;  // answers have that of their request
  MessageType type = MessageType::request;
  std::string body;

  friend bool operator==(const Message&, const Message&) = default;
};

struct Received {
  Connection connection = Connection::plugin;
  Message message;

  friend bool operator==(const Received&, const Received&) = default;
};

// The bytes of a message, as they are sent.
std::string frame(Connection connection, const Message& message);

// Takes bytes as they arrive, in pieces of any size.
class FrameReader {
 public:
  // Fails where a length is beyond what NRI allows, or a connection is unknown: then nothing can be read any more.
  Result<std::vector<Received>> feed(std::string_view bytes);

 private:
  Result<void> take_pieces(std::vector<Received>& received);
  static Result<void> take_messages(Connection connection, std::string& unread, std::vector<Received>& received);

  std::string unread_;  // of the socket
  std::string plugin_;  // of a connection: a message may come in several pieces
  std::string runtime_;
};

}  // namespace hf::nri
