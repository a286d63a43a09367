"""What PyTorch needs to be at its best on so many threads: its own pool and the one of its BLAS must be
the same. Imported before torch."""

import os
import sys

# The build of OpenBLAS that uses OpenMP, as PyTorch does; with the other one two pools fight.
OPENMP_BLAS = "/usr/lib/x86_64-linux-gnu/openblas-openmp"
# Where a shell holds OpenBLAS to kernels of older processors, a peer would run at half its speed.
HOLD_BACK = "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"


def restart_with(threads):
    """What counts threads and finds libraries reads these variables when it is loaded."""
    wanted = {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    if os.path.isdir(OPENMP_BLAS):
        wanted["LD_LIBRARY_PATH"] = OPENMP_BLAS
    else:
        print("PyTorch is slow on more than one thread: libopenblas0-openmp is not installed",
              file=sys.stderr)
    held_back = [name for name in HOLD_BACK if name in os.environ]
    if held_back or any(os.environ.get(name) != value for name, value in wanted.items()):
        for name in held_back:
            del os.environ[name]
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, *sys.argv])
