// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/registry.h"

// Fused optimizer steps and the parts of gradient scaling: every parameter of a list in one
// program. Results are the schema's lists one after another, flat. Step sizes and bias corrections
// are rank 0 and computed in f64, as PyTorch's CPU kernel does in double: 1 - beta^step loses half
// its digits in f32. Arrays are computed in f32 for 16-bit parameters and rounded once.
namespace torch_tpu::lower {
namespace {

// What every fused optimizer does around its formula: with found_inf (1: a gradient overflowed)
// nothing changes; with grad_scale the gradient is divided by it and given back so.
struct Scaling {
  std::optional<Value> grad_scale, found_inf;

  Value unscaled(Value grad) const {
    return grad_scale ? grad / hlo::broadcast_to(convert(*grad_scale, grad.dtype()), grad.dims())
                      : grad;
  }
  // `updated` in old's dtype, or old where the step is skipped.
  Value kept(Value old, Value updated) const {
    updated = convert(updated, old.dtype());
    if (!found_inf) return updated;
    Value skip = reshape(compare(*found_inf, hlo::ones_like(*found_inf), hlo::Compare::eq), {});
    return select(hlo::broadcast_to(skip, old.dims()), old, updated);
  }
};

Value widened(Value x) { return convert(x, hlo::accumulate_type(x.dtype())); }
Value f64(Value x) { return convert(reshape(x, {}), DType::f64); }
// A rank-0 number for arithmetic with x.
Value as(Value number, Value x) { return convert(number, x.dtype()); }

Values joined(std::initializer_list<Values> lists) {
  Values all;
  for (const Values& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// Adam (`decoupled`: AdamW). With g the gradient (negated by `maximize`, + weight_decay * p in
// Adam), t the step:
//   m = m + (1 - beta1)(g - m);  v = beta2 v + (1 - beta2) g^2;  v^ = max(v^, v) with amsgrad, else
//   v p = p - lr / (1 - beta1^t) * m / (sqrt(v^) / sqrt(1 - beta2^t) + eps);  AdamW first: p = p -
//   lr weight_decay p
Values adam(bool decoupled, const Values& self, const Values& grads, const Values& exp_avgs,
            const Values& exp_avg_sqs, const Values& max_exp_avg_sqs, const Values& state_steps,
            Value lr, Value beta1, Value beta2, Value weight_decay, Value eps, bool amsgrad,
            bool maximize, const Scaling& scaling) {
  Values new_self, new_grads, new_avgs, new_sqs, new_max;
  const Value rate = f64(lr);
  for (size_t i = 0; i < self.size(); ++i) {
    Value step = f64(state_steps[i]);
    Value correction1 = 1.0 - power(beta1, step), correction2 = 1.0 - power(beta2, step);
    Value p = widened(self[i]), unscaled = scaling.unscaled(convert(grads[i], p.dtype()));
    Value g = maximize ? -unscaled : unscaled;
    if (decoupled)
      p = p - p * as(rate * weight_decay, p);
    else
      g = g + p * as(weight_decay, p);

    Value m = convert(exp_avgs[i], p.dtype()), v = convert(exp_avg_sqs[i], p.dtype());
    m = m + (g - m) * as(1.0 - beta1, p);
    v = v * as(beta2, p) + g * g * as(1.0 - beta2, p);
    Value high = v;
    if (amsgrad) {
      high = hlo::maximum(convert(max_exp_avg_sqs[i], p.dtype()), v);
      new_max.push_back(scaling.kept(max_exp_avg_sqs[i], high));
    }
    Value denominator = sqrt(high) / as(sqrt(correction2), p) + as(eps, p);
    p = p - m * as(rate / correction1, p) / denominator;

    new_self.push_back(scaling.kept(self[i], p));
    new_grads.push_back(scaling.grad_scale ? scaling.kept(grads[i], unscaled) : grads[i]);
    new_avgs.push_back(scaling.kept(exp_avgs[i], m));
    new_sqs.push_back(scaling.kept(exp_avg_sqs[i], v));
  }
  if (!amsgrad) new_max = max_exp_avg_sqs;
  return joined({new_self, new_grads, new_avgs, new_sqs, new_max});
}

template <bool decoupled>
Values fused_adam(Values self, Values grads, Values exp_avgs, Values exp_avg_sqs,
                  Values max_exp_avg_sqs, Values state_steps, Value lr, Value beta1, Value beta2,
                  Value weight_decay, Value eps, bool amsgrad, bool maximize,
                  std::optional<Value> grad_scale, std::optional<Value> found_inf) {
  return adam(decoupled, self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr,
              beta1, beta2, weight_decay, eps, amsgrad, maximize, {grad_scale, found_inf});
}

// SGD. With g the gradient (negated by `maximize`) + weight_decay * p:
//   momentum buffers b, if the list has any: b = g at the first step, else momentum b + (1 -
//   dampening) g g = g + momentum b with nesterov, else b;  p = p - lr g
Values fused_sgd(Values self, Values grads, Values momentum_buffers, Value weight_decay,
                 Value momentum, Value lr, Value dampening, bool nesterov, bool maximize,
                 bool is_first_step, std::optional<Value> grad_scale,
                 std::optional<Value> found_inf) {
  const Scaling scaling{grad_scale, found_inf};
  Values new_self, new_grads, new_buffers;
  for (size_t i = 0; i < self.size(); ++i) {
    Value p = widened(self[i]), unscaled = scaling.unscaled(convert(grads[i], p.dtype()));
    Value g = (maximize ? -unscaled : unscaled) + p * as(weight_decay, p);
    if (!momentum_buffers.empty()) {
      Value b = g;
      if (!is_first_step)
        b = convert(momentum_buffers[i], p.dtype()) * as(momentum, p) + g * as(1.0 - dampening, p);
      g = nesterov ? g + b * as(momentum, p) : b;
      new_buffers.push_back(scaling.kept(momentum_buffers[i], b));
    }
    new_self.push_back(scaling.kept(self[i], p - g * as(f64(lr), p)));
    new_grads.push_back(scaling.grad_scale ? scaling.kept(grads[i], unscaled) : grads[i]);
  }
  return joined({new_self, new_grads, new_buffers});
}

// Adagrad. With g the gradient (negated by `maximize`) + weight_decay * p:
//   s = s + g^2;  p = p - lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)
Values adagrad(const Values& self, const Values& grads, const Values& state_sums,
               const Values& state_steps, Value lr, Value lr_decay, Value weight_decay, Value eps,
               bool maximize, const Scaling& scaling) {
  Values new_self, new_grads, new_sums;
  for (size_t i = 0; i < self.size(); ++i) {
    Value p = widened(self[i]), unscaled = scaling.unscaled(convert(grads[i], p.dtype()));
    Value g = (maximize ? -unscaled : unscaled) + p * as(weight_decay, p);
    Value rate = f64(lr) / (1.0 + (f64(state_steps[i]) - 1.0) * lr_decay);
    Value s = convert(state_sums[i], p.dtype()) + g * g;
    new_self.push_back(scaling.kept(self[i], p - g * as(rate, p) / (sqrt(s) + as(eps, p))));
    new_grads.push_back(scaling.grad_scale ? scaling.kept(grads[i], unscaled) : grads[i]);
    new_sums.push_back(scaling.kept(state_sums[i], s));
  }
  return joined({new_self, new_grads, new_sums});
}
Values fused_adagrad(Values self, Values grads, Values state_sums, Values state_steps, Value lr,
                     Value lr_decay, Value weight_decay, Value eps, bool maximize,
                     std::optional<Value> grad_scale, std::optional<Value> found_inf) {
  return joined({adagrad(self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps,
                         maximize, {grad_scale, found_inf}),
                 state_steps});
}
// This overload's schema does not give the steps back.
Values fused_adagrad_tensor_lr(Values self, Values grads, Values state_sums, Values state_steps,
                               Value lr, Value lr_decay, Value weight_decay, Value eps,
                               bool maximize, std::optional<Value> grad_scale,
                               std::optional<Value> found_inf) {
  return adagrad(self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize,
                 {grad_scale, found_inf});
}

// (each * inv_scale .., found_inf): found_inf becomes 1 if any element is not finite, else stays.
// An inv_scale of 1 is exact.
Values non_finite_check_and_unscale(Values self, Value found_inf, Value inv_scale) {
  Values out;
  Value found = found_inf;
  for (Value x : self) {
    Value bad = hlo::any(not_(is_finite(x)), all_dims(x));
    found = select(hlo::broadcast_to(bad, found.dims()), hlo::ones_like(found), found);
    Value z = widened(x);
    out.push_back(
        convert(z * hlo::broadcast_to(convert(inv_scale, z.dtype()), z.dims()), x.dtype()));
  }
  out.push_back(found);
  return out;
}

// (scale, growth_tracker) after a step: backed off if found_inf; grown, where that is finite, after
// growth_interval steps in a row without one, which the tracker counts.
std::pair<Value, Value> update_scale(Value self, Value growth_tracker, Value found_inf,
                                     Value growth_factor, Value backoff_factor,
                                     Value growth_interval) {
  auto factor = [&](Value f) { return hlo::broadcast_to(convert(f, self.dtype()), self.dims()); };
  Value bad =
      reshape(compare(found_inf, hlo::zeros_like(found_inf), hlo::Compare::ne), self.dims());
  Value streak = growth_tracker + hlo::ones_like(growth_tracker);
  Value due =
      compare(streak, hlo::broadcast_to(convert(growth_interval, streak.dtype()), streak.dims()),
              hlo::Compare::eq);
  Value grown = self * factor(growth_factor);
  grown = select(is_finite(grown), grown, self);
  Value scale =
      select(bad, self * factor(backoff_factor), select(reshape(due, self.dims()), grown, self));
  Value tracker = select(or_(reshape(bad, streak.dims()), due), hlo::zeros_like(streak), streak);
  return {scale, tracker};
}

}  // namespace

void register_optim(Registry& r) {
  for (const char* overload : {"", ".tensor_lr"}) {
    const std::string suffix = overload;
    r.add("aten::_fused_adam" + suffix, fused_adam<false>);
    r.add("aten::_fused_adamw" + suffix, fused_adam<true>);
    r.add("aten::_fused_sgd" + suffix, fused_sgd);
  }
  r.add("aten::_fused_adagrad", fused_adagrad);
  r.add("aten::_fused_adagrad.tensor_lr", fused_adagrad_tensor_lr);
  r.add("aten::_amp_foreach_non_finite_check_and_unscale", non_finite_check_and_unscale);
  r.add("aten::_amp_update_scale", update_scale);
}

}  // namespace torch_tpu::lower
