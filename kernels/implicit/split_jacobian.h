// Sweeps over single nodes without stored blocks for a flux F(q) = F+(ql) + F-(qr) whose parts have eigenvalues of one
// sign (HX_SPLIT_JACOBIAN). The split Jacobian A = A+ + A-, with the state of one node and the area vector of the face,
// replaces the derivatives of the parts. Changes of the conserved variables are written as y: the change of the
// pressure over the sound speed c, the change of momentum minus velocity times the change of the density, and s, the
// change of the density minus that of the pressure over c^2. In these variables A and the thin-layer viscous terms are
// symmetric (S. Abarbanel and D. Gottlieb, J. Comput. Phys. 41, 1-33, 1981), and only the viscous terms depend on the
// density. So the diagonal block of a node has few numbers. It is solved where it is needed and not stored.
#pragma once
#include "records.h"

#if HX_SPLIT_SWEEPS
// A state, and conversions of changes about this state
template <class T> struct SymmetricVariables {
    T u[3], c, over_c, kinetic;  // kinetic: kinetic energy per mass
    HD SymmetricVariables(const T *state) : c(state[3]), over_c(reciprocal(c)) {
        for (int n = 0; n < 3; ++n) u[n] = state[n];
        kinetic = real(0.5) * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    }
    // y: the parts of a change x of the conserved variables: pressure over c, three of momentum, s
    HD void from_conserved(const T *x, T *y) const {
        y[0] = gas_gamma_1 * over_c * (x[4] - (u[0] * x[1] + u[1] * x[2] + u[2] * x[3]) + kinetic * x[0]);
        for (int n = 0; n < 3; ++n) y[n + 1] = x[n + 1] - u[n] * x[0];
        y[4] = x[0] - over_c * y[0];
    }
    HD void to_conserved(const T *y, T *x) const {
        x[0] = y[4] + over_c * y[0];
        for (int n = 0; n < 3; ++n) x[n + 1] = y[n + 1] + u[n] * x[0];
        x[4] = real(1.0 / (HX_GAMMA - 1.0)) * c * y[0] + (u[0] * y[1] + u[1] * y[2] + u[2] * y[3]) + kinetic * x[0];
    }
};

// The eigenvalues of the Jacobian for twice the vector `out`, which points out of a node. volume: half the volume flux of
// the velocity. The others are of the parts of one sign, which leave the node (1) or enter it (-1). sum, difference: half
// the sum and half the difference of the acoustic ones; flow: that of shear and s. `flow` is not the part of `volume`
// but the mass flux over the density, with which the parts of the Steger-Warming flux carry shear and s (J. L. Steger
// and R. F. Warming, J. Comput. Phys. 40, 263-293, 1981, eq. 22). It damps them across layers along which the fluid
// moves. With the part of `volume` Newton's method does not converge there.
template <int sign, class T> struct SplitEigenvalues {
    T volume, flow, sum, difference;
    HD static T part(T value, T sound) {
        if constexpr (HX_FLUX_SMOOTHING > 0.0)
            return real(0.5) * (value + real(sign) * square_root(value * value + real(HX_FLUX_SMOOTHING * HX_FLUX_SMOOTHING) * sound * sound));
        (void)sound;
        return sign > 0 ? larger(value, T(real(0))) : smaller(value, T(real(0)));
    }
    HD SplitEigenvalues(const SymmetricVariables<T> &at, const T *out, T area) {
        volume = out[0] * at.u[0] + out[1] * at.u[1] + out[2] * at.u[2];
        const T sound = at.c * area;
        const T more = part(volume + sound, sound), less = part(volume - sound, sound);
        sum = more + less, difference = more - less;
        flow = real(2.0 - 2.0 * (HX_SPLIT_JACOBIAN)) * part(volume, sound) + real(HX_SPLIT_JACOBIAN) * sum;
    }
};

// Quantities of a face. out: half the area vector that points out of the node; third, spread, heat: terms with the
// viscosity times the Jacobian over Re and the density, of which `face` has four times that.
template <class T> struct SplitFace {
    T out[3], area, over_area, over_area2, third, spread, heat;
    template <int side> HD static SplitFace of(const T *face) {
        SplitFace f;
        const T area2 = no_area + face[0] * face[0] + face[1] * face[1] + face[2] * face[2];
        for (int n = 0; n < 3; ++n) f.out[n] = side ? face[n] : -face[n];
        f.over_area = reciprocal_root(area2), f.area = area2 * f.over_area, f.over_area2 = f.over_area * f.over_area;
        f.third = real(1.0 / 3.0) * face[3], f.spread = area2 * face[3], f.heat = real(1.0 / HX_PRANDTL) * f.spread;
        return f;
    }
};

