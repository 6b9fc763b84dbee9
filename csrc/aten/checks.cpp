// SPDX-License-Identifier: Apache-2.0
#include "aten/checks.h"

#include "aten/checks/table.h"

namespace torch_tpu::aten {
namespace {

const CheckTable& checks() {
  static const CheckTable table = [] {
    CheckTable t;
    add_convolution_checks(t);
    add_dtype_checks(t);
    add_factory_checks(t);
    add_indexing_checks(t);
    add_linalg_checks(t);
    add_norm_loss_checks(t);
    add_pooling_checks(t);
    add_random_checks(t);
    add_shape_checks(t);
    return t;
  }();
  return table;
}

const CheckTable& number_checks() {
  static const CheckTable table = [] {
    CheckTable t;
    add_random_number_checks(t);
    add_number_checks(t);
    return t;
  }();
  return table;
}

}  // namespace

void check_call(const OpPlan& plan, const c10::IValue* args) {
  const auto check = [&](const std::string& name) {
    const auto it = checks().find(name);
    if (it != checks().end()) it->second(args);
  };
  if (plan.name != plan.functional) check(plan.name);  // what only this form refuses
  check(plan.functional);
}

void (*number_check(const std::string& functional))(const c10::IValue* args) {
  const auto it = number_checks().find(functional);
  return it == number_checks().end() ? nullptr : it->second;
}

}  // namespace torch_tpu::aten
