// The inviscid right-hand side of one direction in one kernel, for GPUs. It uses the point functions of inviscid.h, but
// the results that the four kernels there pass on in memory stay on the chip. For lines along j and k a thread marches
// along its line. Along i, where nodes are contiguous in memory, a warp goes along a row, 32 nodes at a time. The chip
// keeps the nodes of the stencils and the results for the next half points, and the next nodes arrive there during the
// computation. Lines are cut into chunks, so that a few lines also fill a GPU. The flux between two chunks is computed
// twice, with the same result to round-off.
#include "sensed_tiles.h"
#include "sensed_segments.h"
#include "wall_sums.h"

#ifndef HX_CPU
// The numbers kept for a node: q, m (3 area components of the direction), and the physical flux of the gas. For a
// scalar rho s is loaded, and replaced by s when the flux is computed.
constexpr int FUSED_Q = 0;
constexpr int FUSED_M = conserved_variables;
constexpr int FUSED_F = FUSED_M + 3;
constexpr int FUSED_NODE = FUSED_F + gas_variables;

// For the half point between nodes h and h + 1, nodes h + 1 - FUSED_REACH to h + FUSED_REACH are kept. half_point.h
// defines which of them the corrections of metrics and fluxes and the jump sensors read.
constexpr int FUSED_REACH = ghost_layers;
constexpr int FUSED_WINDOW = 2 * ghost_layers;
// Reals that a thread of sweep_across keeps in shared memory: the nodes of its window, the next node, and whether the
// last node was rough. Kept in a register, the latter would cost more than one register.
constexpr int sweep_across_own = FUSED_WINDOW * FUSED_NODE + FUSED_NODE + HX_LIMITER;

// Fetches q and m of node p into to_state(v) and to_metrics(v); they have arrived after FETCHED.
#define FUSED_SEND(to_state, to_metrics, p) \
    do { \
        for (int v = 0; v < conserved_variables; ++v) FETCH(to_state(FUSED_Q + v), address(q + v * sv + (p))); \
        for (int d = 0; d < 3; ++d) FETCH(to_metrics(FUSED_M + d), address(m + d * sv + (p))); \
    } while (0)
// FUSED_BEGIN puts the first nodes of a sweep into keep(v).
//
// FUSED_FETCH fetches the following nodes into keep(v) too, except for numbers that memory keeps in FP32 (storage.h).
// Those go into `coming(v)`, and FUSED_ARRIVE converts them to `real` once after their arrival. Conversions at every
// read would cost more than the arithmetic.
#ifndef HX_WORK_FP32
#define FUSED_BEGIN(keep, p) FUSED_SEND(keep, keep, p)
#define FUSED_FETCH(keep, coming, p) FUSED_SEND(keep, keep, p)
#define FUSED_ARRIVE(keep, coming) (void)0
#else
#define FUSED_BEGIN(keep, p) \
    do { \
        for (int v = 0; v < conserved_variables; ++v) keep(FUSED_Q + v) = load<real>(q + v * sv + (p)); \
        for (int d = 0; d < 3; ++d) keep(FUSED_M + d) = load<real>(m + d * sv + (p)); \
    } while (0)
#ifndef HX_STORED_FP32
#define FUSED_FETCH(keep, coming, p) FUSED_SEND(keep, coming, p)
#define FUSED_ARRIVE(keep, coming) \
    for (int d = 0; d < 3; ++d) keep(FUSED_M + d) = real(coming(FUSED_M + d))
#else
#define FUSED_FETCH(keep, coming, p) FUSED_SEND(coming, coming, p)
#define FUSED_ARRIVE(keep, coming) \
    do { \
        for (int v = 0; v < gas_variables; ++v) keep(FUSED_Q + v) = reference(v) + real(coming(FUSED_Q + v)); \
        for (int d = 0; d < 3; ++d) keep(FUSED_M + d) = real(coming(FUSED_M + d)); \
    } while (0)
#endif
#endif

// Below, at(s, v) is the number v that is kept for node s of a line, FUSED_Q + variable or FUSED_M + component.