// The diagonal block of a node over its step
template <class T> struct SymmetricDiagonal {
    T pressure, flow, spread, cross[3], xx, yy, zz, xy, xz, yz;
    HD SymmetricDiagonal(T shift) : pressure(shift), flow(shift), spread(real(0)) {
        xx = yy = zz = xy = xz = yz = cross[0] = cross[1] = cross[2] = T(real(0));
    }
    HD void add(const SymmetricVariables<T> &at, const SplitFace<T> &f) {
        const SplitEigenvalues<1, T> found(at, f.out, f.area);
        const T push = f.over_area * found.difference, along = f.over_area2 * (found.sum - found.flow) + f.third;
        pressure = pressure + found.sum, flow = flow + found.flow, spread = spread + f.spread;
        for (int n = 0; n < 3; ++n) cross[n] = cross[n] + push * f.out[n];
        const T x = along * f.out[0], y = along * f.out[1], z = along * f.out[2];
        xx = xx + x * f.out[0], yy = yy + y * f.out[1], zz = zz + z * f.out[2];
        xy = xy + x * f.out[1], xz = xz + x * f.out[2], yz = yz + y * f.out[2];
    }
    // Replaces the right-hand side y by the solution. Only conduction of heat couples s with the change of the
    // pressure.
    HD void solve(const SymmetricVariables<T> &at, T *y) const {
        const T heat = real(1.0 / HX_PRANDTL) * spread, over_s = reciprocal(flow + heat), share = heat * over_s;
        const T both = flow + spread, over_x = reciprocal(xx + both);
        const T p = pressure + gas_gamma_1 * share * flow, right = y[0] + at.c * share * y[4];
        // momentum first, by symmetric elimination, then the pressure
        const T x1 = over_x * xy, x2 = over_x * xz, x3 = over_x * cross[0];
        const T y1 = (yy + both) - x1 * xy, y2 = yz - x1 * xz, y3 = cross[1] - x1 * cross[0], over_y = reciprocal(y1);
        const T z2 = over_y * y2, z3 = over_y * y3;
        const T w2 = (zz + both) - x2 * xz - z2 * y2, w3 = cross[2] - x2 * cross[0] - z2 * y3, over_z = reciprocal(w2), v3 = over_z * w3;
        const T last = p - x3 * cross[0] - z3 * y3 - v3 * w3;
        const T b = y[1], c = y[2] - x1 * b, d = y[3] - x2 * b - z2 * c;
        y[0] = (right - x3 * b - z3 * c - v3 * d) * reciprocal(last);
        y[3] = over_z * d - v3 * y[0];
        y[2] = over_y * c - z2 * y[3] - z3 * y[0];
        y[1] = over_x * b - x1 * y[2] - x2 * y[3] - x3 * y[0];
        y[4] = over_s * y[4] + gas_gamma_1 * at.over_c * share * y[0];
    }
};

// sum = sum + the product of the block of a neighbour with its update x; state: velocity and sound speed of the
// neighbour
template <class T> HD void add_split(const T *state, const T *x, const SplitFace<T> &f, T *sum) {
    const SymmetricVariables<T> at(state);
    const SplitEigenvalues<-1, T> found(at, f.out, f.area);
    const T along_flow = at.u[0] * x[1] + at.u[1] * x[2] + at.u[2] * x[3];
    const T pressure = gas_gamma_1 * at.over_c * (x[4] - along_flow + at.kinetic * x[0]), s = x[0] - at.over_c * pressure;
    const T normal = f.out[0] * x[1] + f.out[1] * x[2] + f.out[2] * x[3] - found.volume * x[0];
    const T push = f.over_area * found.difference, both = found.flow - f.spread;
    const T along = (f.over_area2 * (found.sum - found.flow) - f.third) * normal + push * pressure;
    const T heat = f.heat * (gas_gamma_1 * pressure - at.c * s), of_pressure = found.sum * pressure + push * normal - heat;
    const T mass = found.flow * s + at.over_c * (heat + of_pressure), more = mass - both * x[0];
    sum[0] = sum[0] + mass;
    for (int n = 0; n < 3; ++n) sum[n + 1] = sum[n + 1] + both * x[n + 1] + along * f.out[n] + more * at.u[n];
    sum[4] = sum[4] + real(1.0 / (HX_GAMMA - 1.0)) * at.c * of_pressure + both * along_flow + along * found.volume
             + at.kinetic * (mass - real(2) * both * x[0]);
}

