// Ghosts of tiles, interpolated from the next coarser level (hiresx/exchange/level_ghosts.py). They form boxes, and the
// weights are products of weights along each direction. A first kernel interpolates along the normal of the face, at
// the nodes along the face that a second kernel reads. The second kernel interpolates along the face.
//
// Column c of the lists has its first node at start[c] in the part. weights[(2, 6)][columns]: of the sixth-order and of
// the linear interpolation. layers[variables][n]: the values between both kernels.
#include "boxes.h"
#include "interpolated.h"

// A box of ghosts in the lists. ghosts, values: number of its first ghost, and of its first value between the kernels.
// columns, first_column: number of ghosts and column of the first one, along both directions of the face. width, first:
// number of nodes that are read along these directions, and the first node. layer, step: column of the first layer, and
// distance to that of the next. origin: flat index of the first node that is read, with node 0 along the normal. normal,
// across: strides of the nodes along the normal and along both directions of the face, which in a turned block may be
// negative. part: number of the part that is read, a row of the table of parts.
struct level_box {
    int ghosts, values, normal, across[2], origin, layer, step, part;
    int columns[2], first_column[2], width[2], first[2];
};

// Addresses of the arrays of a part, of which fluxes need two, metrics and fluxes; stride between variables; numbers of
// weights along j and k.
struct level_part {
    long long array, second, sv, wj, wk;
};

// A linear function of the indexes in a box: `value` at the first node, and `steps` from node to node along three
// directions. along: nodes of the box along the first two. The nodes from number `first` on, counted over all boxes,
// fill the places `place`, `place` + `apart`, ... of a list.
struct list_box {
    int first, place, apart, value, along[2], steps[3];
};

// Entries that a point sets, since the search for the first box takes longer than an entry.
constexpr int entries_at_once = 32;

KERNEL(fill_lists, int i, int j, int k, int boxes, int entries, const int *box, int *lists) {
    const int begin = entries_at_once * i, end = entries - begin < entries_at_once ? entries : begin + entries_at_once;
    const list_box *b = &box_of(box, boxes, &list_box::first, begin);
    const list_box *last = reinterpret_cast<const list_box *>(box) + boxes - 1;
    for (int n = begin; n < end; ++n) {
        while (b != last && b[1].first <= n) ++b;
        const int at = n - b->first, row = at / b->along[0], layer = row / b->along[1];
        lists[b->place + at * b->apart] = b->value + (at - row * b->along[0]) * b->steps[0] +
                                          (row - layer * b->along[1]) * b->steps[1] + layer * b->steps[2];
    }
}

// For a value between the kernels: the column of its layer, the first node that is read, the stride to the next, and
// the part.
struct level_line {
    int column, node, along;
    const level_part &part;
};

HD level_line line_of(const int *box, int boxes, const long long *part, const int *start, int i) {
    const level_box &b = box_of(box, boxes, &level_box::values, i);
    const level_part &own = reinterpret_cast<const level_part *>(part)[b.part];
    const int at = i - b.values, row = at / b.width[0], layer = row / b.width[1], column = b.layer + layer * b.step;
    const int node = b.origin + (at - row * b.width[0]) * b.across[0] + (row - layer * b.width[1]) * b.across[1];
    return {column, node + start[column] * b.normal, b.normal, own};
}

// The sixth-order values of the state between the kernels, then the linear ones.
KERNEL(level_layers, int i, int j, int k, int n, int boxes, int columns, const int *box, const long long *part,
       const int *start, const real *weights, real *layers) {
    const level_line line = line_of(box, boxes, part, start, i);
    const const_state_pointer q = reinterpret_cast<const stored_real *>(line.part.array);
    const stride sv = line.part.sv;
    real value[2 * conserved_variables];
    for (int v = 0; v < 2 * conserved_variables; ++v) value[v] = real(0);
    for (int a = 0; a < 6; ++a) {
        const real high = weights[a * columns + line.column], low = weights[(6 + a) * columns + line.column];
        if (high == real(0) && low == real(0)) continue;
        const auto p = q + line.node + (long long)a * line.along;
        for (int v = 0; v < conserved_variables; ++v) {
            const real own = p[v * sv];
            value[v] += high * own, value[conserved_variables + v] += low * own;
        }
    }
    for (int v = 0; v < 2 * conserved_variables; ++v) layers[(long long)v * n + i] = value[v];
}

// The same for viscous fluxes through planes of constant x, y and z (patched_flux).
KERNEL(level_flux_layers, int i, int j, int k, int n, int boxes, int columns, const int *box, const long long *part,
       const int *start, const real *weights, real *layers) {
    constexpr int variables = 3 * gradient_variables;
    const level_line line = line_of(box, boxes, part, start, i);
    const level_part &own = line.part;
    const work_real *m = reinterpret_cast<const work_real *>(own.array);
    const work_real *flux = reinterpret_cast<const work_real *>(own.second);
    real value[variables];
    for (int v = 0; v < variables; ++v) value[v] = real(0);
    for (int a = 0; a < 6; ++a) {
        const real high = weights[a * columns + line.column];
        if (high == real(0)) continue;
        const long long p = line.node + (long long)a * line.along;
        add_cartesian_fluxes(high, p, int(own.wj), int(own.wk), own.sv, m, flux, value);
    }
    for (int v = 0; v < variables; ++v) layers[(long long)v * n + i] = value[v];
}

