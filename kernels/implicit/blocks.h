// The first-order Jacobian of the right-hand side: one block of 5 x 5 (one row and column more for each scalar and each
// variable of a turbulence model) for a node and for each of its neighbours along the grid lines. It contains the
// chosen numerical flux between the states of two nodes, the thin-layer viscous flux between them, and the terms of the
// model.
#pragma once
#include "flux_columns.h"
#include "neighbours.h"

// The kind of neighbour on each of the six sides of a node (imin, imax, jmin, ...), two bits each; 0: a node of the
// grid
constexpr int side_given = 1, side_mirror = 2, side_wall = 3;

// block = block M, where M mirrors about the plane normal to m, or with `reversed` reverses the velocity (no-slip
// wall).
HD void mirror_columns(const real *m, bool reversed, real *block) {
    const real twice = real(2) / (m[0] * m[0] + m[1] * m[1] + m[2] * m[2]);
    for (int a = 0; a < block_variables; ++a) {
        real *row = block + a * block_variables;
        const real along = row[1] * m[0] + row[2] * m[1] + row[3] * m[2];
        for (int c = 0; c < 3; ++c) row[c + 1] = reversed ? -row[c + 1] : row[c + 1] - twice * along * m[c];
    }
}

// The parts of the blocks of a node that do not come from the fluxes through its faces: derivatives of the sources of a
// turbulence model by the node and by its neighbours, quantities that the model takes as constants, and the eddy
// viscosity. If T is a pack, it holds one node per lane.
template <class T> struct node_terms {
    TransportedConstants<T> known;
    T eddies = T(real(0));
#if HX_TRANSPORTED
    T own[source_entries], along[6][source_entries];
#endif
    HD node_terms(const_state_pointer q, const work_real *m, const work_real *jacobian, const work_real *wall_distance,
                  const work_real *grid_spacings, const work_real *of_eddies, long long p, stride sv, const int *apart,
                  real inverse_reynolds) {
#if HX_TRANSPORTED
        T constants[transported_constants + 1];
        for (int lane = 0; lane < lanes_of<T>; ++lane) {
            real by_own[source_entries], by_others[6][source_entries], of_lane[transported_constants + 1];
            transported_derivatives(q, m, jacobian, p + lane, sv, apart, wall_distance, grid_spacings, inverse_reynolds, by_own,
                                    by_others)
                .put_numbers(of_lane);
            for (int c = 0; c < transported_constants; ++c) set_lane(constants[c], lane, of_lane[c]);
            for (int e = 0; e < source_entries; ++e) {
                set_lane(own[e], lane, by_own[e]);
                for (int side = 0; side < 6; ++side) set_lane(along[side][e], lane, by_others[side][e]);
            }
        }
        known.take_numbers(constants);
#else
        (void)q, (void)m, (void)jacobian, (void)wall_distance, (void)grid_spacings, (void)sv, (void)apart, (void)inverse_reynolds;
#endif
#if HX_EDDY_FIELDS
        eddies = load<T>(of_eddies + p);
#else
        (void)of_eddies, (void)p;
#endif
    }
    // block = block - share (derivatives of the sources by the node, or by the neighbour on one side)
    HD void take_own(T share, T *block) const {
#if HX_TRANSPORTED
        take_transported(own, share, block);
#else
        (void)share, (void)block;
#endif
    }
    HD void take_along(int side, T share, T *block) const {
#if HX_TRANSPORTED
        take_transported(along[side], share, block);
#else
        (void)side, (void)share, (void)block;
#endif
    }
};

// Stores numbers of the nodes that the lanes of a T hold, the first at p, at the positions of their blocks; nodes with
// conditions are left out. row: number of nodes in a row of the padded arrays.
template <class T> struct places_within {
    const int *sides;
    long long p;
    int row;
    HD places_within(const int *sides, long long p, int row) : sides(sides + p), p(p), row(row) {}
    HD bool any() const {
        bool found = false;
        for (int lane = 0; lane < lanes_of<T>; ++lane) found = found || !sides[lane];
        return found;
    }
    HD void store(real *to, T value) const {
        for (int lane = 0; lane < lanes_of<T>; ++lane)
            if (!sides[lane]) to[coloured(p + lane, row)] = lane_of(value, lane);
    }
};

