// Result: a value, or the Error that kept us from having it.
#pragma once

#include <expected>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace hf {

struct Error {
  std::errc code;
  std::string message;  // names the object: "open devices.list: No such file or directory"
};

template <class T>
using Result = std::expected<T, Error>;

std::unexpected<Error> fail(std::errc code, std::string message);
std::unexpected<Error> fail_errno(int number, const std::string& what);  // appends the system's words

template <class T>
T take(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

}  // namespace hf

// The value, or an early return of the error. The only macro of the house. One TRY inside another is fine.
// Not behind other members inside one pair of braces: GCC forgets to destroy those on the way out.
#define TRY(expression)                                                                                           \
  __extension__({                                                                                                 \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"") auto try_result = (expression); \
    _Pragma("GCC diagnostic pop") if (!try_result) { return std::unexpected(std::move(try_result).error()); }     \
    ::hf::take(std::move(try_result));                                                                            \
  })