// Physical flux and pressure of node 0.
template <class T, class At> HD void fused_node(const At &at, T *flux, T &pressure) {
    T state[gas_variables], area[3];
    for (int v = 0; v < gas_variables; ++v) state[v] = at(0, FUSED_Q + v);
    for (int d = 0; d < 3; ++d) area[d] = at(0, FUSED_M + d);
    Primitive<T> s = primitive(state);
    flux_of(state, s, area, flux);
    pressure = s.p;
}

// The states on both sides of node 0 (minus at 1/2, plus at -1/2), or in the original scheme those at half point 1/2.
// Returns whether the flow is rough there.
template <class T, class At> HD Rough<T> fused_states(const At &at, T *minus, T *plus) {
    if (HX_REGULARISED) {  // its fluxes read no such states
        for (int v = 0; v < gas_variables; ++v) minus[v] = plus[v] = T(real(0));
        return {};
    }
    T area[3];
#ifdef HX_INTERPOLATES_NODES
    for (int d = 0; d < 3; ++d) area[d] = at(0, FUSED_M + d);
#else
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return at(s, FUSED_M + d); });
#endif
    return interpolate([&](int s, int v) { return at(s, FUSED_Q + v); }, area, minus, plus);
}

// The flux at half point 1/2 between two states. f(s, v): physical flux at node s; fields(s, n): fields that the flux
// reads.
template <class T, class At, class F, class Fields>
HD void fused_flux(const At &at, T *left, T *right, Rough<T> rough, const F &f, T sensor, const Fields &fields, T *flux) {
    T area[3];
    const auto state = [&](int s, int v) { return at(s, FUSED_Q + v); };
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return at(s, FUSED_M + d); });
    replace_states(state, left, right, rough);
    half_point_flux(left, right, area, f, sensor, fields, flux);
    limit_where(rough, state, [&](int s, int d) { return at(s, FUSED_M + d); }, flux);
}

#if HX_SENSORS
// The hybrid flux (hybrid.h) minus `split`, the split flux, at half point 1/2 between two states, for a `share` above 0.
template <class T, class At, class F, class Fields>
HD void fused_hybrid(const At &at, T *left, T *right, const Rough<T> &rough, const F &f, T jump, const Fields &fields,
                     T share, const T *split, T *flux) {
    const auto state = [&](int s, int v) { return at(s, FUSED_Q + v); };
    const auto area_at = [&](int s, int d) { return at(s, FUSED_M + d); };
    T area[3], other[gas_variables];
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return at(s, FUSED_M + d); });
    half_point_flux(left, right, area, f, jump, fields, other);
    for (int v = 0; v < gas_variables; ++v) flux[v] = split[v];
    blend_flux(state, area_at, share, rough, other, flux);
    for (int v = 0; v < gas_variables; ++v) flux[v] = flux[v] - split[v];
}

// Node s of a line as split_node has it.
template <class At> HD void fused_split_node(const At &at, int s, real *node) {
    real own[gas_variables];
    for (int v = 0; v < gas_variables; ++v) own[v] = at(s, FUSED_Q + v);
    split_node(own, node);
}

// The split flux at half point 1/2 of a line, from node 0 on one after the other: what those behind it left is in `carried`,
// for half points 1/2, 3/2 and so on.
template <class At> HD void next_split_flux(const At &at, real (*carried)[gas_variables], real *split) {
    real nodes[split_reach + 1][split_variables], parts[split_reach][gas_variables];
    for (int s = 0; s <= split_reach; ++s) fused_split_node(at, s, nodes[s]);
    split_parts([&](int s, int v) { return nodes[s][v]; }, [&](int s, int d) { return at(s, FUSED_M + d); }, parts);
    for (int v = 0; v < gas_variables; ++v) {
        split[v] = carried[0][v] + parts[0][v];
        for (int k = 1; k < split_reach - 1; ++k) carried[k - 1][v] = carried[k][v] + parts[k][v];
        carried[split_reach - 2][v] = parts[split_reach - 1][v];
    }
}
#endif

// The fluxes of the scalars, stored behind those of the gas in `flux`. f(s): mass flux at node s.
template <class T, class At, class F> HD void fused_scalar_flux(const At &at, const F &f, T sensor, T *flux) {
    for (int n = gas_variables; n < conserved_variables; ++n)
        flux[n] = scalar_flux_at<T>(n - gas_variables, [&](int s) { return at(s, FUSED_Q + n); }, f, flux[0], sensor);
}