// The contributions of the flux through the face between p and its neighbour n on side `side` of direction d: to the
// diagonal block `whole` and, if `stored`, to the block of the neighbour.
template <int side, bool stored, class T>
HD void blocks_of_face(const_state_pointer q, const work_real *m, const work_real *jacobian, long long p, long long n, stride sv,
                       int d, const T *own, T step, real inverse_reynolds, const node_terms<T> &terms,
                       const places_within<T> &places, T *whole, real *blocks) {
    T area[3], other[block_variables], block[block_entries];
    for (int c = 0; c < 3; ++c)
        area[c] = real(0.5) * (load<T>(m + (3 * d + c) * sv + p) + load<T>(m + (3 * d + c) * sv + n));
    for (int v = 0; v < block_variables; ++v) other[v] = load<T>(q + v * sv + n);
    const T volume = load<T>(jacobian + p), face = real(0.5) * (volume + load<T>(jacobian + n)), share = side ? step : -step;
    const T *const left = side ? own : other, *const right = side ? other : own;
    flux_derivative<side == 1>(left, right, area, face, inverse_reynolds, terms.eddies, terms.known, block);
    for (int e = 0; e < block_entries; ++e) whole[e] = whole[e] + share * block[e];
    if constexpr (stored) {
        flux_derivative<side == 0>(left, right, area, face, inverse_reynolds, terms.eddies, terms.known, block);
        for (int e = 0; e < block_entries; ++e) block[e] = share * block[e];
        terms.take_along(2 * d + side, step / volume, block);
        word<T> words[neighbour_words];
        keep_block(block, whole, words);
        for (int w = 0; w < neighbour_words; ++w)
            places.store(blocks + (block_entries + stored_side(d, side) * neighbour_words + w) * sv, number_of_bits(words[w]));
    }
}

#if HX_STORED_DIRECTIONS && (HX_SWEEP_BITS == 64 || defined(HX_CPU))
// Blocks of the matrix 1/c - dt (dR/dq - over_time) of nodes without conditions; dt: explicit time step, c: pseudo-time
// step over dt. blocks: the diagonal block, behind it those of the six neighbours, or of the two along `direction`
// only. For sweeps in FP32 GPUs use block_columns.h.
VECTOR_KERNEL(implicit_blocks, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian, const_field<1> dt,
              const_work_field<HX_WALL_DISTANCE> wall_distance, const_work_field<HX_SPACINGS> grid_spacings,
              const_work_field<HX_EDDY_FIELDS> eddies, const int *sides, int direction, real inverse_reynolds, real over_cfl,
              real over_time, field<block_reals> blocks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const places_within<T> places(sides, p, sj);
    if (!places.any()) return;
    const int apart[3] = {di, dj, dk};
    const node_terms<T> terms(q, m, jacobian, wall_distance, grid_spacings, eddies, p, sv, apart, inverse_reynolds);
    T own[block_variables], whole[block_entries];
    for (int v = 0; v < block_variables; ++v) own[v] = load<T>(q + v * sv + p);
    const T time = load<T>(dt + p), step = time * load<T>(jacobian + p);
    for (int e = 0; e < block_entries; ++e)
        whole[e] = e % (block_variables + 1) ? T(real(0)) : over_cfl + time * over_time;
    terms.take_own(time, whole);
    ROLLED
    for (int d = 0; d < 3; ++d) {
        if (apart[d] == 0) continue;
        const long long before = p - apart[d], behind = p + apart[d];
        if (HX_STORED_DIRECTIONS == 3 || d == direction) {
            blocks_of_face<0, true>(q, m, jacobian, p, before, sv, d, own, step, inverse_reynolds, terms, places, whole, blocks);
            blocks_of_face<1, true>(q, m, jacobian, p, behind, sv, d, own, step, inverse_reynolds, terms, places, whole, blocks);
        } else {
            blocks_of_face<0, false>(q, m, jacobian, p, before, sv, d, own, step, inverse_reynolds, terms, places, whole, blocks);
            blocks_of_face<1, false>(q, m, jacobian, p, behind, sv, d, own, step, inverse_reynolds, terms, places, whole, blocks);
        }
    }
    for (int e = 0; e < block_entries; ++e) places.store(blocks + e * sv, whole[e]);
}
#endif

