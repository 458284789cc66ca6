// Reply: an HTTP response, and the headers that all responses have.
#pragma once

#include <memory>
#include <string>

namespace hf::web {

// The cache that rendered a body shares it with the connections, which keep it until it is sent.
using Body = std::shared_ptr<const std::string>;

struct Reply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  Body body;        // null for a stream and for status 304
  std::string tag;  // ETag, "" for none
};

Reply text_reply(int status, const std::string& text);

enum class After : bool { closes, keeps };
std::string render_head(const Reply& reply, After after);  // including the empty line at its end

}  // namespace hf::web
