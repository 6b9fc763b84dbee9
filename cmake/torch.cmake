# tt_torch: PyTorch's headers and libraries, found beside its Python package. Not find_package(Torch): that looks for CUDA,
# adds compiler flags of its own and takes seconds.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
    "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('torch').origin).parent)"
  OUTPUT_VARIABLE TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_VARIABLE torch_error)
if(NOT EXISTS "${TORCH_DIR}/include/ATen/ATen.h")
  message(FATAL_ERROR "torch not found (${torch_error}). Install it: pip install 'torch>=2.13,<2.14'")
endif()

# Its pybind11 too: the module shares casters and exception translation with PyTorch's.
add_library(tt_torch INTERFACE)
target_include_directories(tt_torch SYSTEM INTERFACE
  "${TORCH_DIR}/include" "${TORCH_DIR}/include/torch/csrc/api/include" ${Python_INCLUDE_DIRS})
foreach(lib torch_python torch torch_cpu c10)
  find_library(TORCH_LIB_${lib} ${lib} PATHS "${TORCH_DIR}/lib" NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(tt_torch INTERFACE "${TORCH_LIB_${lib}}")
endforeach()
