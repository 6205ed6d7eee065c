// The part of CUDA that the kernels use, for a host compiler. With this header the CUDA text of every kernel runs on
// the CPU, one thread of the grid after the other. Threads of a block cannot synchronise.

#define __global__ static  // only its launcher calls it, so that no second copy is compiled
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct dim3 {
    int x, y, z;
};

static thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

// Calls kernel() for every thread of the blocks first..last-1 of the grid.
#ifdef HX_CHECKED  // a header with another hx_visit (tests/sanitize_backend.py)
#include HX_CHECKED
#else
template <class Kernel>
static void hx_visit(dim3 grid, dim3 block, long long first, long long last, Kernel kernel) {
    gridDim = grid;
    blockDim = block;
    for (long long b = first; b < last; ++b) {
        blockIdx = {int(b % grid.x), int(b / grid.x % grid.y), int(b / grid.x / grid.y)};
        for (int z = 0; z < block.z; ++z)
            for (int y = 0; y < block.y; ++y)
                for (int x = 0; x < block.x; ++x) {
                    threadIdx = {x, y, z};
                    kernel();
                }
    }
}
#endif
