// Shared: a value that nobody changes any more, held once by all who look at it. There always is one.
#pragma once

#include <memory>
#include <utility>

namespace hf {

template <class Value>
class Shared {
 public:
  Shared() : Shared(Value()) {}
  Shared(Value value)
      : value_(std::make_shared<const Value>(std::move(value))) {}  // NOLINT(google-explicit-constructor)
  // A part of something larger, which stays as long as the part is looked at.
  template <class Owner>
  Shared(const std::shared_ptr<Owner>& owner, const Value& part) : value_(owner, &part) {}

  const Value& operator*() const { return *value_; }
  const Value* operator->() const { return value_.get(); }

 private:
  std::shared_ptr<const Value> value_;
};

}  // namespace hf
