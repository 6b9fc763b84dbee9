// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <vector>

#include "hlo/type.h"

namespace torch_tpu::hlo {

class Builder;

// A handle to one result inside a Builder's program. Cheap to copy; valid as long as its Builder.
// A default-constructed Value is null (`if (v)`).
class Value {
 public:
  Value() = default;
  Value(Builder* builder, int32_t id) : builder_(builder), id_(id) {}

  explicit operator bool() const { return builder_ != nullptr; }
  Builder& builder() const;  // Error where null
  int32_t id() const { return id_; }
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Dims& dims() const { return type().dims; }
  int64_t rank() const { return type().rank(); }
  int64_t dim(int64_t i) const;  // size of dimension i; negative i counts from the end
  int64_t numel() const { return type().numel(); }

 private:
  Builder* builder_ = nullptr;
  int32_t id_ = -1;
};

using Values = Checked<Value>;

}  // namespace torch_tpu::hlo