// Sets r = change (first) or r += change. No other thread changes r at the same time.
HD void fused_add(rate_real *r, real change, int first) {
    if (first)
        *r = rate_real(change);
    else
#if defined(__CUDA_ARCH__)
        atomicAdd(r, rate_real(change));  // the result is not used, so that no thread waits for r
#else
        *r = rate_real(*r + change);
#endif
}

// Adds to the flux before node p the viscous rates of this direction that viscous_difference would add to the gas
// there.
HD void fused_viscous(const work_real *viscous_flux, long long p, long long sd, stride sv, real *before) {
    for (int c = 0; c < gas_gradients; ++c) {
        const work_real *f = viscous_flux + c * sv + p;
        before[c + 1] += nodal_derivative<real>([&](int s) { return load<real>(f + s * sd); });
    }
}

// Adds the rates of node p, number l of the nodes 0..n-1 along the line, from the fluxes at its two half points. Near a
// wall it stores the same sums of the fluxes of mass and scalars in `sums` as face_mass. walls: bit 0 for a wall at
// node 0, bit 1 at node n-1. diffusive_flux: viscous flux of the first scalar, where `before` does not include it, else
// null.
HD void fused_difference(rate_real *r, long long p, long long sd, stride sv, int l, int n, const real *before,
                         const real *after, const work_real *diffusive_flux, int first, int walls, rate_real *sums) {
    for (int v = 0; v < gas_variables; ++v) fused_add(r + v * sv + p, before[v] - after[v], first);
    for (int c = 0; c < scalar_variables; ++c) {
        const int v = gas_variables + c;
        real change = before[v] - after[v];
        const work_real *f = diffusive_flux + c * sv + p;
        if (diffusive_flux) change += nodal_derivative<real>([&](int s) { return load<real>(f + s * sd); });
        fused_add(r + v * sv + p, change, first);
    }
    for (int v = 0; v < conserved_variables; v = v < gas_variables ? gas_variables : v + 1) {  // mass, scalars
        rate_real *sum = sums + v * sv + p;
        if ((walls & 1) && l < wall_weighted && wall_row(l) > 0)
            sum[-(l + wall_row(l)) * sd] = rate_real(wall_part(l, before[v], after[v]));
        const int e = n - 1 - l;
        if ((walls & 2) && e < wall_weighted && wall_row(e) > 0)
            sum[(e + wall_row(e)) * sd] = rate_real(wall_part(e, after[v], before[v]));
    }
}

// The place in its row of element 0 <= e < sj + 32 of rows of sj elements.
HD int place_in_row(int e, int sj) { return sj < 32 ? e % sj : e < sj ? e : e - sj; }

