#pragma once
// How many threads kernels may use. Results do not depend on it: work is split by shape only.

namespace glassgrad {

/// Threads that kernels may use; at first what OpenMP offers (OMP_NUM_THREADS, or the cores). 1 in
/// the child of a fork.
int num_threads() noexcept;

/// Throws ValueError unless `count` is at least 1.
void set_num_threads(int count);

}  // namespace glassgrad
