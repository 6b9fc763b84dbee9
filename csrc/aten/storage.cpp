// SPDX-License-Identifier: Apache-2.0
#include "aten/storage.h"

#include <sys/mman.h>

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <c10/util/strides.h>

#include <bit>
#include <memory>
#include <mutex>
#include <vector>

#include "aten/allocator.h"
#include "aten/run.h"

namespace torch_tpu::aten {
namespace {

// A cell in the list of live ones, by which an address finds its own.
struct ListedCell : Cell {
  ListedCell *previous = nullptr, *next = nullptr;
};

// Addresses by power-of-two size class, freed ones reused: the range lasts for as long as the
// process lives, and no two live storages share an address.
class AddressSpace {
 public:
  static AddressSpace& global() {
    static auto* space = new AddressSpace();
    return *space;
  }

  // Gives the cell its address.
  void enter(ListedCell& cell) {
    const int c = size_class(cell.nbytes);
    std::lock_guard lock(mutex_);
    if (!free_[c].empty()) {
      cell.address = free_[c].back();
      free_[c].pop_back();
    } else {
      TORCH_CHECK_WITH(OutOfMemoryError, end_ - next_ >= int64_t{1} << c,
                       "tpu out of memory: no address is left for a storage of ", cell.nbytes,
                       " bytes");
      cell.address = next_;
      next_ += int64_t{1} << c;
    }
    cell.next = head_;
    if (head_) head_->previous = &cell;
    head_ = &cell;
  }
  void leave(ListedCell& cell) {
    std::lock_guard lock(mutex_);
    free_[size_class(cell.nbytes)].push_back(cell.address);
    (cell.previous ? cell.previous->next : head_) = cell.next;
    if (cell.next) cell.next->previous = cell.previous;
  }
  // The live cell that the address lies in, or null. Walks all of them: for foreign code that kept
  // only an address.
  ListedCell* find(const void* p) {
    if (p < begin_ || p >= end_) return nullptr;
    std::lock_guard lock(mutex_);
    for (ListedCell* cell = head_; cell; cell = cell->next) {
      const char* first = static_cast<const char*>(cell->address);
      if (p == first || (p > first && p < first + cell->nbytes)) return cell;
    }
    return nullptr;
  }

 private:
  AddressSpace() {
    // 32 TiB of addresses without memory behind them; less where the kernel limits it.
    for (int64_t size = int64_t{1} << 45; size >= int64_t{1} << 38; size >>= 1) {
      void* p = mmap(nullptr, static_cast<size_t>(size), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (p != MAP_FAILED) {
        begin_ = next_ = static_cast<char*>(p);
        end_ = begin_ + size;
        return;
      }
    }
    TORCH_CHECK(false, "tpu: no address range could be reserved (ulimit -v?)");
  }
  static int size_class(int64_t nbytes) {
    return nbytes <= 64 ? 6 : std::bit_width(static_cast<uint64_t>(nbytes - 1));
  }

  std::mutex mutex_;
  ListedCell* head_ = nullptr;
  char *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
  std::vector<void*> free_[64];
};

void delete_cell(void* context) {
  auto* cell = static_cast<ListedCell*>(static_cast<Cell*>(context));
  AddressSpace::global().leave(*cell);
  delete cell;
}

}  // namespace

c10::DataPtr make_data_ptr(Device& device, int64_t nbytes, Array value) {
  auto cell =
      std::make_unique<ListedCell>(ListedCell{{&device, nbytes, nullptr, std::move(value)}});
  AddressSpace::global().enter(*cell);
  void* address = cell->address;
  return {address, static_cast<Cell*>(cell.release()), &delete_cell,
          c10::Device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device.index()))};
}

Cell* cell_of(const c10::Storage& s) {
  const c10::DataPtr& p = s.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  if (p.get_deleter() == &delete_cell) [[likely]]
    return static_cast<Cell*>(p.get_context());
  // PyTorch's storage files write and read through at::from_blob on our address: such a storage is
  // the one it points to.
  Cell* cell = p.device().is_privateuseone() ? AddressSpace::global().find(p.get()) : nullptr;
  TORCH_CHECK(cell && cell->address == p.get(),
              "tpu: this tensor's storage is not on a tpu device or was made by other code");
  return cell;
}

Cell* cell_of(const at::TensorBase& t) {
  return cell_of(t.unsafeGetTensorImpl()->unsafe_storage());
}

