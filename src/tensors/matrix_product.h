/// Matrix products on processors for which MKL, LibTorch's library, has no kernels of the full width.
#pragma once

namespace cohort::tensors {

/// From this call on LibTorch's float32 matrix products on the CPU (mm, addmm, and with them linear layers forward and
/// backward) are computed by oneDNN's kernels, which are a part of LibTorch too, if they are the faster ones here: on
/// processors with AVX-512 that are not Intel's, where MKL uses half of the registers' width (Zen 5: oneDNN's are
/// about twice as fast, bench_matrix_product). False, and nothing is changed, elsewhere. The process's first call decides, and is
/// to be made before its threads. on_every_processor: also where MKL is as fast, if it can run there: for tests.
///
/// The variable COHORT_MATRIX_PRODUCTS decides instead of the processor: `mkl` leaves all to MKL, `onednn` takes oneDNN's
/// on every processor with AVX2, and throws Error where it cannot. A run gives the bits of another processor's library so.
///
/// An element is the sum over k in its order, whatever the other rows and columns, the layout and the number of
/// threads: the same bits for a row alone and among others.
bool speed_up_matrix_products(bool on_every_processor = false);

}  // namespace cohort::tensors
