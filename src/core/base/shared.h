// Shared: an immutable value that several owners hold without copying it. It is never null.
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
  // Refers to a part of a larger object, which is kept alive as long as the part is in use.
  template <class Owner>
  Shared(const std::shared_ptr<Owner>& owner, const Value& part) : value_(owner, &part) {}
  template <class Owner>
  Shared(const Shared<Owner>& owner, const Value& part) : value_(owner.value_, &part) {}

  const Value& operator*() const { return *value_; }
  const Value* operator->() const { return value_.get(); }

 private:
  template <class Other>
  friend class Shared;

  std::shared_ptr<const Value> value_;
};

}  // namespace hf