// Linear values of a field, whose number of variables is `variables`.
KERNEL(level_field_layers, int i, int j, int k, int n, int boxes, int columns, const int *box, const long long *part,
       const int *start, const real *weights, int variables, real *layers) {
    const level_line line = line_of(box, boxes, part, start, i);
    const work_real *field = reinterpret_cast<const work_real *>(line.part.array);
    for (int v = 0; v < variables; ++v) {
        real value = real(0);
        for (int a = 0; a < 6; ++a) {
            const real low = weights[(6 + a) * columns + line.column];
            if (low != real(0)) value += low * field[v * line.part.sv + line.node + (long long)a * line.along];
        }
        layers[(long long)v * n + i] = value;
    }
}

// Adds to value[0..variables-1] of a ghost the sums of the layers, with the weights `first` and `second` along both
// directions of the face.
template <int variables>
HD void add_along_face(const real *first, const real *second, int columns, int width, int n, const real *layers,
                       real *value) {
    real weight[6];
    UNROLLED for (int a = 0; a < 6; ++a) weight[a] = first[a * columns];
    ROLLED for (int b = 0; b < 6; ++b) {
        const real across = second[b * columns];
        if (across == real(0)) continue;
        real sum[variables];
        UNROLLED for (int v = 0; v < variables; ++v) sum[v] = real(0);
        UNROLLED for (int a = 0; a < 6; ++a)
            if (weight[a] != real(0))
                UNROLLED for (int v = 0; v < variables; ++v)
                    sum[v] += weight[a] * layers[(long long)v * n + b * width + a];
        UNROLLED for (int v = 0; v < variables; ++v) value[v] += across * sum[v];
    }
}

// For a ghost: its columns along the face, the place of the first value that it reads, and the width of a row of
// values.
struct level_ghost {
    int first, second, place, width;
};

HD level_ghost ghost_of(const int *box, int boxes, const int *start, int i) {
    const level_box &b = box_of(box, boxes, &level_box::ghosts, i);
    const int at = i - b.ghosts, row = at / b.columns[0], layer = row / b.columns[1];
    const int first = b.first_column[0] + at - row * b.columns[0];
    const int second = b.first_column[1] + row - layer * b.columns[1];
    const int line = layer * b.width[1] + start[second] - b.first[1];
    return {first, second, b.values + line * b.width[0] + start[first] - b.first[0], b.width[0]};
}

// Contributions to the state, of c conserved variables: buffer[to[i]][0..c-1] takes the sixth-order value, [c..2c-1]
// the linear one.
KERNEL(level_shares, int i, int j, int k, int n, int boxes, int columns, const int *box, const int *start, const int *to,
       const real *weights, const real *layers, real *buffer) {
    constexpr int variables = conserved_variables;
    const level_ghost ghost = ghost_of(box, boxes, start, i);
    ROLLED for (int set = 0; set < 2; ++set) {
        const real *w = weights + (long long)set * 6 * columns;
        real value[variables];
        for (int v = 0; v < variables; ++v) value[v] = real(0);
        add_along_face<variables>(w + ghost.first, w + ghost.second, columns, ghost.width, n,
                                  layers + (long long)set * variables * n + ghost.place, value);
        real *out = buffer + (2LL * to[i] + set) * variables;
        for (int v = 0; v < variables; ++v) out[v] = value[v];
    }
}

// Contributions to the viscous fluxes, in the form of patched_flux.
KERNEL(level_flux_shares, int i, int j, int k, int n, int boxes, int columns, const int *box, const int *start,
       const int *to, const real *weights, const real *layers, real *buffer) {
    constexpr int variables = 3 * gradient_variables;
    const level_ghost ghost = ghost_of(box, boxes, start, i);
    real value[variables];
    for (int v = 0; v < variables; ++v) value[v] = real(0);
    add_along_face<variables>(weights + ghost.first, weights + ghost.second, columns, ghost.width, n,
                              layers + ghost.place, value);
    for (int v = 0; v < variables; ++v) buffer[(long long)to[i] * variables + v] = value[v];
}

// Contributions to a field, in the form of patched_field.
KERNEL(level_field_shares, int i, int j, int k, int n, int boxes, int columns, const int *box, const int *start,
       const int *to, const real *weights, const real *layers, int variables, real *buffer) {
    const level_ghost ghost = ghost_of(box, boxes, start, i);
    const real *w = weights + 6 * columns;
    for (int v = 0; v < variables; ++v) {
        real value = real(0);
        add_along_face<1>(w + ghost.first, w + ghost.second, columns, ghost.width, n,
                          layers + (long long)v * n + ghost.place, &value);
        buffer[(long long)to[i] * variables + v] = value;
    }
}
