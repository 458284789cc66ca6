// Reply: an answer, and the headers every answer has.
#pragma once

#include <memory>
#include <string>

namespace hf::web {

// The owner of a body is whoever rendered it; connections keep it until it is sent.
using Body = std::shared_ptr<const std::string>;

struct Reply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  Body body;        // absent: none, as of a stream or of 304
  std::string tag;  // ETag, "" for none
};

Reply say(int status, const std::string& words);

enum class After : bool { closes, keeps };
std::string render_head(const Reply& reply, After after);  // with the empty line at its end

}  // namespace hf::web