// Adds the rates of nodes begin..end-1 of a line of n nodes from the fluxes at their half points. p: node 0 of the
// line; sd: stride along it.
HD void sweep_line(long long p, int sd, int begin, int end, int n, stride sv,
                   const_state_field<conserved_variables> q, const_work_field<3> m,
                   const_work_field<HX_FLUX_FIELDS> fields, const_work_field<HX_SENSORS> sensor,
                   const work_real *viscous_flux, rate_field<conserved_variables> r, int first, int walls,
                   rate_field<conserved_variables> sums) {
#if !HX_SENSORS
    (void)sensor;
#endif
    p += (long long)(begin - 1) * sd;  // of node h; its half point is h + 1/2
#ifdef HX_FP32  // no gain in FP64 (hiresx/rhs/fused.py): its variables alone cost 3 %
    const work_real *diffusive_flux = viscous_flux ? viscous_flux + gas_gradients * sv : nullptr;
#else
    const work_real *diffusive_flux = nullptr;
    (void)viscous_flux;
#endif
    // Node h + s is kept at place[s + FUSED_REACH - 1]; the node behind the window is being fetched.
    OWN_MEMORY(real, kept, sweep_across_own);
#ifdef HX_WORK_FP32
    OWN_MEMORY(work_real, coming, FUSED_F);
#endif
    int place[FUSED_WINDOW + 1];
    for (int s = 0; s <= FUSED_WINDOW; ++s) place[s] = s * FUSED_NODE;
#define HX_KEPT(s, v) OWN(kept, place[(s) + FUSED_REACH - 1] + (v))
    const auto at = [&](int s, int v) { return HX_KEPT(s, v); };
    // Computes what depends on node s alone.
    const auto compute_node = [&](int s, real &pressure) {
        real flux[gas_variables];
        fused_node([&](int, int v) { return at(s, v); }, flux, pressure);
        for (int v = 0; v < gas_variables; ++v) HX_KEPT(s, FUSED_F + v) = flux[v];
        for (int v = gas_variables; v < conserved_variables; ++v) HX_KEPT(s, FUSED_Q + v) /= at(s, FUSED_Q);
    };
    real jumps[correction_sensors], pressure[3], before[conserved_variables], flux[conserved_variables];
    real left[gas_variables], next[gas_variables], right[gas_variables];
    for (int s = 1 - FUSED_REACH; s <= FUSED_REACH; ++s) {
#define HX_KEEP(v) HX_KEPT(s, v)
        FUSED_BEGIN(HX_KEEP, p + (long long)s * sd);
#undef HX_KEEP
    }
    FETCHED;
    for (int s = 1 - correction_reach; s < correction_reach; ++s) {  // h = begin - 1
        pressure[0] = pressure[1], pressure[1] = pressure[2];
        compute_node(s, pressure[2]);
        if (s >= 3 - correction_reach) jumps[s - 2 + correction_reach] = jump_sensor(pressure[0], pressure[1], pressure[2]);
    }
#ifdef HX_INTERPOLATES_NODES
    store_rough(&OWN(kept, sweep_across_own - 1), fused_states(at, left, right));
#endif
#if HX_SENSORS
    real shares[2 * split_reach], ahead_share = real(0);  // of nodes h + 1 - split_reach and following, and of the one behind
    real carried[split_reach - 1][gas_variables] = {}, split[gas_variables];
    for (int s = 1 - split_reach; s < 0; ++s) next_split_flux([&](int n, int v) { return at(s + n, v); }, carried, split);
    for (int s = 0; s < 2 * split_reach; ++s) shares[s] = load<real>(sensor + p + (s + 1ll - split_reach) * sd);
#endif
    for (int h = begin - 1; h < end; ++h, p += sd) {
        FETCHED;
#if HX_SENSORS
        if (h >= begin) {
            for (int s = 1; s < 2 * split_reach; ++s) shares[s - 1] = shares[s];
            shares[2 * split_reach - 1] = ahead_share;
        }
        if (h + 1 < end) ahead_share = load<real>(sensor + p + (split_reach + 1ll) * sd);
#endif
#define HX_COMING(v) OWN(coming, v)
#define HX_KEEP(v) HX_KEPT(FUSED_REACH, v)
        if (h >= begin) FUSED_ARRIVE(HX_KEEP, HX_COMING);
#undef HX_KEEP
#define HX_KEEP(v) HX_KEPT(FUSED_REACH + 1, v)
        if (h + 1 < end) FUSED_FETCH(HX_KEEP, HX_COMING, p + (FUSED_REACH + 1ll) * sd);
#undef HX_KEEP
#undef HX_COMING
#ifdef HX_FP32
        if (viscous_flux && h >= begin) fused_viscous(viscous_flux, p, (long long)sd, sv, before);
#endif
        for (int s = 0; s < correction_sensors - 1; ++s) jumps[s] = jumps[s + 1];
        pressure[0] = pressure[1], pressure[1] = pressure[2];
        compute_node(correction_reach, pressure[2]);
        jumps[correction_sensors - 1] = jump_sensor(pressure[0], pressure[1], pressure[2]);
#ifdef HX_INTERPOLATES_NODES
        const Rough<real> ahead = fused_states([&](int s, int v) { return at(s + 1, v); }, next, right);
        const Rough<real> rough = either(load_rough<real>(&OWN(kept, sweep_across_own - 1)), ahead);
        store_rough(&OWN(kept, sweep_across_own - 1), ahead);
#else
        const Rough<real> rough = fused_states(at, left, right);
#endif
        const real jump = largest_sensor<real>([&](int n) { return jumps[n]; });
        const auto f = [&](int s, int v) { return at(s, FUSED_F + v); };
        const auto field = [&](int s, int n) { return load<real>(fields + n * sv + p + (long long)s * sd); };
#if HX_SENSORS
        const real share = hybrid_share<real>([&](int s) { return shares[s + split_reach - 1]; });
        for (int v = 0; v < gas_variables; ++v) flux[v] = real(0);
        next_split_flux(at, carried, split);
        if (share > real(0)) fused_hybrid(at, left, right, rough, f, jump, field, share, split, flux);
#else
        fused_flux(at, left, right, rough, f, jump, field, flux);
#endif
        fused_scalar_flux(at, [&](int s) { return at(s, FUSED_F); }, jump, flux);
        if (h >= begin) fused_difference(r, p, sd, sv, h, n, before, flux, diffusive_flux, first, walls, sums);
        for (int v = 0; v < conserved_variables; ++v) before[v] = flux[v];
        for (int v = 0; v < gas_variables; ++v) left[v] = next[v];
        const int oldest = place[0];
        for (int s = 0; s < FUSED_WINDOW; ++s) place[s] = place[s + 1];
        place[FUSED_WINDOW] = oldest;
    }
#undef HX_KEPT
}

