// SPDX-License-Identifier: Apache-2.0
#include "lower/dims.h"
#include "lower/families.h"
#include "lower/registry.h"

// _foreach_*: an operator of another family at each position of tensor lists, all positions in one
// program.
namespace torch_tpu::lower {
namespace {

// Another operator's lowering, found when it is called: families may be registered in any order.
class Operator {
 public:
  Operator(const Registry& r, std::string name) : registry_(&r), name_(std::move(name)) {}
  Value operator()(Context& ctx, const Args& args) const {
    const Entry* e = registry_->find(name_);
    if (!e)
      throw UserError(name_ + " is not implemented for tpu", UserError::Kind::not_implemented);
    return e->call(ctx, args).at(0);
  }

 private:
  const Registry* registry_;
  std::string name_;
};

Values each(size_t n, const std::function<Value(size_t)>& f) {
  Values out;
  for (size_t i = 0; i < n; ++i) out.push_back(f(i));
  return out;
}

void expect_same_length(const Values& a, const Values& b) {
  if (a.size() == b.size()) return;
  throw UserError("Tensor lists must have the same number of tensors, got " +
                  std::to_string(a.size()) + " and " + std::to_string(b.size()));
}
void expect_scalar_each(const Values& a, const Values& scalars) {
  if (a.size() != scalars.size())
    throw UserError("Tensor list must have same number of elements as scalar list.");
}

Wrapped one(Context& ctx) { return {hlo::constant(ctx.builder, DType::s64, 1)}; }

std::string aten(const std::string& name) { return "aten::" + name; }

void add_unary(Registry& r, const std::string& name) {
  r.add(aten("_foreach_" + name), [op = Operator(r, aten(name))](Context& ctx, Values self) {
    return each(self.size(), [&](size_t i) { return op(ctx, {self[i]}); });
  });
}

// _foreach_<name>.List, .Scalar, .ScalarList by operators of (self, other).
void add_binary(Registry& r, const std::string& name, const std::string& by_tensor,
                const std::string& by_scalar) {
  r.add(aten("_foreach_" + name + ".List"),
        [op = Operator(r, aten(by_tensor))](Context& ctx, Values self, Values other) {
          expect_same_length(self, other);
          return each(self.size(), [&](size_t i) { return op(ctx, {self[i], other[i]}); });
        });
  r.add(aten("_foreach_" + name + ".Scalar"),
        [op = Operator(r, aten(by_scalar))](Context& ctx, Values self, Arg scalar) {
          return each(self.size(), [&](size_t i) { return op(ctx, {self[i], scalar}); });
        });
  r.add(aten("_foreach_" + name + ".ScalarList"), [op = Operator(r, aten(by_scalar))](
                                                      Context& ctx, Values self, Values scalars) {
    expect_scalar_each(self, scalars);
    return each(self.size(), [&](size_t i) { return op(ctx, {self[i], Wrapped{scalars[i]}}); });
  });
}

// add and sub: the operator takes alpha as well.
void add_scaled(Registry& r, const std::string& name) {
  const Operator op(r, aten(name + ".Tensor"));
  r.add(aten("_foreach_" + name + ".List"),
        [op](Context& ctx, Values self, Values other, Arg alpha) {
          expect_same_length(self, other);
          return each(self.size(), [&](size_t i) { return op(ctx, {self[i], other[i], alpha}); });
        });
  r.add(aten("_foreach_" + name + ".Scalar"), [op](Context& ctx, Values self, Arg scalar) {
    return each(self.size(), [&](size_t i) { return op(ctx, {self[i], scalar, one(ctx)}); });
  });
  r.add(aten("_foreach_" + name + ".ScalarList"), [op](Context& ctx, Values self, Values scalars) {
    expect_scalar_each(self, scalars);
    return each(self.size(),
                [&](size_t i) { return op(ctx, {self[i], Wrapped{scalars[i]}, one(ctx)}); });
  });
}

// addcmul, addcdiv: self + value * (t1 op t2).
void add_ternary(Registry& r, const std::string& name) {
  const Operator op(r, aten(name));
  r.add(aten("_foreach_" + name + ".Scalar"), [op](Context& ctx, Values self, Values t1, Values t2,
                                                   Arg value) {
    expect_same_length(self, t1);
    expect_same_length(self, t2);
    return each(self.size(), [&](size_t i) { return op(ctx, {self[i], t1[i], t2[i], value}); });
  });
  r.add(aten("_foreach_" + name + ".ScalarList"),
        [op](Context& ctx, Values self, Values t1, Values t2, Values scalars) {
          expect_same_length(self, t1);
          expect_same_length(self, t2);
          expect_scalar_each(self, scalars);
          return each(self.size(), [&](size_t i) {
            return op(ctx, {self[i], t1[i], t2[i], Wrapped{scalars[i]}});
          });
        });
  r.add(aten("_foreach_" + name + ".Tensor"),
        [op](Context& ctx, Values self, Values t1, Values t2, Value scalars) {
          expect_same_length(self, t1);
          expect_same_length(self, t2);
          if (scalars.rank() != 1 || scalars.dim(0) != static_cast<int64_t>(self.size())) {
            throw UserError("Expected length of scalars to match input of length " +
                            std::to_string(self.size()) + " but got " +
                            std::to_string(scalars.numel()) + " instead.");
          }
          return each(self.size(), [&](size_t i) {
            const auto k = static_cast<int64_t>(i);
            return op(ctx, {self[i], t1[i], t2[i],
                            Wrapped{reshape(slice_in_dim(scalars, 0, k, k + 1), {})}});
          });
        });
}

void add_pow(Registry& r) {
  add_binary(r, "pow", "pow.Tensor_Tensor", "pow.Tensor_Scalar");
  r.add("aten::_foreach_pow.ScalarAndTensor",
        [op = Operator(r, "aten::pow.Scalar")](Context& ctx, Arg self, Values exponent) {
          return each(exponent.size(), [&](size_t i) { return op(ctx, {self, exponent[i]}); });
        });
}

void add_lerp(Registry& r) {
  const Operator by_tensor(r, "aten::lerp.Tensor"), by_scalar(r, "aten::lerp.Scalar");
  r.add("aten::_foreach_lerp.List",
        [by_tensor](Context& ctx, Values self, Values end, Values weight) {
          expect_same_length(self, end);
          expect_same_length(self, weight);
          return each(self.size(),
                      [&](size_t i) { return by_tensor(ctx, {self[i], end[i], weight[i]}); });
        });
  r.add("aten::_foreach_lerp.Scalar", [by_scalar](Context& ctx, Values self, Values end,
                                                  Arg weight) {
    expect_same_length(self, end);
    return each(self.size(), [&](size_t i) { return by_scalar(ctx, {self[i], end[i], weight}); });
  });
  r.add("aten::_foreach_lerp.ScalarList",
        [by_scalar](Context& ctx, Values self, Values end, Values weight) {
          expect_same_length(self, end);
          expect_scalar_each(self, weight);
          return each(self.size(), [&](size_t i) {
            return by_scalar(ctx, {self[i], end[i], Wrapped{weight[i]}});
          });
        });
}

void add_norms(Registry& r) {
  const Operator norm(r, "aten::linalg_vector_norm");
  r.add("aten::_foreach_norm.Scalar",
        [norm](Context& ctx, Values self, Number ord, std::optional<DType> dtype) {
          const Arg out = dtype ? Arg(*dtype) : Arg();
          return each(self.size(), [&](size_t i) {
            return norm(ctx, {self[i], ord, Arg(), Number::of(false), out});
          });
        });
  // sum_i |x_i|^ord
  r.add("aten::_foreach_powsum.Scalar", [](Values self, Number ord, std::optional<DType> dtype) {
    return each(self.size(), [&](size_t i) {
      const DType out = hlo::real_type(dtype.value_or(self[i].dtype()));
      Value x = convert(hlo::abs(self[i]), hlo::accumulate_type(out));
      x = ord.to_double() == 2 ? x * x : power(x, hlo::full_like(x, ord.to_double()));
      return convert(sum(x, all_dims(x)), out);
    });
  });
}

}  // namespace

void register_foreach(Registry& r) {
  for (const char* name :
       {"abs",   "acos", "asin",  "atan",       "ceil",  "cos",    "cosh",    "erf",
        "erfc",  "exp",  "expm1", "floor",      "frac",  "lgamma", "log",     "log10",
        "log1p", "log2", "neg",   "reciprocal", "round", "rsqrt",  "sigmoid", "sign",
        "sin",   "sinh", "sqrt",  "tan",        "tanh",  "trunc",  "max"}) {
    add_unary(r, name);
  }
  add_scaled(r, "add");
  add_scaled(r, "sub");
  r.add("aten::_foreach_add.Tensor",
        [op = Operator(r, "aten::add.Tensor")](Context& ctx, Values self, Arg other, Arg alpha) {
          return each(self.size(), [&](size_t i) { return op(ctx, {self[i], other, alpha}); });
        });
  add_binary(r, "mul", "mul.Tensor", "mul.Scalar");
  add_binary(r, "div", "div.Tensor", "div.Scalar");
  for (const char* name : {"mul", "div"}) {
    r.add(aten(std::string("_foreach_") + name + ".Tensor"),
          [op = Operator(r, aten(std::string(name) + ".Tensor"))](Context& ctx, Values self,
                                                                  Arg other) {
            return each(self.size(), [&](size_t i) { return op(ctx, {self[i], other}); });
          });
  }
  add_binary(r, "clamp_max", "clamp_max.Tensor", "clamp_max");
  add_binary(r, "clamp_min", "clamp_min.Tensor", "clamp_min");
  add_binary(r, "maximum", "maximum", "clamp_min");
  add_binary(r, "minimum", "minimum", "clamp_max");
  add_ternary(r, "addcmul");
  add_ternary(r, "addcdiv");
  add_pow(r);
  add_lerp(r);
  add_norms(r);
  r.add("aten::_foreach_mm",
        [op = Operator(r, "aten::mm")](Context& ctx, Values self, Values mat2) {
          expect_same_length(self, mat2);
          return each(self.size(), [&](size_t i) { return op(ctx, {self[i], mat2[i]}); });
        });
  r.add("aten::_foreach_clone", [](Values self, Ignored) { return self; });
  r.add("aten::_foreach_zero", [](Values self) {
    return each(self.size(), [&](size_t i) { return hlo::zeros_like(self[i]); });
  });
  r.add("aten::_foreach_copy", [](Values self, Values src, bool non_blocking) {
    (void)non_blocking;
    expect_same_length(self, src);
    return each(self.size(), [&](size_t i) {
      return hlo::broadcast_to(convert(src[i], self[i].dtype()), self[i].dims());
    });
  });
}

}  // namespace torch_tpu::lower
