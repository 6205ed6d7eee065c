// The loops of the right-hand side gone through in other ways than the solver does (docs/make/loop_times.py), after
// the study of Weng et al., Advances in Aerodynamics 3:21 (2021). A program of its own: nothing here is in the solver's.
// What is computed is that of the same point functions. Of a kernel `x` there are
//   x_line      a thread goes along a grid line of n nodes and keeps what its stencil reads, and the last half point
//   x_half      a thread for each half point, which adds to nobody
//   x_gather    a thread for each node, which computes both its half points: twice the work
//   x_scatter   a thread for each half point, which adds to the nodes on both sides, atomically on a GPU
//   x_coloured  the same of every other half point, so that none adds where another does, without atomics
// Of a direction sd is the stride; ranges and signs are those of inviscid.h and viscous.h. What is scattered also reaches
// the ghosts next to the ends of a line, where nobody reads it. Lines: o + j sj + k sk, or o + i + ... across i.
#include "half_point.h"
#include "metrics.h"
#include "inviscid.h"
#include "scalar.h"
#include "inviscid_pencil.h"
#include "fused.h"
#include "calibration.h"
#include "viscous.h"

#ifndef HX_INTERPOLATES_NODES
#error "loop modes are studied with the modified interpolation"
#endif

// `count` neighbours along a line, in registers: `it[0]` is the oldest.
template <class T, int count> struct Window {
    T it[count];
    HD void push(T next) {
        for (int s = 0; s + 1 < count; ++s) it[s] = it[s + 1];
        it[count - 1] = next;
    }
};

// *to += change. `shared`: others may do so at the same time. On one core nobody does, and where CUDA is emulated one
// thread comes after the other.
template <bool shared, class T> HD void add(real *to, T change) {
#if defined(__CUDA_ARCH__)
    if (shared) {
        atomicAdd(to, change);
        return;
    }
#endif
    store(to, load<T>(to) + change);
}

KERNEL(zero, int i, int j, int k, int o, int sj, int sk, long long sv, int variables, real *target) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < variables; ++v) target[v * sv + p] = real(0);
}

// --- interpolation: one value on each side of a half point, each with one writer

template <class T>
HD Rough<T> interpolate_at(const real *q, const real *m, long long p, int sd, long long sv, T *minus, T *plus) {
    T area[3];
    for (int d = 0; d < 3; ++d) area[d] = load<T>(m + d * sv + p);
    return interpolate([&](int s, int v) { return load<T>(q + v * sv + p + (long long)s * sd); }, area, minus, plus);
}

// half points -1..n-1
VECTOR_KERNEL(interpolate_half, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gas_variables> q, const_field<3> m, field<gas_variables> minus, field<gas_variables> plus,
              mark_field<HX_LIMITER> rough) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T left[gas_variables], right[gas_variables], unused[gas_variables];
    store_rough(rough + p, interpolate_at(q, m, p, sd, sv, left, unused));
    interpolate_at(q, m, p + sd, sd, sv, unused, right);
    for (int v = 0; v < gas_variables; ++v) store(minus + v * sv + p, left[v]), store(plus + v * sv + p, right[v]);
}

// nodes -1..n of a line whose node 0 is at o
VECTOR_KERNEL(interpolate_line, int i, int j, int k, int o, int sj, int sk, int sd, int n, long long sv,
              const_field<gas_variables> q, const_field<3> m, field<gas_variables> minus, field<gas_variables> plus,
              mark_field<HX_LIMITER> rough) {
    long long p = o + i + (long long)j * sj + (long long)k * sk - sd;
    constexpr int reach = interpolation_reach - 1;  // of a node
    Window<T, 2 * reach + 1> near[gas_variables];
    for (int v = 0; v < gas_variables; ++v)
        for (int s = 0; s < 2 * reach; ++s) near[v].it[s + 1] = load<T>(q + v * sv + p + (long long)(s - reach) * sd);
    for (int h = -1; h <= n; ++h, p += sd) {
        T area[3], left[gas_variables], right[gas_variables];
        for (int v = 0; v < gas_variables; ++v) near[v].push(load<T>(q + v * sv + p + (long long)reach * sd));
        for (int d = 0; d < 3; ++d) area[d] = load<T>(m + d * sv + p);
        store_rough(rough + p, interpolate([&](int s, int v) { return near[v].it[s + reach]; }, area, left, right));
        for (int v = 0; v < gas_variables; ++v)
            store(minus + v * sv + p, left[v]), store(plus + v * sv + p - sd, right[v]);
    }
}