// Lines along a direction other than i, each in chunks of `chunk` of its n nodes: (i, j) is the line, k the chunk. s2:
// stride of j, sd of the line.
LINE_KERNEL(sweep_across, int i, int j, int k, int o, int s2, int sd, int n, int chunk, stride sv,
            const_state_field<conserved_variables> q, const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
            const_work_field<HX_SENSORS> sensor, optional<const_work_field<gradient_variables>> viscous_flux,
            rate_field<conserved_variables> r, int first, int walls,
            optional<rate_field<conserved_variables>> sums) {
    const int begin = k * chunk, end = n - begin < chunk ? n : begin + chunk;
    const long long p = o + i + (long long)j * s2;
    sweep_line(p, sd, begin, end, n, sv, q, m, fields, sensor, viscous_flux, r, first, walls, sums);
}

#if HX_SENSORS
// Sweeps the listed segments of lines (sensed_segments.h), of which there are count[0]. `threads` threads take them in
// turn; i: the number of a thread. If there are more than `limit` segments, all lines are swept, in chunks of `chunk` of
// their n nodes. Node 0 of line l is then node (l % width, l / width) from `corner` on, with the strides 1 and s2.
constexpr int sweep_segments_own = sweep_across_own;
LINE_KERNEL(sweep_segments, int i, int j, int k, int threads, int limit, int corner, int s2, int sd, int width, int lines,
            int n, int chunk, stride sv,
            const_state_field<conserved_variables> q, const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
            const_work_field<HX_SENSORS> sensor, rate_field<conserved_variables> r, const int *count,
            const int *segments) {
    (void)j, (void)k;
    const bool listed = count[0] <= limit;
    const int all = listed ? count[0] : (n + chunk - 1) / chunk * lines;
    for (int s = i; s < all; s += threads) {
        int node, length;
        if (listed) {
            node = segments[2 * s], length = segments[2 * s + 1];
        } else {
            const int line = s % lines, begin = s / lines * chunk;
            node = corner + line % width + line / width * s2 + begin * sd;
            length = n - begin < chunk ? n - begin : chunk;
        }
        sweep_line(node, sd, 0, length, 0, sv, q, m, fields, sensor, nullptr, r, 0, 0, nullptr);
    }
}
#endif

