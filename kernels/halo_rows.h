// Copies of halos between blocks of one process on a CPU, by rows of nodes that are contiguous at both ends
// (hiresx/exchange/rows.py). They do the work of copy_halo, which copies single nodes by lists, with a fraction of its
// instructions.
#ifdef HX_CPU
// Rows that a part copies.
constexpr int ROWS_TOGETHER = 256;

static hx_shape row_parts(int count, int nodes, int variables) {
    const long long pieces = (count + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    return {variables * pieces, pieces ? 1 + 2 * (long long)nodes / pieces : 1};
}

template <class Number>
HD void copy_rows(long long begin, long long end, const int *rows, int count, const Number *source, long long source_sv,
                  Number *target, long long target_sv, real sign) {
    const long long pieces = (count + ROWS_TOGETHER - 1) / ROWS_TOGETHER;
    for (long long part = begin; part < end; ++part) {
        const long long v = part / pieces;
        const int first = int(part % pieces) * ROWS_TOGETHER, left = count - first;
        const int *row = rows + 3 * (long long)first, *last = row + 3 * (left < ROWS_TOGETHER ? left : ROWS_TOGETHER);
        for (; row < last; row += 3) {
            Number *to = target + v * target_sv + row[0];
            const Number *from = source + v * source_sv + row[1];
            if (row[2] == ghost_layers)  // behind i faces: a constant length
                for (int n = 0; n < ghost_layers; ++n) to[n] = sign * from[n];
            else
                for (int n = 0; n < row[2]; ++n) to[n] = sign * from[n];
        }
    }
}

static hx_shape copy_halo_rows_parts(const int *rows, int count, int nodes, int variables, const stored_real *source,
                                     long long source_sv, stored_real *target, long long target_sv, real sign) {
    (void)rows, (void)source, (void)source_sv, (void)target, (void)target_sv, (void)sign;
    return row_parts(count, nodes, variables);
}

// target[v][to + n] = sign * source[v][from + n], n < length, for every variable v and row (to, from, length). count:
// number of rows; nodes: of all rows together.
CPU_KERNEL(copy_halo_rows, long long begin, long long end, const int *rows, int count, int nodes, int variables,
           const stored_real *source, long long source_sv, stored_real *target, long long target_sv, real sign) {
    (void)nodes, (void)variables;
    copy_rows(begin, end, rows, count, source, source_sv, target, target_sv, sign);
}
#endif
