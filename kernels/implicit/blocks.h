// The first-order Jacobian of the right-hand side, a block of 5 x 5 (larger by one for each variable of a model of
// turbulence) for a node and for each of its neighbours along the grid lines: the chosen numerical flux between the states
// of two nodes, the thin-layer viscous flux between them, and the terms of the model.
#pragma once
#include "face_flux.h"
#include "neighbours.h"

typedef dual<block_variables> state_dual;

// The kind of neighbour on each of the six sides of a node (imin, imax, jmin, ...), two bits each
constexpr int side_given = 1, side_mirror = 2, side_wall = 3;

// dF/dq of one of the two states, row by row
HD void flux_derivative(const real *ql, const real *qr, const real *m, real jacobian, real inverse_reynolds, real eddies,
                        const TransportedConstants &known, bool of_right, real *block) {
    state_dual left[block_variables], right[block_variables], f[block_variables];
    for (int v = 0; v < block_variables; ++v) {
        left[v] = state_dual(ql[v]), right[v] = state_dual(qr[v]);
        (of_right ? right : left)[v].slope[v] = real(1);
    }
    face_flux(left, right, m, jacobian, inverse_reynolds, eddies, f, known);
    for (int a = 0; a < block_variables; ++a)
        for (int b = 0; b < block_variables; ++b) block[a * block_variables + b] = f[a].slope[b];
}

// block = block M, of the mirror image about the plane normal to m, or of the reversal of the velocity at a wall
HD void mirror_columns(const real *m, bool reversed, real *block) {
    const real twice = real(2) / (m[0] * m[0] + m[1] * m[1] + m[2] * m[2]);
    for (int a = 0; a < block_variables; ++a) {
        real *row = block + a * block_variables;
        const real along = row[1] * m[0] + row[2] * m[1] + row[3] * m[2];
        for (int c = 0; c < 3; ++c) row[c + 1] = reversed ? -row[c + 1] : row[c + 1] - twice * along * m[c];
    }
}

// Blocks of the matrix 1/c + (1 - P) - P dt (dR/dq - over_time) of a node, of which `blocks` holds P, the derivative of
// the node's conditions, and is given the diagonal block and, behind it, those of the six neighbours. A
// ghost behind a wall changes as the image of the first node within; behind an inflow, an outflow or a far
// field it is given, so that upwind fluxes take what leaves from the node; connected sides have neighbours.
KERNEL(implicit_blocks, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian, const_field<1> dt,
       const_work_field<HX_WALL_DISTANCE> wall_distance, const_work_field<HX_SPACINGS> grid_spacings,
       const_work_field<HX_EDDY_FIELDS> eddies, const int *sides, real inverse_reynolds, real over_cfl, real over_time,
       optional<const int *> numbers, optional<real *> of_faces, int faces, field<block_reals> blocks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    const neighbour_place place(blocks, sv, c, numbers, of_faces, faces, p);
    if (!place.there()) return;
    const int apart[3] = {di, dj, dk};
    real given[block_entries], diagonal[block_entries], own[block_variables], lost[block_entries] = {};
    for (int e = 0; e < block_entries; ++e) given[e] = blocks[e * sv + c], diagonal[e] = real(0);
    for (int v = 0; v < block_variables; ++v) own[v] = q[v * sv + p];
    const real step = dt[p] * jacobian[p];
#if HX_TRANSPORTED
    real of_source[HX_TRANSPORTED * HX_TRANSPORTED], along[6][HX_TRANSPORTED * HX_TRANSPORTED];
    const TransportedConstants known = transported_derivatives(q, m, jacobian, p, sv, apart, wall_distance, grid_spacings,
                                                               inverse_reynolds, of_source, along);
    take_transported(of_source, real(1) / jacobian[p], diagonal);
#else
    const TransportedConstants known = TransportedConstants();
    (void)wall_distance, (void)grid_spacings;
#endif
#if HX_EDDY_FIELDS
    const real thick = eddies[p];
#else
    const real thick = real(0);
    (void)eddies;
#endif
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
            // One text for both states: half the code.
            for (int of_right = 0; of_right < 2; ++of_right) {
                flux_derivative(left, right, area, face, inverse_reynolds, thick, known, of_right, block);
                if (of_right != side) {
                    for (int e = 0; e < block_entries; ++e) diagonal[e] += sign * block[e];
                    continue;
                }
                if (behind == side_mirror || behind == side_wall) mirror_columns(area, behind == side_wall, block);
                for (int e = 0; e < block_entries && behind != side_given; ++e) to[e] += sign * block[e];
            }
#if HX_TRANSPORTED
            if (!behind) take_transported(along[2 * d + side], real(1) / jacobian[p], to);
#endif
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
