/// LibTorch's arithmetic on this machine's processor, before several threads compute.
#pragma once

namespace cohort::tensors {

/// To be called before threads compute side by side; every Strategy does when it is built. Costs microseconds, however
/// often.
///
/// Makes the process's first call of MKL's vector mathematics, in the calling thread: MKL 2024.2, which is part of LibTorch
/// 2.11, looks up the processor in that call, stores its number in a variable of the process and then, in a second
/// store, the number of the kernels that it means. A thread that makes its own first call in between takes the first
/// number for the second: on an Intel processor with AVX-512 it gets the functions of lowest accuracy, once, for as much
/// as that call computes (tanh 5e-5 off, relative; pytorch issue 188792).
///
/// And calls speed_up_matrix_products() (matrix_product.h).
void prepare_arithmetic();

/// For processes of our own, not for those of others that we are a library of. glibc gives freed blocks of more than 32 MiB back to
/// the system, which clears every page of them again in the next step: a fifth of the time of a step with large batches
/// of pictures. From here on they stay with the process, which at its peak is 2 to 3 % larger.
void keep_freed_memory();

}  // namespace cohort::tensors