// --- numerical flux and its difference

template <class T>
HD void flux_at(const real *q, const real *m, const real *f, const real *pressure, const real *minus, const real *plus,
                const mark *rough, long long p, int sd, long long sv, T *flux) {
    auto along = [&](const real *a, int s) { return load<T>(a + p + (long long)s * sd); };
    T left[gas_variables], right[gas_variables];
    for (int v = 0; v < gas_variables; ++v) left[v] = along(minus + v * sv, 0), right[v] = along(plus + v * sv, 0);
    flux_between(left, right, rough_between(load_rough<T>(rough + p), load_rough<T>(rough + p + sd)),
                 [&](int s, int v) { return along(q + v * sv, s); },
                 [&](int s, int d) { return along(m + d * sv, s); }, [&](int s, int v) { return along(f + v * sv, s); },
                 [&](int s) { return along(pressure, s); }, NoFields(), flux);
}

// Adds the flux through the half point after node p: it leaves this node and enters the next one.
template <bool shared, class T> HD void scatter(real *r, long long p, int sd, long long sv, const T *flux) {
    for (int v = 0; v < gas_variables; ++v) add<shared>(r + v * sv + p, -flux[v]);
    for (int v = 0; v < gas_variables; ++v) add<shared>(r + v * sv + p + sd, flux[v]);
}

// nodes 0..n-1
VECTOR_KERNEL(flux_gather, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gas_variables> q, const_field<3> m, const_field<gas_variables> f, const_field<1> pressure,
              const_field<gas_variables> minus, const_field<gas_variables> plus, const_mark_field<HX_LIMITER> rough,
              field<gas_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T before[gas_variables], after[gas_variables];
    flux_at(q, m, f, pressure, minus, plus, rough, p - sd, sd, sv, before);
    flux_at(q, m, f, pressure, minus, plus, rough, p, sd, sv, after);
    for (int v = 0; v < gas_variables; ++v) add<false>(r + v * sv + p, before[v] - after[v]);
}

// half points -1..n-1
VECTOR_KERNEL(flux_scatter, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gas_variables> q, const_field<3> m, const_field<gas_variables> f, const_field<1> pressure,
              const_field<gas_variables> minus, const_field<gas_variables> plus, const_mark_field<HX_LIMITER> rough,
              field<gas_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T flux[gas_variables];
    flux_at(q, m, f, pressure, minus, plus, rough, p, sd, sv, flux);
    scatter<true>(r, p, sd, sv, flux);
}

// half points -1..n-1 of a line whose node 0 is at o
VECTOR_KERNEL(flux_line, int i, int j, int k, int o, int sj, int sk, int sd, int n, long long sv,
              const_field<gas_variables> q, const_field<3> m, const_field<gas_variables> f, const_field<1> pressure,
              const_field<gas_variables> minus, const_field<gas_variables> plus, const_mark_field<HX_LIMITER> rough,
              field<gas_variables> r) {
    long long p = o + i + (long long)j * sj + (long long)k * sk - sd;
    auto along = [&](const real *a, int s) { return load<T>(a + p + (long long)s * sd); };
    constexpr int reach = correction_reach;
    Window<T, 2 * reach> areas[3], fluxes[gas_variables], pressures;
    for (int s = 1 - reach; s < reach; ++s) {
        for (int d = 0; d < 3; ++d) areas[d].it[s + reach] = along(m + d * sv, s);
        for (int v = 0; v < gas_variables; ++v) fluxes[v].it[s + reach] = along(f + v * sv, s);
        pressures.it[s + reach] = along(pressure, s);
    }
    T before[gas_variables];
    for (int h = -1; h < n; ++h, p += sd) {
        T left[gas_variables], right[gas_variables], flux[gas_variables];
        for (int d = 0; d < 3; ++d) areas[d].push(along(m + d * sv, reach));
        for (int v = 0; v < gas_variables; ++v) fluxes[v].push(along(f + v * sv, reach));
        pressures.push(along(pressure, reach));
        for (int v = 0; v < gas_variables; ++v) left[v] = along(minus + v * sv, 0), right[v] = along(plus + v * sv, 0);
        flux_between(left, right, rough_between(load_rough<T>(rough + p), load_rough<T>(rough + p + sd)),
                     [&](int s, int v) { return along(q + v * sv, s); },
                     [&](int s, int d) { return areas[d].it[s + reach - 1]; },
                     [&](int s, int v) { return fluxes[v].it[s + reach - 1]; },
                     [&](int s) { return pressures.it[s + reach - 1]; }, NoFields(), flux);
        if (h >= 0)
            for (int v = 0; v < gas_variables; ++v) add<false>(r + v * sv + p, before[v] - flux[v]);
        for (int v = 0; v < gas_variables; ++v) before[v] = flux[v];
    }
}

