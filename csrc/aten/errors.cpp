// SPDX-License-Identifier: Apache-2.0
#include "aten/errors.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <sstream>

#include "aten/storage.h"
#include "lower/args.h"
#include "pjrt/error.h"
#include "runtime/device.h"

namespace torch_tpu::aten {
namespace {

void describe(std::ostream& out, const c10::IValue& v) {
  if (v.isTensor()) {
    const at::Tensor& t = v.toTensor();
    if (!t.defined()) {
      out << "None";
      return;
    }
    out << c10::toString(t.scalar_type()) << t.sizes();
    if (!t.device().is_privateuseone()) out << " on " << t.device();
  } else if (v.isList()) {
    out << "[";
    const char* separator = "";
    int n = 0;
    for (const c10::IValue& e : v.toListRef()) {
      out << separator;
      if (++n > 8) {
        out << "...";
        break;
      }
      describe(out, e);
      separator = ", ";
    }
    out << "]";
  } else if (v.isGenerator()) {
    out << "Generator";
  } else {
    out << v;
  }
}

// dtype, layout and memory format, which are integers in an IValue.
bool describe_name(std::ostream& out, const c10::IValue& v, const c10::Type& type) {
  if (!v.isInt()) return false;
  if (const auto* optional = type.castRaw<c10::OptionalType>())
    return describe_name(out, v, *optional->getElementType());
  const int64_t n = v.toInt();
  switch (type.kind()) {
    case c10::TypeKind::ScalarTypeType:
      out << "torch." << c10::getDtypeNames(static_cast<at::ScalarType>(n)).first;
      return true;
    case c10::TypeKind::LayoutType:
      out << static_cast<at::Layout>(n);
      return true;
    case c10::TypeKind::MemoryFormatType:
      out << static_cast<at::MemoryFormat>(n);
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string describe_arguments(const c10::FunctionSchema& schema, const c10::IValue* args,
                               size_t num_args) {
  std::ostringstream out;
  const char* separator = "";
  for (size_t i = 0; i < num_args && i < schema.arguments().size(); ++i) {
    const bool tensors =
        args[i].isTensor() || args[i].isTensorList() || (args[i].isList() && !args[i].isIntList());
    if (args[i].isNone()) continue;
    out << separator;
    if (!tensors) out << schema.arguments()[i].name() << "=";
    if (!describe_name(out, args[i], *schema.arguments()[i].real_type())) describe(out, args[i]);
    separator = ", ";
  }
  return out.str();
}

void not_implemented(const c10::FunctionSchema& schema, const c10::IValue* args, size_t num_args,
                     const std::string& why) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, schema.operator_name(), " is not implemented for tpu: got ",
                              describe_arguments(schema, args, num_args), ".",
                              why.empty() ? "" : " " + why + ".",
                              " To run it on the CPU, slowly, set TORCH_TPU_HOST_FALLBACK=1 or use "
                              "`with torch.tpu.allow_host_fallback():`.");
}

void refuse_dtypes(const hlo::DTypeError& e, const c10::FunctionSchema& schema,
                   const c10::IValue* args, size_t num_args) {
  c10::SmallVector<at::ScalarType, 4> dtypes;
  const auto add = [&](const c10::IValue& v) {
    if (v.isTensor() && v.toTensor().defined()) dtypes.push_back(v.toTensor().scalar_type());
  };
  for (size_t i = 0; i < num_args; ++i) {
    if (args[i].isList())
      for (const c10::IValue& v : args[i].toListRef()) add(v);
    else
      add(args[i]);
  }
  if (dtypes.empty()) return;
  if (e.differ()) {
    for (const at::ScalarType t : dtypes)
      TORCH_CHECK(t == dtypes[0], "expected scalar type ", dtypes[0], " but found ", t);
    return;
  }
  std::string_view kernel = schema.name();
  kernel.remove_prefix(kernel.find("::") + 2);
  // Of the call's dtypes the one that the operation met; the first if it is one that the lowering
  // made.
  at::ScalarType met = dtypes[0];
  for (const at::ScalarType t : dtypes)
    if (to_dtype(t) == e.dtype()) met = t;
  TORCH_CHECK_NOT_IMPLEMENTED(false, '"', kernel, "\" not implemented for '", met, "'");
}

void rethrow(const std::string& what) {
  try {
    throw;
  } catch (const c10::Error&) {
    throw;
  } catch (const lower::UserError& e) {
    using Kind = lower::UserError::Kind;
    switch (e.kind()) {
      case Kind::index:
        TORCH_CHECK_INDEX(false, e.what());
      case Kind::type:
        TORCH_CHECK_TYPE(false, e.what());
      case Kind::value:
        TORCH_CHECK_VALUE(false, e.what());
      case Kind::not_implemented:
        TORCH_CHECK_NOT_IMPLEMENTED(false, e.what());
      case Kind::runtime:
        TORCH_CHECK(false, e.what());
    }
    throw;
  } catch (const runtime::CheckFailed& e) {
    // hlo::Builder::check: an index error unless its message says otherwise.
    constexpr std::string_view runtime_error = "RuntimeError: ", linalg_error = "LinAlgError: ";
    const std::string_view text = e.what();
    TORCH_CHECK_LINALG(!text.starts_with(linalg_error), text.substr(linalg_error.size()));
    TORCH_CHECK(!text.starts_with(runtime_error), text.substr(runtime_error.size()));
    TORCH_CHECK_INDEX(false, text);
  } catch (const pjrt::Error& e) {
    TORCH_CHECK_WITH(OutOfMemoryError, e.code() != pjrt::Code::resource_exhausted,
                     "tpu: out of memory: ", what, ": ", e.what());
    TORCH_CHECK_NOT_IMPLEMENTED(e.code() != pjrt::Code::unimplemented, what, ": ", e.what());
    TORCH_CHECK(false, what, ": ", e.what());
  } catch (const hlo::Error& e) {
    TORCH_CHECK(false, "tpu: internal error in the lowering of ", what, ": ", e.what(),
                ". Please report this with the call that made it.");
  } catch (const std::out_of_range& e) {
    TORCH_CHECK(false, e.what());
  } catch (const std::logic_error& e) {
    TORCH_CHECK(false, "tpu: internal error in ", what, ": ", e.what());
  } catch (const std::bad_alloc&) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "tpu: out of host memory in ", what);
  }
  // Anything else (Python exceptions on their way through) keeps its type.
  throw;
}

}  // namespace torch_tpu::aten
