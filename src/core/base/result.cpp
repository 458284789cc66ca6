#include "core/base/result.h"

namespace hf {

std::unexpected<Error> fail(std::errc code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

std::unexpected<Error> fail(Reason reason, std::string message) {
  return std::unexpected(Error{std::errc::operation_canceled, std::move(message), reason});
}

std::unexpected<Error> fail_errno(int number, const std::string& what) {
  return fail(std::errc(number), what + ": " + std::system_category().message(number));
}

}  // namespace hf
