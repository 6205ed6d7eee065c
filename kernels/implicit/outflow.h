// The blocks of nodes on subsonic outflows (boundary/outflow.h), where the rate of the entering sound wave w is not
// that of the inner terms. For dw = dp - rho c du_n, and a wave normal to the face in a flow that is uniform along the
// face, that file has w_t = -(c - u_n) (relaxation + fraction of the firmness) (p - pressure far away) - t grad w,
// where t is the velocity along the face, and a damping of p along the face. Here the derivative along the face is the
// upwind one of two nodes. The damping is the second difference that damps an oscillation from node to node as much as
// the sixth difference does. All viscous terms are included.
#pragma once
#include "../outflow_given.h"
#include "blocks.h"

// of_pressure, of_wave: derivatives of p, and of w, by the conserved variables; wave: the change of these variables by
// an entering wave with dw = 1; n: outward normal.
HD void entering_wave(const Primitive<real> &s, const real *n, real sound, real *of_pressure, real *of_wave, real *wave) {
    const real velocity[3] = {s.u, s.v, s.w};
    const real normal = n[0] * s.u + n[1] * s.v + n[2] * s.w;
    const real kinetic = real(0.5) * (s.u * s.u + s.v * s.v + s.w * s.w), over = real(0.5) / (sound * sound);
    of_pressure[0] = gas_gamma_1 * kinetic, of_pressure[4] = gas_gamma_1;
    of_wave[0] = of_pressure[0] + sound * normal, of_wave[4] = gas_gamma_1;
    wave[0] = over, wave[4] = real(0.5 / (HX_GAMMA - 1.0)) + over * (kinetic - sound * normal);
    for (int c = 0; c < 3; ++c) {
        of_pressure[c + 1] = -gas_gamma_1 * velocity[c];
        of_wave[c + 1] = of_pressure[c + 1] - sound * n[c];
        wave[c + 1] = over * (velocity[c] - sound * n[c]);
    }
}

// block = block - wave (of_wave block): removes the entering wave
HD void without_wave(const real *of_wave, const real *wave, stride sv, real *block) {
    for (int b = 0; b < block_variables; ++b) {
        real share = real(0);
        for (int a = 0; a < block_variables; ++a) share += of_wave[a] * block[(a * block_variables + b) * sv];
        for (int a = 0; a < block_variables; ++a) block[(a * block_variables + b) * sv] -= wave[a] * share;
    }
}

// block = block + factor wave row
HD void add_wave(real factor, const real *wave, const real *row, stride sv, real *block) {
    for (int a = 0; a < block_variables; ++a)
        for (int b = 0; b < block_variables; ++b) block[(a * block_variables + b) * sv] += factor * wave[a] * row[b];
}

// Moves the derivative of the conditions of nodes on outflows from `blocks` to `kept`, for `outflow_blocks`. `blocks`
// gets the unit matrix, because the contribution of the inner terms is changed before the conditions are applied.
KERNEL(keep_conditions, int i, int j, int k, int n1, const int *nodes, int row, stride sv, field<block_reals> blocks,
       real *kept) {
    const long long c = coloured(nodes[i], row);
    for (int e = 0; e < block_entries; ++e) {
        kept[e * n1 + i] = blocks[e * sv + c];
        blocks[e * sv + c] = real(e % (block_variables + 1) == 0);
    }
}

// The derivative by one state, of the viscous flux only
struct viscous_flux_of_face {
    const real *area;
    real jacobian, inverse_reynolds;
    HD void operator()(const dual<1> *left, const dual<1> *right, dual<1> *f) const {
        for (int v = 0; v < block_variables; ++v) f[v] = dual<1>(real(0));
        viscous_flux_between(left, right, area, jacobian, inverse_reynolds, real(0), f);
    }
};
template <bool of_left>
HD_APART void viscous_derivative(const real *ql, const real *qr, const real *area, real jacobian, real inverse_reynolds,
                                 real *block) {
    columns_of<of_left>(ql, qr, viscous_flux_of_face{area, jacobian, inverse_reynolds}, block);
}