c10::DeviceIndex device_of_address(const void* address) {
  const Cell* cell = AddressSpace::global().find(address);
  return cell ? static_cast<c10::DeviceIndex>(cell->device->index()) : c10::DeviceIndex(-1);
}

void resize_storage(const c10::Storage& s, size_t nbytes) {
  c10::StorageImpl* impl = s.unsafeGetStorageImpl();
  Cell* old = cell_of(s);
  const auto size = static_cast<int64_t>(nbytes);
  if (size == old->nbytes) return;
  Array value;
  if (old->value && size > 0 && old->nbytes > 0) value = resized(old->value, size);
  impl->set_data_ptr_noswap(make_data_ptr(*old->device, size, std::move(value)));
  impl->set_nbytes(nbytes);
}

at::Tensor make_tensor(Device& device, at::ScalarType dtype, at::IntArrayRef sizes,
                       at::IntArrayRef strides, Array value) {
  const caffe2::TypeMeta meta = c10::scalarTypeToTypeMeta(dtype);
  const bool contiguous =
      strides.empty() || strides == at::IntArrayRef(c10::contiguous_strides(sizes));
  const int64_t nbytes =
      value ? value->nbytes()
            : static_cast<int64_t>(
                  strides.empty()
                      ? at::detail::computeStorageNbytesContiguous(sizes, meta.itemsize())
                      : at::detail::computeStorageNbytes(sizes, strides, meta.itemsize()));
  if (!value) require_capacity(device, nbytes);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), c10::SymInt(nbytes),
      make_data_ptr(device, nbytes, std::move(value)), &allocator(), /*resizable=*/true);
  at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), meta);
  if (contiguous) {
    t.unsafeGetTensorImpl()->generic_set_sizes_contiguous(sizes);
  } else {
    t.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  }
  return t;
}

hlo::DType to_dtype(at::ScalarType t) {
  using hlo::DType;
  switch (t) {
    case at::kBool:
      return DType::pred;
    case at::kChar:
      return DType::s8;
    case at::kShort:
      return DType::s16;
    case at::kInt:
      return DType::s32;
    case at::kLong:
      return DType::s64;
    case at::kByte:
      return DType::u8;
    case at::kUInt16:
      return DType::u16;
    case at::kUInt32:
      return DType::u32;
    case at::kUInt64:
      return DType::u64;
    case at::kHalf:
      return DType::f16;
    case at::kBFloat16:
      return DType::bf16;
    case at::kFloat:
      return DType::f32;
    case at::kDouble:
      return DType::f64;
    case at::kComplexFloat:
      return DType::c64;
    case at::kComplexDouble:
      return DType::c128;
    case at::kFloat8_e5m2:
      return DType::f8e5m2;
    case at::kFloat8_e4m3fn:
      return DType::f8e4m3fn;
    case at::kFloat8_e5m2fnuz:
      return DType::f8e5m2fnuz;
    case at::kFloat8_e4m3fnuz:
      return DType::f8e4m3fnuz;
    case at::kFloat8_e8m0fnu:
      return DType::f8e8m0fnu;
    default:
      break;
  }
  TORCH_CHECK_TYPE(false, "tpu: unsupported dtype ", t, ": XLA has no such element type");
}

at::ScalarType to_scalar_type(hlo::DType t) {
  using hlo::DType;
  switch (t) {
    case DType::pred:
      return at::kBool;
    case DType::s8:
      return at::kChar;
    case DType::s16:
      return at::kShort;
    case DType::s32:
      return at::kInt;
    case DType::s64:
      return at::kLong;
    case DType::u8:
      return at::kByte;
    case DType::u16:
      return at::kUInt16;
    case DType::u32:
      return at::kUInt32;
    case DType::u64:
      return at::kUInt64;
    case DType::f16:
      return at::kHalf;
    case DType::bf16:
      return at::kBFloat16;
    case DType::f32:
      return at::kFloat;
    case DType::f64:
      return at::kDouble;
    case DType::c64:
      return at::kComplexFloat;
    case DType::c128:
      return at::kComplexDouble;
    case DType::f8e5m2:
      return at::kFloat8_e5m2;
    case DType::f8e4m3fn:
      return at::kFloat8_e4m3fn;
    case DType::f8e5m2fnuz:
      return at::kFloat8_e5m2fnuz;
    case DType::f8e4m3fnuz:
      return at::kFloat8_e4m3fnuz;
    case DType::f8e8m0fnu:
      return at::kFloat8_e8m0fnu;
  }
  TORCH_INTERNAL_ASSERT(false);
}

}  // namespace torch_tpu::aten