// A neighbour with its update and the face to it
template <class T> struct split_side {
    T state[4], update[block_variables], face[4];
    template <int side> HD void add(const SymmetricVariables<T> &own, SymmetricDiagonal<T> &diagonal, T *sum) const {
        const SplitFace<T> f = SplitFace<T>::template of<side>(face);
        diagonal.add(own, f);
        add_split(state, update, f, sum);
    }
};
// The neighbour at `at` + `beside` on a side of direction d
template <class T> HD split_side<T> load_side(const real *records, const real *x, stride sv, int at, int beside, int d, int side) {
    split_side<T> found;
    load_state(records, sv, at + beside, found.state);
    load_face(records, sv, side ? at : at + beside, d, found.face);
    load_numbers<block_variables>(x, sv, at + beside, 0, found.update);
    return found;
}
// Adds the contributions of both sides of a node along direction d. Both neighbours are loaded first, as in add_along
// (products.h).
template <class T>
HD void add_sides(const SymmetricVariables<T> &own, const real *records, const real *x, stride sv, int at,
                  const int *beside, int d, SymmetricDiagonal<T> &diagonal, T *sum) {
    const split_side<T> before = load_side<T>(records, x, sv, at, beside[0], d, 0), behind = load_side<T>(records, x, sv, at, beside[1], d, 1);
    before.template add<0>(own, diagonal, sum);
    behind.template add<1>(own, diagonal, sum);
}

// In FP16 a thread of a GPU begins to copy the numbers of its neighbours along j and k to memory on the chip before it
// computes the contributions along i, so that it waits for memory once. In FP32 the copies leave too little memory on
// the chip to the L1 cache.
constexpr int kept_sides = 4;
struct alignas(2 * sizeof(real)) two_words {
    real words[2];
};

// The sweep over the nodes of one colour, as product_sweep (products.h). The sweep over the second colour begins with the
// planes at which that over the first has ended, since the L2 cache of a GPU still holds their data. back: the last plane
// along k if the planes are in reverse order, else 0; left: the number of ghosts before a row.
VECTOR_KERNEL(split_sweep, int i, int j, int k, int o, int left, int sj, int sk, int di, int dj, int dk, int back, int first, int colour, stride sv,
              const_chunked_field<record_numbers> records, const_field<block_variables> right, chunked_field<block_variables> update) {
    const int plane = back ? back - k : k, column = 2 * i + ((j + plane + first + colour) & 1);
    const coloured_node node(o - left + (long long)j * sj + (long long)plane * sk, left + column, sj, di, dj, dk);
    const int at = int(node.at);
    T state[4], sum[block_variables], rest[block_variables], y[block_variables];
#if HX_HALF_SWEEPS && !defined(HX_CPU)
    OWN_MEMORY(two_words, parts, 2 * kept_sides);
    OWN_MEMORY(real_chunk, updates, kept_sides);
    OWN_MEMORY(real, last, kept_sides);
    for (int s = 0; s < kept_sides; ++s) {
        const int there = at + node.beside[2 + s];
        const real *const of_state = records + place_of_four(sv, there, 0), *const face = records + place_of_four(sv, s % 2 ? at : there, 2 + s / 2);
        const auto place = number_place<block_variables, real>(0, sv, there), place_of_last = number_place<block_variables, real>(4, sv, there);
        FETCH(OWN(parts, 2 * s), reinterpret_cast<const two_words *>(of_state));
        FETCH(OWN(parts, 2 * s + 1), reinterpret_cast<const two_words *>(face));
        FETCH(OWN(updates, s), reinterpret_cast<const real_chunk *>(update + place));
        FETCH(OWN(last, s), update + place_of_last);
    }
#endif
    load_state(records, sv, at, state);
    const T over_step = load_right<T>(records + place_of_record<real>(sv, at, record_step));
    const SymmetricVariables<T> own(state);
    SymmetricDiagonal<T> diagonal(load_right<T>(records + place_of_record<real>(sv, at, record_shift)));
    for (int v = 0; v < block_variables; ++v) sum[v] = T(real(0));
    if (di != 0) add_sides(own, records, update, sv, at, node.beside, 0, diagonal, sum);
#if HX_HALF_SWEEPS && !defined(HX_CPU)
    FETCHED;
    UNROLLED for (int s = 0; s < kept_sides; ++s) {
        if ((s < 2 ? dj : dk) == 0) continue;
        split_side<T> side;
        numbers_of_halves(OWN(parts, 2 * s).words, side.state), numbers_of_area(OWN(parts, 2 * s + 1).words, side.face);
        for (int v = 0; v < 4; ++v) side.update[v] = OWN(updates, s).numbers[v];
        side.update[4] = OWN(last, s);
        if (s % 2)
            side.template add<1>(own, diagonal, sum);
        else
            side.template add<0>(own, diagonal, sum);
    }
#else
    if (dj != 0) add_sides(own, records, update, sv, at, node.beside + 2, 1, diagonal, sum);
    if (dk != 0) add_sides(own, records, update, sv, at, node.beside + 4, 2, diagonal, sum);
#endif
    for (int v = 0; v < block_variables; ++v) rest[v] = over_step * load_right<T>(right + v * sv + at) - sum[v];
    own.from_conserved(rest, y);
    diagonal.solve(own, y);
    own.to_conserved(y, rest);
    store_numbers_where<block_variables>(over_step > T(real(0)), update, sv, at, rest);
}
#endif
