// Sweeps over lines without stored blocks of the nodes beside them (implicit.storage = "none"). The blocks along the
// lines are stored (lines.h).
#pragma once
#include "products.h"

#if HX_STORED_DIRECTIONS
// As add_along (products.h) for the direction of a line of `length` nodes, but only for the neighbours beyond its ends.
// The first node of a T is number `at` of its line, and the nodes of the other lanes are `between` nodes apart (0:
// other lines).
template <class T>
HD void add_beyond(const T *own, const recorded_terms<T> &terms, const real *records, const real *x, stride sv, long long place,
                   const int *beside, int d, int at, int between, int length, real inverse_reynolds, T *sum) {
    const int last = at + (lanes_of<T> - 1) * between;
    T begins, ends;
    for (int lane = 0; lane < lanes_of<T>; ++lane) {
        set_lane(begins, lane, real(at + lane * between == 0));
        set_lane(ends, lane, real(at + lane * between == length - 1));
    }
    if (at == 0) {
        updated_neighbour<T> before(records, x, sv, place, beside[0], d, 0);
        for (int v = 0; v < block_variables; ++v) before.update[v] = begins * before.update[v];
        add_product<0>(own, terms, before, d, inverse_reynolds, sum);
    }
    if (last >= length - 1) {
        updated_neighbour<T> behind(records, x, sv, place, beside[1], d, 1);
        for (int v = 0; v < block_variables; ++v) behind.update[v] = ends * behind.update[v];
        add_product<1>(own, terms, behind, d, inverse_reynolds, sum);
    }
}

// As line_right (lines.h), for nodes without conditions. i counts every second node of a row; for lines along i, i
// counts those of the given parity and j every second row. The range may have a row and a node too many.
VECTOR_KERNEL(product_right, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int direction, int rows,
              int columns, int length, int parity, int first, int colour, stride sv, real inverse_reynolds,
              const_chunked_field<record_numbers> records, const_field<block_variables> right, chunked_field<block_variables> update) {
    const int column = 2 * i + (direction == 0 ? parity : ((direction == 1 ? k : j) + first + colour) & 1);
    const int row = direction == 0 ? 2 * j + ((k + first + colour) & 1) : j;
    // A direction with one node has no ghosts behind it.
    if (row >= rows || (lanes_of<T> == 1 && column >= columns)) return;
    const coloured_node node(o + column + (long long)row * sj + (long long)k * sk, sj, di, dj, dk);
    const long long at = node.at;
    const int apart[3] = {di, dj, dk}, place[3] = {column, row, k};
    T own[record_numbers], sum[block_variables];
    load_record(records, sv, at, own);
    const recorded_terms<T> terms(own);
    for (int v = 0; v < block_variables; ++v) sum[v] = T(real(0));
    ROLLED
    for (int d = 0; d < 3; ++d) {
        if (apart[d] == 0) continue;
        if (d == direction)
            add_beyond(own, terms, records, update, sv, at, node.beside + 2 * d, d, place[d], d == 0 ? 2 : 0, length,
                       inverse_reynolds, sum);
        else
            add_along(own, terms, records, update, sv, at, node.beside + 2 * d, d, inverse_reynolds, sum);
    }
    const T step = own[record_step];
    for (int v = 0; v < block_variables; ++v) sum[v] = load<T>(right + v * sv + at) - step * sum[v];
    store_numbers_where<block_variables>(step > T(real(0)), update, sv, at, sum);
}
#endif