// The contributions of friction and conduction through the two faces of direction d to the rates, for the diagonal
// block and for the blocks of the neighbours
HD void viscous_of_outflow(const_state_pointer q, const work_real *m, const work_real *jacobian, long long p, stride sv,
                           int d, int apart, real inverse_reynolds, real *own_block, real other_block[2][block_entries]) {
    real own[block_variables], other[block_variables], area[3];
    for (int e = 0; e < block_entries; ++e) own_block[e] = real(0);
    for (int v = 0; v < block_variables; ++v) own[v] = q[v * sv + p];
    for (int side = 0; side < 2; ++side) {
        const long long n = side ? p + apart : p - apart;
        for (int c = 0; c < 3; ++c) area[c] = real(0.5) * (m[(3 * d + c) * sv + p] + m[(3 * d + c) * sv + n]);
        for (int v = 0; v < block_variables; ++v) other[v] = q[v * sv + n];
        const real face = real(0.5) * (jacobian[p] + jacobian[n]), sign = side ? real(1) : real(-1);
        const real *left = side ? own : other, *right = side ? other : own;
        real by_left[block_entries], by_right[block_entries];
        viscous_derivative<true>(left, right, area, face, inverse_reynolds, by_left);
        viscous_derivative<false>(left, right, area, face, inverse_reynolds, by_right);
        for (int e = 0; e < block_entries; ++e) {
            own_block[e] += sign * (side ? by_left : by_right)[e];
            other_block[side][e] = sign * (side ? by_right : by_left)[e];
        }
    }
}

// The ghost behind an outflow changes as the node does. So the derivative of friction and conduction through that face
// by the ghost is added to the diagonal block. face: 2 d + side
HD void viscous_behind_outflow(const_state_pointer q, const work_real *m, const work_real *jacobian, long long p, stride sv,
                               int face, int apart, real inverse_reynolds, real step, real *own_block) {
    const int d = face / 2, side = face % 2;
    const long long n = side ? p + apart : p - apart;
    real area[3], own[block_variables], ghost[block_variables], by_ghost[block_entries];
    for (int c = 0; c < 3; ++c) area[c] = m[(3 * d + c) * sv + p];
    for (int v = 0; v < block_variables; ++v) own[v] = q[v * sv + p], ghost[v] = q[v * sv + n];
    if (side)
        viscous_derivative<false>(own, ghost, area, real(jacobian[p]), inverse_reynolds, by_ghost);
    else
        viscous_derivative<true>(ghost, own, area, real(jacobian[p]), inverse_reynolds, by_ghost);
    for (int e = 0; e < block_entries; ++e) own_block[e * sv] += (side ? step : -step) * by_ghost[e];
}

// row = of_wave block, the row of the entering wave
HD void row_of_wave(const real *of_wave, const real *block, real *row) {
    for (int b = 0; b < block_variables; ++b) {
        row[b] = real(0);
        for (int a = 0; a < block_variables; ++a) row[b] += of_wave[a] * block[a * block_variables + b];
    }
}

// block = P block
HD void apply_conditions(const real *kept, int n1, stride sv, real *block) {
    for (int b = 0; b < block_variables; ++b) {
        real column[block_variables];
        for (int a = 0; a < block_variables; ++a) column[a] = block[(a * block_variables + b) * sv];
        for (int a = 0; a < block_variables; ++a) {
            real sum = real(0);
            for (int c = 0; c < block_variables; ++c) sum += kept[(a * block_variables + c) * n1] * column[c];
            block[(a * block_variables + b) * sv] = sum;
        }
    }
}

// Adds the terms of an entering wave along direction d of the face: convection, damping, friction and conduction. step:
// dt over volume; own_block: the diagonal block; beside: the blocks of the neighbours.
HD void along_outflow(const_state_pointer q, const work_real *m, const work_real *jacobian, long long p, stride sv, int d,
                      int apart, real inverse_reynolds, real step, const real *velocity, real sound, const real *of_pressure,
                      const real *of_wave, const real *wave, real *own_block, real beside[6][block_entries]) {
    real across[3], row[block_variables], own[block_entries], other[2][block_entries];
    const real area = step * outward_normal(m, p, sv, 2 * d + 1, across);
    const real along = area * (across[0] * velocity[0] + across[1] * velocity[1] + across[2] * velocity[2]);
    const real damping = area * sound * real(16 * upwind_share);
    viscous_of_outflow(q, m, jacobian, p, sv, d, apart, inverse_reynolds, own, other);
    row_of_wave(of_wave, own, row);
    add_wave(step, wave, row, sv, own_block);
    add_wave(absolute(along), wave, of_wave, sv, own_block);
    add_wave(real(2) * damping, wave, of_pressure, sv, own_block);
    add_wave(-absolute(along), wave, of_wave, 1, beside[2 * d + (along < real(0))]);
    for (int side = 0; side < 2; ++side) {
        row_of_wave(of_wave, other[side], row);
        add_wave(step, wave, row, 1, beside[2 * d + side]);
        add_wave(-damping, wave, of_pressure, 1, beside[2 * d + side]);
    }
}

