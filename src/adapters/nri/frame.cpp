#include "adapters/nri/frame.h"

namespace hf::nri {
namespace {

constexpr std::size_t kPieceHead = 8;     // connection and length, both big-endian
constexpr std::size_t kMessageHead = 10;  // length, stream, type and flags
constexpr std::size_t kMostMessage = std::size_t(4) << 20U;
constexpr std::size_t kMostPiece = kMostMessage + kMessageHead;

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    number = number << 8U | std::uint8_t(bytes[at + i]);
  }
  return number;
}

void append_number(std::string& bytes, std::uint32_t number) {
  for (unsigned shift = 32; shift > 0;) {
    shift -= 8;
    bytes += char(number >> shift & 0xffU);
  }
}

std::unexpected<Error> malformed(const std::string& why) { return fail(std::errc::bad_message, "NRI: " + why); }

}  // namespace

std::string frame(Connection connection, const Message& message) {
  std::string bytes;
  append_number(bytes, std::uint32_t(connection));
  append_number(bytes, std::uint32_t(kMessageHead + message.body.size()));
  append_number(bytes, std::uint32_t(message.body.size()));
  append_number(bytes, message.stream);
  bytes += char(message.type);
  bytes += '\0';  // no flags: calls with one request and one answer
  return bytes + message.body;
}

Result<std::vector<Received>> FrameReader::feed(std::string_view bytes) {
  unread_ += bytes;
  std::vector<Received> received;
  TRY(take_pieces(received));
  return received;
}

Result<void> FrameReader::take_pieces(std::vector<Received>& received) {
  std::size_t start = 0;
  while (unread_.size() - start >= kPieceHead) {
    const std::uint32_t id = number_at(unread_, start);
    const std::size_t size = number_at(unread_, start + 4);
    if (size > kMostPiece) {
      return malformed("a piece of " + std::to_string(size) + " bytes");
    }
    if (id != std::uint32_t(Connection::plugin) && id != std::uint32_t(Connection::runtime)) {
      return malformed("the connection " + std::to_string(id) + " is unknown");
    }
    if (unread_.size() - start - kPieceHead < size) {
      break;
    }
    const auto connection = Connection(id);
    std::string& unread = connection == Connection::plugin ? plugin_ : runtime_;
    unread.append(unread_, start + kPieceHead, size);
    start += kPieceHead + size;
    TRY(take_messages(connection, unread, received));
  }
  unread_.erase(0, start);
  return {};
}

Result<void> FrameReader::take_messages(Connection connection, std::string& unread, std::vector<Received>& received) {
  std::size_t start = 0;
  while (unread.size() - start >= kMessageHead) {
    const std::size_t size = number_at(unread, start);
    if (size > kMostMessage) {
      return malformed("a message of " + std::to_string(size) + " bytes");
    }
    if (unread.size() - start - kMessageHead < size) {
      break;
    }
    received.push_back(
        {connection,
         {number_at(unread, start + 4), MessageType(unread[start + 8]), unread.substr(start + kMessageHead, size)}});
    start += kMessageHead + size;
  }
  unread.erase(0, start);
  return {};
}

}  // namespace hf::nri