// Sweeps elements begin..end-1 of the rows along i of a plane. The rows, with the ghosts between them, are contiguous in
// memory and are treated as one line, so that all lanes have work whatever n is. Element e is node e % sj of row e / sj,
// a ghost from n on. plane: element 0.
HD void sweep_rows(long long plane, int sj, int begin, int end, int n, stride sv,
                   const_state_field<conserved_variables> q, const_work_field<3> m,
                   const_work_field<HX_FLUX_FIELDS> fields, const_work_field<HX_SENSORS> sensor,
                   const work_real *viscous_flux, rate_field<conserved_variables> r, int first, int walls,
                   rate_field<conserved_variables> sums) {
    // q and m of the elements around 32 half points, and, while they are fetched, of the next 32 elements
    constexpr int held = FUSED_WINDOW - 1, corrected = 2 * correction_reach - 1;
    SHARED real nodes[2][FUSED_F][32 + held];
#ifdef HX_WORK_FP32
    SHARED work_real coming[FUSED_F][32];
#endif
    SHARED real minus[gas_variables][33], plus[gas_variables][32], fluxes[conserved_variables][33];
    SHARED mark rough[HX_LIMITER ? 33 : 1];
    SHARED real f[gas_variables][32 + corrected], pressure[32 + corrected], jumps[32 + corrected - 2];
#if !HX_SENSORS
    (void)sensor;
#endif
    // Index s is that of element base - FUSED_REACH + s in `nodes`, of base - correction_reach + s in f and pressure,
    // and of base - correction_reach + s + 1 in jumps. minus[0], fluxes[0], rough[0]: results of lane 31 of the
    // previous pass.
    const auto at = [&](int now, int lane, int v) -> real & { return nodes[now][v][lane + FUSED_REACH]; };
    // Computes what depends on element base + s alone.
    const auto compute_node = [&](int now, int s) {
        real flux[gas_variables];
        fused_node([&](int, int v) { return at(now, s, v); }, flux, pressure[s + correction_reach]);
        for (int v = 0; v < gas_variables; ++v) f[v][s + correction_reach] = flux[v];
        for (int v = gas_variables; v < conserved_variables; ++v) at(now, s, FUSED_Q + v) /= at(now, s, FUSED_Q);
    };
    LANES {
        for (int s = lane; s < 32 + held; s += 32) {
            const int e = begin - 1 - FUSED_REACH + s;
#define HX_KEEP(v) nodes[0][v][s]
            if (s > 0 && e < end + FUSED_REACH) FUSED_BEGIN(HX_KEEP, plane + e);
#undef HX_KEEP
        }
        FETCHED;
    }
    LANES {
        if (lane > 0 && lane < corrected) compute_node(0, lane - correction_reach);
    }
    int node = (begin - 1 + sj) % sj;  // the place in its row of the element of lane 0
    for (int base = begin - 1, now = 0; base <= end; base += 32, node = place_in_row(node + 32, sj), now = 1 - now) {
#define HX_KEEP(v) nodes[1 - now][v][held + lane]
#define HX_COMING(v) coming[v][lane]
        LANES {
            const int e = base + 31 + FUSED_REACH + lane;
            if (e < end + FUSED_REACH) FUSED_FETCH(HX_KEEP, HX_COMING, plane + e);
        }
        LANES {
            const int e = base + lane;
            if (e <= end) {
                real left[gas_variables], right[gas_variables];
#ifdef HX_INTERPOLATES_NODES
                store_rough(rough + lane + 1, fused_states([&](int s, int v) { return at(now, lane + s, v); }, left, right));
#else
                if (e >= begin)
                    store_rough(rough + lane + 1,
                                fused_states([&](int s, int v) { return at(now, lane + s - 1, v); }, left, right));
#endif
                compute_node(now, lane + correction_reach - 1);
                for (int v = 0; v < gas_variables; ++v) minus[v][lane + 1] = left[v], plus[v][lane] = right[v];
            }
        }
        LANES {
            for (int s = lane; s < 32 + corrected - 2; s += 32)
                jumps[s] = jump_sensor(pressure[s], pressure[s + 1], pressure[s + 2]);
        }
        LANES {  // the half point between elements e - 1 and e, unless both are ghosts
            const int e = base + lane;
            if (e >= begin && e <= end && place_in_row(node + lane, sj) <= n) {
                real left[gas_variables], right[gas_variables], flux[conserved_variables];
#ifdef HX_INTERPOLATES_NODES
                for (int v = 0; v < gas_variables; ++v) left[v] = minus[v][lane], right[v] = plus[v][lane];
                const Rough<real> here = either(load_rough<real>(rough + lane), load_rough<real>(rough + lane + 1));
#else
                for (int v = 0; v < gas_variables; ++v) left[v] = minus[v][lane + 1], right[v] = plus[v][lane];
                const Rough<real> here = load_rough<real>(rough + lane + 1);
#endif
                const real jump = largest_sensor<real>([&](int n) { return jumps[lane + n]; });
                const auto along = [&](int s, int v) { return at(now, lane - 1 + s, v); };
                const auto f_along = [&](int s, int v) { return f[v][lane + correction_reach - 1 + s]; };
                const auto field = [&](int s, int n) { return load<real>(fields + n * sv + plane + e - 1 + s); };
#if HX_SENSORS
                const real share = hybrid_share<real>([&](int s) { return load<real>(sensor + plane + e - 1 + s); });
                for (int v = 0; v < gas_variables; ++v) flux[v] = real(0);
                real split[gas_variables];
                if (share > real(0)) {
                    const auto read = [&](int s, real *node, real *through) {
                        fused_split_node(along, s, node);
                        for (int d = 0; d < 3; ++d) through[d] = along(s, FUSED_M + d);
                    };
                    split_flux(read, split);
                    fused_hybrid(along, left, right, here, f_along, jump, field, share, split, flux);
                }
#else
                fused_flux(along, left, right, here, f_along, jump, field, flux);
#endif
                fused_scalar_flux(along, [&](int s) { return f_along(s, 0); }, jump, flux);
                for (int v = 0; v < conserved_variables; ++v) fluxes[v][lane + 1] = flux[v];
            }
        }
        LANES {
            const int e = base + lane - 1, l = place_in_row(node + lane, sj) - 1;
            if (e >= begin && e < end && l >= 0 && l < n) {
                real before[conserved_variables], after[conserved_variables];
                for (int v = 0; v < conserved_variables; ++v) before[v] = fluxes[v][lane], after[v] = fluxes[v][lane + 1];
                if (viscous_flux) fused_viscous(viscous_flux, plane + e, 1ll, sv, before);
                const work_real *diffusive_flux = viscous_flux ? viscous_flux + gas_gradients * sv : nullptr;
                fused_difference(r, plane + e, 1ll, sv, l, n, before, after, diffusive_flux, first, walls, sums);
            }
        }
        LANES {
            if (lane < corrected) {
                pressure[lane] = pressure[lane + 32];
                for (int v = 0; v < gas_variables; ++v) f[v][lane] = f[v][lane + 32];
            }
            if (lane < held)
                for (int v = 0; v < FUSED_F; ++v) nodes[1 - now][v][lane] = nodes[now][v][lane + 32];
            if (lane < gas_variables) minus[lane][0] = minus[lane][32];
            if (HX_LIMITER && lane == 0) rough[0] = rough[32];
            for (int v = lane; v < conserved_variables; v += 32) fluxes[v][0] = fluxes[v][32];
            FETCHED;
            if (base + 31 + FUSED_REACH + lane < end + FUSED_REACH) FUSED_ARRIVE(HX_KEEP, HX_COMING);
        }
#undef HX_COMING
#undef HX_KEEP
    }
}

