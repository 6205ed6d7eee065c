// Exchange of halos (exchange.h) for arrays that are stored as work_real where the state has another type
#include "signals.h"
#include "halo_rows.h"

KERNEL(copy_work_halo, int i, int j, int k, int boxes, int variables, const long long *box) {
    copy_node<work_real>(i, boxes, box, variables);
}

KERNEL(pack_work_halo, int i, int j, int k, const int *to, const int *giving, const work_real *source,
       long long source_sv, work_real *buffer, int variables, real sign) {
    pack_point(i, to, giving, source, source_sv, buffer, variables, 1, variables, sign);
}

KERNEL(unpack_work_halo, int i, int j, int k, const int *to, const int *giving, const work_real *buffer, int variables,
       work_real *target, long long target_sv) {
    unpack_point(i, to, giving, buffer, variables, 1, variables, target, target_sv);
}

KERNEL(rotate_work_vectors, int i, int j, int k, const int *at, work_real *target, long long target_sv, real rxx,
       real rxy, real rxz, real ryx, real ryy, real ryz, real rzx, real rzy, real rzz) {
    rotate(target + at[i], target_sv, rxx, rxy, rxz, ryx, ryy, ryz, rzx, rzy, rzz);
}

// The following kernels are as in signals.h.
KERNEL(pack_signalled_work_halo, int i, int j, int k, const int *to, const int *giving, const work_real *source,
       long long source_sv, work_real *buffer, long long turn_reals, int variables, real sign, const long long *count) {
    work_real *now = buffer + (count[SIGNALS_RAISED] + 1) % 2 * turn_reals;
    pack_point(i, to, giving, source, source_sv, now, 1, turn_reals / variables, variables, sign);
}

KERNEL(unpack_signalled_work_halo, int i, int j, int k, const int *to, const int *giving, const work_real *buffer,
       long long turn_reals, int variables, work_real *target, long long target_sv, const long long *count) {
    if (!count[SIGNALS_NEW]) return;
    const work_real *now = buffer + count[SIGNALS_RAISED] % 2 * turn_reals;
    unpack_point(i, to, giving, now, 1, turn_reals / variables, variables, target, target_sv);
}

KERNEL(rotate_signalled_work_vectors, int i, int j, int k, const int *at, work_real *target, long long target_sv,
       real rxx, real rxy, real rxz, real ryx, real ryy, real ryz, real rzx, real rzy, real rzz,
       const long long *count) {
    if (count[SIGNALS_NEW]) rotate(target + at[i], target_sv, rxx, rxy, rxz, ryx, ryy, ryz, rzx, rzy, rzz);
}

#ifdef HX_CPU
static hx_shape copy_work_halo_rows_parts(int boxes, int rows, int nodes, int variables, const long long *box) {
    (void)boxes, (void)box;
    return row_parts(rows, nodes, variables);
}

// As copy_halo_rows.
CPU_KERNEL(copy_work_halo_rows, long long begin, long long end, int boxes, int rows, int nodes, int variables,
           const long long *box) {
    (void)nodes, (void)variables;
    copy_rows<work_real>(begin, end, boxes, rows, box);
}
#endif