// --- the difference alone, of fluxes that are there

VECTOR_KERNEL(difference_scatter, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gas_variables> flux, field<gas_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T own[gas_variables];
    for (int v = 0; v < gas_variables; ++v) own[v] = load<T>(flux + v * sv + p);
    scatter<true>(r, p, sd, sv, own);
}

VECTOR_KERNEL(difference_line, int i, int j, int k, int o, int sj, int sk, int sd, int n, long long sv,
              const_field<gas_variables> flux, field<gas_variables> r) {
    long long p = o + i + (long long)j * sj + (long long)k * sk;
    T before[gas_variables];
    for (int v = 0; v < gas_variables; ++v) before[v] = load<T>(flux + v * sv + p - sd);
    for (int l = 0; l < n; ++l, p += sd)
        for (int v = 0; v < gas_variables; ++v) {
            const T after = load<T>(flux + v * sv + p);
            add<false>(r + v * sv + p, before[v] - after);
            before[v] = after;
        }
}

// --- viscous flux: Cartesian gradients of (u, v, w, T), area-weighted and summed direction by direction, gradient 3 v + c,
// and the stresses of them. As HiResX's paper has it, section 4.5.2.

// The value at half point 1/2 behind node p whose differences are the 6th-order central derivative.
template <class T> HD T half_value(const real *a, long long p, int sd) {
    return corrected_metric<T>([&](int s) { return load<T>(a + p + (long long)s * sd); });
}

// change(v), the derivative along the direction, to the gradients of node p
template <bool shared, class T, class Change>
HD void add_gradients(const real *m, real *gradient, long long p, long long sv, const Change &change) {
    T area[3];
    for (int c = 0; c < 3; ++c) area[c] = load<T>(m + c * sv + p);
    for (int v = 0; v < gradient_variables; ++v)
        for (int c = 0; c < 3; ++c) add<shared>(gradient + (3 * v + c) * sv + p, area[c] * change(v));
}

VECTOR_KERNEL(gradient_node, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gradient_variables> w, const_field<3> m, field<3 * gradient_variables> gradient, int first) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T change[gradient_variables], area[3];
    for (int v = 0; v < gradient_variables; ++v)
        change[v] = derivative<T>([&](int s) { return load<T>(w + v * sv + p + (long long)s * sd); });
    for (int c = 0; c < 3; ++c) area[c] = load<T>(m + c * sv + p);
    for (int v = 0; v < gradient_variables; ++v)
        for (int c = 0; c < 3; ++c) {
            real *to = gradient + (3 * v + c) * sv + p;
            store(to, first ? area[c] * change[v] : load<T>(to) + area[c] * change[v]);
        }
}

VECTOR_KERNEL(gradient_gather, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gradient_variables> w, const_field<3> m, field<3 * gradient_variables> gradient) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T change[gradient_variables];
    for (int v = 0; v < gradient_variables; ++v)
        change[v] = half_value<T>(w + v * sv, p, sd) - half_value<T>(w + v * sv, p - sd, sd);
    add_gradients<false, T>(m, gradient, p, sv, [&](int v) { return change[v]; });
}

