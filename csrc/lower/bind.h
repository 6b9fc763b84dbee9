// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "lower/entry.h"

// Turns a typed lowering function into an Entry: the parameter types say how each argument of the
// schema is prepared.
//
//   Value                         tensor, or Python number as run-time operand
//   std::optional<Value>          the same or None
//   Values                        list of tensors (null Values stand for None)
//   int64_t double bool Number std::string DType Dims std::vector<double> std::vector<bool>
//   std::vector<Number>
//                                 static; and std::optional of each
//   Arg                           tensor or number as it came: for a lowering that chooses its
//   promotion itself Ignored                       layout, device, pin_memory, memory_format,
//   generator
//
// Results: Value, std::pair or std::tuple of Value, or Values.
namespace torch_tpu::lower {

struct Ignored {};

[[noreturn]] void bad_argument(size_t position, const char* wanted, const Arg& got);

template <class T>
struct Unpack;

template <>
struct Unpack<Value> {
  static constexpr bool is_operand = true;
  static Value get(const Arg& a, size_t i) {
    if (auto* v = std::get_if<Value>(&a)) return *v;
    if (auto* w = std::get_if<Wrapped>(&a)) return w->value;
    bad_argument(i, "tensor", a);
  }
};
template <>
struct Unpack<Arg> {
  static constexpr bool is_operand = true;
  static Arg get(const Arg& a, size_t) { return a; }
};
template <>
struct Unpack<Values> {
  static constexpr bool is_operand = true;
  static Values get(const Arg& a, size_t i) {
    if (auto* v = std::get_if<Values>(&a)) return *v;
    if (auto* w = std::get_if<WrappedList>(&a)) return w->values;
    if (auto* d = std::get_if<Dims>(&a); d && d->empty()) return {};  // an empty list has no type
    bad_argument(i, "list of tensors", a);
  }
};
template <>
struct Unpack<Ignored> {
  static constexpr bool is_operand = false;
  static Ignored get(const Arg&, size_t) { return {}; }
};
template <>
struct Unpack<Number> {
  static constexpr bool is_operand = false;
  static Number get(const Arg& a, size_t i) {
    if (auto* n = std::get_if<Number>(&a)) return *n;
    bad_argument(i, "number", a);
  }
};
template <>
struct Unpack<int64_t> {
  static constexpr bool is_operand = false;
  static int64_t get(const Arg& a, size_t i) { return Unpack<Number>::get(a, i).to_int(); }
};
template <>
struct Unpack<double> {
  static constexpr bool is_operand = false;
  static double get(const Arg& a, size_t i) { return Unpack<Number>::get(a, i).to_double(); }
};
template <>
struct Unpack<bool> {
  static constexpr bool is_operand = false;
  static bool get(const Arg& a, size_t i) { return Unpack<Number>::get(a, i).to_bool(); }
};
template <class T>
struct UnpackExact {
  static constexpr bool is_operand = false;
  static T get(const Arg& a, size_t i, const char* wanted) {
    if (auto* v = std::get_if<T>(&a)) return *v;
    if constexpr (!std::is_same_v<T, Dims> && requires(T t) {
                    t.clear();
                    t.push_back({});
                  }) {
      if (auto* d = std::get_if<Dims>(&a); d && d->empty()) return {};
    }
    bad_argument(i, wanted, a);
  }
};
template <>
struct Unpack<std::string> : UnpackExact<std::string> {
  static std::string get(const Arg& a, size_t i) { return UnpackExact::get(a, i, "string"); }
};
template <>
struct Unpack<DType> : UnpackExact<DType> {
  static DType get(const Arg& a, size_t i) { return UnpackExact::get(a, i, "dtype"); }
};
template <>
struct Unpack<Dims> : UnpackExact<Dims> {
  static Dims get(const Arg& a, size_t i) {
    if (auto* n = std::get_if<Number>(&a)) return {n->to_int()};  // int[1] given as int
    return UnpackExact::get(a, i, "list of integers");
  }
};
template <>
struct Unpack<std::vector<double>> : UnpackExact<std::vector<double>> {
  static std::vector<double> get(const Arg& a, size_t i) {
    return UnpackExact::get(a, i, "list of floats");
  }
};
template <>
struct Unpack<std::vector<bool>> : UnpackExact<std::vector<bool>> {
  static std::vector<bool> get(const Arg& a, size_t i) {
    return UnpackExact::get(a, i, "list of bools");
  }
};
template <>
struct Unpack<std::vector<Number>> : UnpackExact<std::vector<Number>> {
  static std::vector<Number> get(const Arg& a, size_t i) {
    return UnpackExact::get(a, i, "list of numbers");
  }
};
template <class T>
struct Unpack<std::optional<T>> {
  static constexpr bool is_operand = Unpack<T>::is_operand;
  static std::optional<T> get(const Arg& a, size_t i) {
    if (std::holds_alternative<std::monostate>(a)) return std::nullopt;
    return Unpack<T>::get(a, i);
  }
};

inline Values to_values(Value v) { return {v}; }
inline Values to_values(Values v) { return v; }
template <class... T>
Values to_values(const std::tuple<T...>& t) {
  return std::apply([](const auto&... v) { return Values{v...}; }, t);
}
inline Values to_values(const std::pair<Value, Value>& p) { return {p.first, p.second}; }

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using Params = std::tuple<std::decay_t<P>...>;
};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...)> : Signature<R (*)(P...)> {};

Entry make_entry(std::string name, std::vector<bool> is_operand,
                 std::function<Values(Context&, const Args&)> call);
void expect_count(size_t wanted, size_t got);

template <class F, class... P>
Entry bind_params(std::string name, F f, std::type_identity<std::tuple<P...>>) {
  auto call = [f = std::move(f)](Context&, const Args& args) -> Values {
    expect_count(sizeof...(P), args.size());
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return to_values(f(Unpack<P>::get(args[I], I)...));
    }(std::index_sequence_for<P...>{});
  };
  return make_entry(std::move(name), {Unpack<P>::is_operand...}, std::move(call));
}
template <class F, class... P>
Entry bind_params(std::string name, F f, std::type_identity<std::tuple<Context, P...>>) {
  auto call = [f = std::move(f)](Context& ctx, const Args& args) -> Values {
    expect_count(sizeof...(P), args.size());
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return to_values(f(ctx, Unpack<P>::get(args[I], I)...));
    }(std::index_sequence_for<P...>{});
  };
  return make_entry(std::move(name), {Unpack<P>::is_operand...}, std::move(call));
}

template <class F>
Entry bind(std::string name, F f) {
  return bind_params(std::move(name), std::move(f),
                     std::type_identity<typename Signature<F>::Params>{});
}

}  // namespace torch_tpu::lower
