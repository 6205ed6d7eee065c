// Copies of halos between blocks of one process on a CPU. They do the work of copy_halo row by row, with a fraction of
// its instructions. A row has the nodes of a box along its first direction.
#include "exchange.h"
#ifdef HX_CPU
// Rows that a part copies.
constexpr int ROWS_TOGETHER = 256;

static hx_shape row_parts(int rows, int nodes, int variables) {
    const long long pieces = (rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    return {variables * pieces, pieces ? 1 + 2 * (long long)nodes / pieces : 1};
}

template <class Number>
HD void copy_rows(long long begin, long long end, int boxes, int rows, const long long *box) {
    const long long pieces = (rows + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    const copied_box *last = reinterpret_cast<const copied_box *>(box) + boxes - 1;
    for (long long part = begin; part < end; ++part) {
        const long long v = part / pieces, first = part % pieces * ROWS_TOGETHER;
        const long long stop = rows - first < ROWS_TOGETHER ? rows : first + ROWS_TOGETHER;
        const copied_box *b = &box_of(box, boxes, &copied_box::first, first);
        for (long long row = first; row < stop; ++row) {
            while (b != last && b[1].first <= row) ++b;
            const long long at = row - b->first, n2 = at / b->along[1], n1 = at - n2 * b->along[1];
            const long long *s = b->source_steps, *t = b->target_steps, count = b->along[0];
            const Number *from = reinterpret_cast<const Number *>(b->source) + v * b->source_sv + n1 * s[1] + n2 * s[2];
            Number *to = reinterpret_cast<Number *>(b->target) + v * b->target_sv + n1 * t[1] + n2 * t[2];
            const real sign = real(b->sign);
            if (s[0] != 1 || t[0] != 1)
                for (long long n = 0; n < count; ++n) to[n * t[0]] = sign * from[n * s[0]];
            else if (count == ghost_layers)  // behind i faces: a constant length
                for (int n = 0; n < ghost_layers; ++n) to[n] = sign * from[n];
            else
                for (long long n = 0; n < count; ++n) to[n] = sign * from[n];
        }
    }
}

static hx_shape copy_halo_rows_parts(int boxes, int rows, int nodes, int variables, const long long *box) {
    (void)boxes, (void)box;
    return row_parts(rows, nodes, variables);
}

// As copy_halo. rows, nodes: of all boxes together.
CPU_KERNEL(copy_halo_rows, long long begin, long long end, int boxes, int rows, int nodes, int variables,
           const long long *box) {
    (void)nodes, (void)variables;
    copy_rows<stored_real>(begin, end, boxes, rows, box);
}
#endif
