/// LibTorch's elementwise functions before several threads call them at once.
#pragma once

namespace cohort::tensors {

/// Makes the process's first call of MKL's vector mathematics, in the calling thread. To be made before threads compute
/// side by side; every Strategy makes it when it is built. Costs microseconds, however often.
///
/// MKL 2024.2, which is part of LibTorch 2.11, looks up the processor in that call, stores its number in a variable of
/// the process and then, in a second store, the number of the kernels that it means. A thread that makes its own first
/// call in between takes the first number for the second: on an Intel processor with AVX-512 it gets the functions of
/// lowest accuracy, once, for as much as that call computes (tanh 5e-5 off, relative; pytorch issue 188792).
void resolve_vector_math();

}  // namespace cohort::tensors