// Rows along i, each plane of them as one line of (rows - 1) sj + n elements, i its chunk of `chunk` elements.
ROW_KERNEL(sweep_along, int i, int j, int k, int o, int sj, int sk, int n, int rows, int chunk, stride sv,
           const_state_field<conserved_variables> q, const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
           const_work_field<HX_SENSORS> sensor, optional<const_work_field<gradient_variables>> viscous_flux,
           rate_field<conserved_variables> r, int first, int walls, optional<rate_field<conserved_variables>> sums) {
    const int elements = (rows - 1) * sj + n, begin = i * chunk, end = elements - begin < chunk ? elements : begin + chunk;
    (void)j;
    sweep_rows(o + (long long)k * sk, sj, begin, end, n, sv, q, m, fields, sensor, viscous_flux, r, first, walls, sums);
}

#if HX_SENSORS
// The same if there are more than `limit` segments along i, by `warps` warps that take the chunks of all planes in turn.
ROW_KERNEL(sweep_all_along, int i, int j, int k, int warps, int limit, int corner, int sj, int sk, int n, int rows,
           int planes, int chunk, stride sv, const_state_field<conserved_variables> q, const_work_field<3> m,
           const_work_field<HX_FLUX_FIELDS> fields, const_work_field<HX_SENSORS> sensor,
           rate_field<conserved_variables> r, const int *count) {
    const int elements = (rows - 1) * sj + n, chunks = (elements + chunk - 1) / chunk;
    (void)j, (void)k;
    if (count[0] <= limit) return;
    for (int s = i; s < chunks * planes; s += warps) {
        const int begin = s % chunks * chunk, end = elements - begin < chunk ? elements : begin + chunk;
        const long long plane = corner + (long long)(s / chunks) * sk;
        sweep_rows(plane, sj, begin, end, n, sv, q, m, fields, sensor, nullptr, r, 0, 0, nullptr);
    }
}
#endif
#endif