// Blocks of the matrix 1/c + (1 - P) - P dt (dR/dq - over_time) of a node with conditions. On entry `blocks` holds P,
// the derivative of the conditions; on return the diagonal block, and behind it those of the six neighbours. A ghost
// behind a wall changes as the image of the first node inside. Behind an inflow, an outflow or a far field the ghost is
// given, so that upwind fluxes take what leaves from the node. Connected sides have neighbours.
KERNEL(condition_blocks, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian, const_field<1> dt,
       const_work_field<HX_WALL_DISTANCE> wall_distance, const_work_field<HX_SPACINGS> grid_spacings,
       const_work_field<HX_EDDY_FIELDS> eddies, const int *sides, real inverse_reynolds, real over_cfl, real over_time,
       optional<const int *> numbers, optional<real *> of_faces, int faces, field<block_reals> blocks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    if (!sides[p]) return;
    const neighbour_place place(blocks, sv, c, numbers, of_faces, faces, p);
    const int apart[3] = {di, dj, dk};
    real given[block_entries], diagonal[block_entries], own[block_variables], lost[block_entries] = {};
    for (int e = 0; e < block_entries; ++e) given[e] = blocks[e * sv + c], diagonal[e] = real(0);
    for (int v = 0; v < block_variables; ++v) own[v] = q[v * sv + p];
    const real step = dt[p] * jacobian[p];
    const node_terms<real> terms(q, m, jacobian, wall_distance, grid_spacings, eddies, p, sv, apart, inverse_reynolds);
    terms.take_own(real(1) / jacobian[p], diagonal);
    ROLLED
    for (int d = 0; d < 3; ++d) {
        real found[2][block_entries];
        for (int e = 0; e < block_entries; ++e) found[0][e] = found[1][e] = real(0);
        for (int side = 0; side < 2 && apart[d] != 0; ++side) {
            const long long n = side ? p + apart[d] : p - apart[d];
            const int behind = sides[p] >> (2 * (2 * d + side)) & 3;
            real area[3], other[block_variables], block[block_entries];
            for (int c = 0; c < 3; ++c)
                area[c] = behind ? m[(3 * d + c) * sv + p]
                                 : real(0.5) * (m[(3 * d + c) * sv + p] + m[(3 * d + c) * sv + n]);
            for (int v = 0; v < block_variables; ++v) other[v] = q[v * sv + n];
            const real face = behind ? jacobian[p] : real(0.5) * (jacobian[p] + jacobian[n]);
            const real *left = side ? own : other, *right = side ? other : own;
            const real sign = side ? real(1) : real(-1);
            real *const to = found[behind ? 1 - side : side];
            for (int of_right = 0; of_right < 2; ++of_right) {
                if (of_right)
                    flux_derivative<false>(left, right, area, face, inverse_reynolds, terms.eddies, terms.known, block);
                else
                    flux_derivative<true>(left, right, area, face, inverse_reynolds, terms.eddies, terms.known, block);
                if (of_right != side) {
                    for (int e = 0; e < block_entries; ++e) diagonal[e] += sign * block[e];
                    continue;
                }
                if (behind == side_mirror || behind == side_wall) mirror_columns(area, behind == side_wall, block);
                for (int e = 0; e < block_entries && behind != side_given; ++e) to[e] += sign * block[e];
            }
            if (!behind) terms.take_along(2 * d + side, real(1) / jacobian[p], to);
        }
        for (int side = 0; side < 2; ++side) {
            real product[block_entries];
            multiply_blocks(given, found[side], step, product);
            neighbour_block kept;
            kept.keep(product, lost);
            kept.store(place, 2 * d + side);
        }
    }
    real whole[block_entries];
    multiply_blocks(given, diagonal, step, whole);
    for (int e = 0; e < block_entries; ++e) {
        const real one = real(e % (block_variables + 1) == 0);
        blocks[e * sv + c] = whole[e] + lost[e] + (one - given[e]) + over_cfl * one + dt[p] * over_time * given[e];
    }
}