template <bool shared, class T>
HD void scatter_gradients(const real *w, const real *m, real *gradient, long long p, int sd, long long sv) {
    T value[gradient_variables];
    for (int v = 0; v < gradient_variables; ++v) value[v] = half_value<T>(w + v * sv, p, sd);
    add_gradients<shared, T>(m, gradient, p, sv, [&](int v) { return value[v]; });
    add_gradients<shared, T>(m, gradient, p + sd, sv, [&](int v) { return -value[v]; });
}

VECTOR_KERNEL(gradient_scatter, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gradient_variables> w, const_field<3> m, field<3 * gradient_variables> gradient) {
    scatter_gradients<true, T>(w, m, gradient, o + i + (long long)j * sj + (long long)k * sk, sd, sv);
}

// The viscous flux of a node from its `gradient`, which is not yet divided by the volume
template <class T>
HD void close_viscous_flux(const real *w, const real *m, const real *jacobian, real inverse_reynolds, long long p,
                           long long sv, T (*gradient)[3], real *flux) {
    T area[3][3], own[gradient_variables];
    const T scale = load<T>(jacobian + p);
    for (int d = 0; d < 3; ++d)
        for (int c = 0; c < 3; ++c) area[d][c] = load<T>(m + (3 * d + c) * sv + p);
    for (int v = 0; v < gradient_variables; ++v) {
        own[v] = load<T>(w + v * sv + p);
        for (int c = 0; c < 3; ++c) gradient[v][c] = gradient[v][c] * scale;
    }
    const ViscousStress<T> stress = viscous_stress(own, gradient, T(real(0)), inverse_reynolds);
    for (int d = 0; d < 3; ++d)
        store_viscous_flux(area[d], stress, gradient, sv, flux + gradient_variables * d * sv + p);
}

VECTOR_KERNEL(gradient_stress, int i, int j, int k, int o, int sj, int sk, long long sv,
              const_field<gradient_variables> w, const_field<9> m, const_field<1> jacobian,
              const_field<3 * gradient_variables> gradient, real inverse_reynolds, field<3 * gradient_variables> flux) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T found[gradient_variables][3];
    for (int v = 0; v < gradient_variables; ++v)
        for (int c = 0; c < 3; ++c) found[v][c] = load<T>(gradient + (3 * v + c) * sv + p);
    close_viscous_flux(w, m, jacobian, inverse_reynolds, p, sv, found, flux);
}

// All three directions at once along lines of n nodes, which keep the window along their own.
VECTOR_KERNEL(viscous_flux_line, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int n, long long sv,
              const_field<gradient_variables> w, const_field<9> m, const_field<1> jacobian, real inverse_reynolds,
              field<3 * gradient_variables> flux) {
    long long p = o + i + (long long)j * sj + (long long)k * sk;
    constexpr int reach = difference_reach;
    Window<T, 2 * reach + 1> near[gradient_variables];
    for (int v = 0; v < gradient_variables; ++v)
        for (int s = 0; s < 2 * reach; ++s) near[v].it[s + 1] = load<T>(w + v * sv + p + (long long)(s - reach) * dk);
    for (int l = 0; l < n; ++l, p += dk) {
        T gradient[gradient_variables][3];
        for (int v = 0; v < gradient_variables; ++v) {
            const real *a = w + v * sv + p;
            near[v].push(load<T>(a + (long long)reach * dk));
            const T xi = derivative<T>([&](int s) { return load<T>(a + s * di); });
            const T eta = derivative<T>([&](int s) { return load<T>(a + (long long)s * dj); });
            const T zeta = derivative<T>([&](int s) { return near[v].it[s + reach]; });
            for (int c = 0; c < 3; ++c)
                gradient[v][c] = load<T>(m + c * sv + p) * xi + load<T>(m + (3 + c) * sv + p) * eta
                                 + load<T>(m + (6 + c) * sv + p) * zeta;
        }
        close_viscous_flux(w, m, jacobian, inverse_reynolds, p, sv, gradient, flux);
    }
}

// --- viscous difference; flux: of the direction, momentum and energy, which change variables 1 and following