// nodes, codes (its `faces`), given: as in `outflow_rates`; kept: the conditions of the nodes (keep_conditions). Where
// faces meet, they are treated one after the other.
KERNEL(outflow_blocks, int i, int j, int k, int n1, const int *nodes, const int *codes, const real *given, const real *kept,
       int row, stride sv, int di, int dj, int dk, const_state_field<block_variables> q, const_work_field<9> m,
       const_work_field<1> jacobian, const_field<1> dt, real inverse_reynolds, real over_cfl, real over_time,
       optional<const int *> numbers, optional<real *> of_faces, int faces, field<block_reals> blocks) {
    const long long p = nodes[i], c = coloured(p, row);
    const neighbour_place place(blocks, sv, c, numbers, of_faces, faces, p);
    const int apart[3] = {di, dj, dk};
    real state[block_variables], beside[6][block_entries], lost[block_entries] = {};
    for (int v = 0; v < block_variables; ++v) state[v] = q[v * sv + p];
    for (int d = 0; d < 6; ++d) {
        const neighbour_block block(place, d);
        for (int e = 0; e < block_entries; ++e) beside[d][e] = block(e / block_variables, e % block_variables);
    }
    const Primitive<real> s = primitive(state);
    const real sound = square_root(gas_gamma * s.p / s.rho);
    int crossed = 0;
    for (int f = 0; f < 3; ++f) crossed |= codes[f * n1 + i] < 0 ? 0 : 1 << (codes[f * n1 + i] % 8 / 2);
    for (int e = 0; e < block_variables; ++e) blocks[e * (block_variables + 1) * sv + c] -= over_cfl + dt[p] * over_time;
    for (int f = 0; f < 3; ++f) {
        const int code = codes[f * n1 + i];
        if (code < 0) continue;
        real n[3], of_pressure[block_variables] = {}, of_wave[block_variables] = {},
             wave[block_variables] = {};
        outward_normal(m, p, sv, code % 8, n);
        const real *patch = given + (code / 8) * outflow_given;
        const real normal = n[0] * s.u + n[1] * s.v + n[2] * s.w, held = patch[what_is_held];
        if (normal >= sound) continue;
        viscous_behind_outflow(q, m, jacobian, p, sv, code % 8, apart[code % 8 / 2], inverse_reynolds,
                               dt[p] * jacobian[p], blocks + c);
        entering_wave(s, n, sound, of_pressure, of_wave, wave);
        without_wave(of_wave, wave, sv, blocks + c);
        for (int d = 0; d < 6; ++d) without_wave(of_wave, wave, 1, beside[d]);
        // The mean mass flux depends on all nodes of the face. Its derivative is left out.
        const real firm = held == real(OF_EDDIES) ? real(hold_pressure) * patch[2] : real(0);
        const real pull = (sound - normal) * (firm + (held == real(OF_MASS_FLUX) ? real(0) : patch[1]));
        add_wave(dt[p] * pull, wave, of_pressure, sv, blocks + c);
        const real tangential[3] = {s.u - normal * n[0], s.v - normal * n[1], s.w - normal * n[2]};
        for (int d = 0; d < 3; ++d)
            if (apart[d] != 0 && !(crossed >> d & 1))
                along_outflow(q, m, jacobian, p, sv, d, apart[d], inverse_reynolds, dt[p] * jacobian[p], tangential, sound,
                              of_pressure, of_wave, wave, blocks + c, beside);
    }
    for (int e = 0; e < block_variables; ++e) blocks[e * (block_variables + 1) * sv + c] += dt[p] * over_time;
    apply_conditions(kept + i, n1, sv, blocks + c);
    for (int d = 0; d < 6; ++d) {
        apply_conditions(kept + i, n1, 1, beside[d]);
        neighbour_block block;
        block.keep(beside[d], lost);
        block.store(place, d);
    }
    for (int e = 0; e < block_entries; ++e) {
        const real one = real(e % (block_variables + 1) == 0);
        blocks[e * sv + c] += (one + over_cfl * one) - kept[e * n1 + i] + lost[e];
    }
}
