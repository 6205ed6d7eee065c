// Halos whose arrival is signalled from device to device: after packing, a rank increments a number in the memory of
// the rank that waits for it. No host is involved, so exchanges may be part of a CUDA graph.
//
// count: the number of exchanges raised, the number awaited, and whether the last wait found a new one. There are two
// buffers, `turn_reals` apart; exchange n uses buffer n mod 2 (hiresx/exchange/transport.py says why two are enough).
//
// order: an array that all kernels of a rank which raise or await signals share. They have nothing else in common, and
// launches that do not depend on each other may be reordered, differently on each rank. Two ranks could then each wait
// for what the other raises later. With the shared array all ranks keep the order in which the kernels were launched.
#include "exchange.h"

#if !defined(__CUDA_ARCH__)
#include <sched.h>
#endif
enum { SIGNALS_RAISED, SIGNALS_AWAITED, SIGNALS_NEW };

// Distance of flags, in numbers of type long long: each flag has its own cache line.
enum { SIGNAL_STRIDE = 8 };

// Sets `flag` to `number`. A reader on any device that sees this number also sees all that was written before.
HD void signal_raise(long long *flag, long long number) {
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    *(volatile long long *)flag = number;
#else
    __atomic_store_n(flag, number, __ATOMIC_RELEASE);
#endif
}

HD void signal_await(const long long *flag, long long number) {
#if defined(__CUDA_ARCH__)
    while (*(const volatile long long *)flag < number) {}
    __threadfence_system();
#else
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < number) sched_yield();
#endif
}

// pack_halo into the buffer of the next exchange. The buffer holds all points of one variable after the other, so that
// neighbouring threads read and write neighbouring numbers, which matters most between two GPUs.
KERNEL(pack_signalled_halo, int i, int j, int k, const int *to, const int *giving, const stored_real *source,
       long long source_sv, stored_real *buffer, long long turn_reals, int variables, real sign,
       const long long *count) {
    stored_real *now = buffer + (count[SIGNALS_RAISED] + 1) % 2 * turn_reals;
    pack_point(i, to, giving, source, source_sv, now, 1, turn_reals / variables, variables, sign);
}

// One thread: signals that the packed numbers may be read. `flags`: addresses of this rank's flag in the memory of
// every peer.
KERNEL(raise_signals, int i, int j, int k, int peers, const long long *flags, long long *count, int *order) {
    const long long number = count[SIGNALS_RAISED] + 1;
    for (int p = 0; p < peers; ++p) signal_raise((long long *)flags[p], number);
    count[SIGNALS_RAISED] = number;
    order[0] += 1;
}

// One thread: waits until the ranks `ranks` have raised the exchange that this rank raised last, unless that was
// awaited before.
KERNEL(await_signals, int i, int j, int k, int peers, const int *ranks, const long long *flags, long long *count,
       int *order) {
    const long long number = count[SIGNALS_RAISED];
    count[SIGNALS_NEW] = count[SIGNALS_AWAITED] < number;
    for (int p = 0; p < peers; ++p) signal_await(flags + SIGNAL_STRIDE * ranks[p], number);
    count[SIGNALS_AWAITED] = number;
    order[0] += 1;
}

// unpack_halo from the buffer of the last exchange, if it holds new numbers.
KERNEL(unpack_signalled_halo, int i, int j, int k, const int *to, const int *giving, const stored_real *buffer,
       long long turn_reals, int variables, stored_real *target, long long target_sv, const long long *count) {
    if (!count[SIGNALS_NEW]) return;
    const stored_real *now = buffer + count[SIGNALS_RAISED] % 2 * turn_reals;
    unpack_point(i, to, giving, now, 1, turn_reals / variables, variables, target, target_sv);
}

// rotate_vectors for vectors that were just unpacked.
KERNEL(rotate_signalled_vectors, int i, int j, int k, const int *at, stored_real *target, long long target_sv, real rxx,
       real rxy, real rxz, real ryx, real ryy, real ryz, real rzx, real rzy, real rzz, const long long *count) {
    if (count[SIGNALS_NEW]) rotate(target + at[i], target_sv, rxx, rxy, rxz, ryx, ryy, ryz, rzx, rzy, rzz);
}

// One thread: writes the largest radii of this rank's blocks (see choose_step) into the memory that all ranks read, for
// the next exchange. offered: two buffers of two numbers, used in turn.
KERNEL(offer_radii, int i, int j, int k, int blocks, const int *few, const real *radii, double *offered,
       const long long *count) {
    double *most = offered + 2 * ((count[SIGNALS_RAISED] + 1) % 2);
    for (int r = 0; r < 2; ++r) {
        real found = real(0);
        for (int b = 0; b < blocks; ++b)
            for (int l = 0; l < few[b]; ++l) {
                const real radius = radii[64 * b + r * few[b] + l];
                if (radius > found || radius != radius) found = radius;  // a NaN wins, and stays
            }
        most[r] = double(found);
    }
}

// Copies the radii of rank i from the address offers[i] to where choose_step reads them as those of block i, with
// few[i] = 1.
KERNEL(gather_radii, int i, int j, int k, const long long *offers, real *radii, const long long *count) {
    const double *most = (const double *)offers[i] + 2 * (count[SIGNALS_RAISED] % 2);
    for (int r = 0; r < 2; ++r) radii[64 * i + r] = real(most[r]);
}

// Writes sum i = group * quantities + q over this rank's rows of that group into the memory that all ranks read, for
// the next exchange. sums[row][quantity][term]; offered: two buffers of `values` numbers, used in turn.
KERNEL(offer_sums, int i, int j, int k, int rows, int quantities, int terms, const int *group_of_row, const real *sums,
       int values, double *offered, const long long *count) {
    double sum = 0.0;
    for (int row = 0; row < rows; ++row) {
        const real *own = sums + ((long long)row * quantities + i % quantities) * terms;
        for (int l = 0; l < terms && group_of_row[row] == i / quantities; ++l) sum += double(own[l]);
    }
    offered[(count[SIGNALS_RAISED] + 1) % 2 * values + i] = sum;
}

// Adds the sums of all ranks, in the order of the ranks.
KERNEL(gather_sums, int i, int j, int k, int ranks, const long long *offers, int values, real *result,
       const long long *count) {
    double sum = 0.0;
    for (int rank = 0; rank < ranks; ++rank)
        sum += ((const double *)offers[rank])[count[SIGNALS_RAISED] % 2 * values + i];
    result[i] = real(sum);
}