// nodes 0..n-1, all three directions at once
VECTOR_KERNEL(viscous_difference_gather, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, long long sv,
              const_field<3 * gradient_variables> flux, field<conserved_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const int strides[3] = {di, dj, dk};
    for (int c = 0; c < gradient_variables; ++c) {
        T sum = T(real(0));
        for (int d = 0; d < 3; ++d) {
            const real *a = flux + (gradient_variables * d + c) * sv;
            sum = sum + half_value<T>(a, p, strides[d]) - half_value<T>(a, p - strides[d], strides[d]);
        }
        add<false>(r + (c + 1) * sv + p, sum);
    }
}

template <bool shared, class T>
HD void scatter_viscous(const real *flux, real *r, long long p, int sd, long long sv) {
    for (int c = 0; c < gradient_variables; ++c) {
        const T value = half_value<T>(flux + c * sv, p, sd);
        add<shared>(r + (c + 1) * sv + p, value);
        add<shared>(r + (c + 1) * sv + p + sd, -value);
    }
}

// half points -1..n-1
VECTOR_KERNEL(viscous_difference_scatter, int i, int j, int k, int o, int sj, int sk, int sd, long long sv,
              const_field<gradient_variables> flux, field<conserved_variables> r) {
    scatter_viscous<true, T>(flux, r, o + i + (long long)j * sj + (long long)k * sk, sd, sv);
}

VECTOR_KERNEL(viscous_difference_line, int i, int j, int k, int o, int sj, int sk, int sd, int n, long long sv,
              const_field<gradient_variables> flux, field<conserved_variables> r) {
    long long p = o + i + (long long)j * sj + (long long)k * sk;
    constexpr int reach = difference_reach;
    Window<T, 2 * reach + 1> near[gradient_variables];
    for (int c = 0; c < gradient_variables; ++c)
        for (int s = 0; s < 2 * reach; ++s) near[c].it[s + 1] = load<T>(flux + c * sv + p + (long long)(s - reach) * sd);
    for (int l = 0; l < n; ++l, p += sd)
        for (int c = 0; c < gradient_variables; ++c) {
            near[c].push(load<T>(flux + c * sv + p + (long long)reach * sd));
            add<false>(r + (c + 1) * sv + p, derivative<T>([&](int s) { return near[c].it[s + reach]; }));
        }
}

#ifndef HX_CPU
// Every other half point along direction 0, 1, 2: half point 2 l is l steps of sd behind the launch's.
#define COLOURED \
    const long long p = o + i + (long long)j * sj + (long long)k * sk + (long long)(direction == 0 ? i : direction == 1 ? j : k) * sd

KERNEL(flux_coloured, int i, int j, int k, int o, int sj, int sk, int sd, int direction, long long sv,
       const_field<gas_variables> q, const_field<3> m, const_field<gas_variables> f, const_field<1> pressure,
       const_field<gas_variables> minus, const_field<gas_variables> plus, const_mark_field<HX_LIMITER> rough,
              field<gas_variables> r) {
    COLOURED;
    T flux[gas_variables];
    flux_at(q, m, f, pressure, minus, plus, rough, p, sd, sv, flux);
    scatter<false>(r, p, sd, sv, flux);
}

KERNEL(difference_coloured, int i, int j, int k, int o, int sj, int sk, int sd, int direction, long long sv,
       const_field<gas_variables> flux, field<gas_variables> r) {
    COLOURED;
    T own[gas_variables];
    for (int v = 0; v < gas_variables; ++v) own[v] = load<T>(flux + v * sv + p);
    scatter<false>(r, p, sd, sv, own);
}

KERNEL(gradient_coloured, int i, int j, int k, int o, int sj, int sk, int sd, int direction, long long sv,
       const_field<gradient_variables> w, const_field<3> m, field<3 * gradient_variables> gradient) {
    COLOURED;
    scatter_gradients<false, T>(w, m, gradient, p, sd, sv);
}

KERNEL(viscous_difference_coloured, int i, int j, int k, int o, int sj, int sk, int sd, int direction, long long sv,
       const_field<gradient_variables> flux, field<conserved_variables> r) {
    COLOURED;
    scatter_viscous<false, T>(flux, r, p, sd, sv);
}
#undef COLOURED
#endif
