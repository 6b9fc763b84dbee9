// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/program.h"

// What distinguishes the programs of one callable, and those it has.
namespace torch_tpu::aten {

// Everything of a call that its program depends on: dtypes, shapes, views, numbers that are no
// operands, settings.
using Key = c10::SmallVector<uint64_t, 96>;

// A signature's program and how its results become tensors.
struct Compiled {
  std::shared_ptr<const runtime::Program> program;
  struct Fresh {
    int output = -1;  // result number, -1: an undefined tensor
    at::ScalarType dtype = at::kFloat;
    c10::SmallVector<int64_t, 5> sizes, strides;
    c10::IValue number;  // the result itself where it is no tensor
  };
  std::vector<Fresh> fresh;
  struct Write {
    int slot;  // which written tensor names the cell
    int output;
  };
  std::vector<Write> writes;
  c10::SmallVector<bool, 16> donatable;  // per operand: aliased to the result that replaces it
  uint64_t draws = 0;
  bool host_fallback = false;
};

struct KeyHash {
  size_t operator()(const std::vector<uint64_t>& k) const;
};

// Programs by signature. Thread-safe.
class Signatures {
 public:
  Signatures();
  ~Signatures();
  Signatures(const Signatures&) = delete;
  Signatures& operator=(const Signatures&) = delete;
  std::shared_ptr<const Compiled> find(const Key& key);
  void insert(const Key& key, std::shared_ptr<const Compiled> c);
  size_t size() const;
  void each(const std::function<void(const Compiled&)>& f) const;

 private:
  static void clear_all();

  mutable std::mutex mutex_;
  std::unordered_map<std::vector<uint64_t>, std::shared_ptr<const Compiled>, KeyHash> map_;
  Key last_key_;
  std::shared_ptr<const Compiled> last_;
};

}  // namespace torch_tpu::aten
