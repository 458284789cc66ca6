// Result: a value, or the Error that says why there is none.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace hf {

// What a caller must tell apart where the system's codes do not.
enum class Reason : std::uint8_t {
  system,         // the code says it
  refused_above,  // a gate above the container refuses, and gates above are never widened
  unavailable,    // nothing failed: the CPUs, or the devices, that are asked for cannot be had here
  not_yet,        // the same will work in a moment
  unreadable,     // it cannot be read now, which says nothing about it
  unanswered,     // the server was reached and gave no answer to this request: it may answer others
};

struct Error {
  std::errc code;
  std::string message;  // names the object: "open devices.list: No such file or directory"
  Reason reason = Reason::system;
};

template <class T>
using Result = std::expected<T, Error>;

std::unexpected<Error> fail(std::errc code, std::string message);
std::unexpected<Error> fail(Reason reason, std::string message);
std::unexpected<Error> fail_errno(int number, const std::string& what);  // appends the system's message

template <class T>
T take(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

}  // namespace hf

// TRY evaluates to the value, or returns the error early. It is the only macro of the project, and it may be nested.
// It must not follow other members inside one pair of braces: GCC forgets to destroy those on the early return.
#define TRY(expression)                                                                                           \
  __extension__({                                                                                                 \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") auto try_result = (expression); \
    _Pragma("GCC diagnostic pop") if (!try_result) { return std::unexpected(std::move(try_result).error()); }     \
    ::hf::take(std::move(try_result));                                                                            \
  })
