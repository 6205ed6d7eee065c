// The inviscid right-hand side of one direction in one kernel, for GPUs. It uses the point functions of inviscid.h, but
// the results that the four kernels there pass on in memory stay on the chip. For lines along j and k a thread marches
// along its line. Along i, where nodes are contiguous in memory, a warp goes along a row, 32 nodes at a time. The chip
// keeps the nodes of the stencils and the results for the next half points, and the next nodes arrive there during the
// computation. Lines are cut into chunks, so that a few lines also fill a GPU. The flux between two chunks is computed
// twice, with the same result to round-off.
#include "sensed_tiles.h"
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
// The hybrid flux (hybrid.h) minus the split flux at half point 1/2 between two states, for a `share` above 0.
template <class T, class At, class F, class Fields>
HD void fused_hybrid(const At &at, T *left, T *right, const Rough<T> &rough, const F &f, T jump, const Fields &fields,
                     T share, T *flux) {
    const auto state = [&](int s, int v) { return at(s, FUSED_Q + v); };
    const auto area_at = [&](int s, int d) { return at(s, FUSED_M + d); };
    T area[3], other[gas_variables], split[gas_variables];
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return at(s, FUSED_M + d); });
    half_point_flux(left, right, area, f, jump, fields, other);
    const auto read = [&](int s, T *node, T *through) {
        T own[gas_variables];
        for (int v = 0; v < gas_variables; ++v) own[v] = state(s, v);
        for (int d = 0; d < 3; ++d) through[d] = area_at(s, d);
        split_node(own, node);
    };
    split_flux(read, split);
    for (int v = 0; v < gas_variables; ++v) flux[v] = split[v];
    blend_flux(state, area_at, share, rough, other, flux);
    for (int v = 0; v < gas_variables; ++v) flux[v] = flux[v] - split[v];
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

// Sweeps lines along j or k, each in chunks of `chunk` of its n nodes: (i, j) is the line, k the chunk. s2: stride of
// j; sd: stride along the line; march: planes of a chunk of split_march.
LINE_KERNEL(sweep_across, int i, int j, int k, int o, int s2, int sd, int n, int chunk, stride sv,
            const_state_field<conserved_variables> q, const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
            const_work_field<HX_SENSORS> sensor, const_mark_field<HX_SENSORS> tiles, int march,
            optional<const_work_field<gradient_variables>> viscous_flux, rate_field<conserved_variables> r, int first,
            int walls, optional<rate_field<conserved_variables>> sums) {
    int begin = k * chunk, end = n - begin < chunk ? n : begin + chunk;
    long long p = o + i + (long long)j * s2;
#if HX_SENSORS
    if (!senses_across(tiles + o, sensor + o, i, j, s2, sd, n, begin - split_reach, end + split_reach, march)) return;
    int low = end + split_reach, high = begin - split_reach - 1;  // first and last node with a sensor above 0
    for (int s = begin - split_reach; s < end + split_reach; ++s)
        if (load<real>(sensor + p + (long long)s * sd) > real(0)) low = s < low ? s : low, high = s;
    if (high < low) return;
    begin = low - split_reach > begin ? low - split_reach : begin;
    end = high + split_reach + 1 < end ? high + split_reach + 1 : end;
#else
    (void)sensor, (void)tiles, (void)march;
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
    for (int h = begin - 1; h < end; ++h, p += sd) {
        FETCHED;
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
        const real share = hybrid_share<real>([&](int s) { return load<real>(sensor + p + (long long)s * sd); });
        for (int v = 0; v < gas_variables; ++v) flux[v] = real(0);
        if (share > real(0)) fused_hybrid(at, left, right, rough, f, jump, field, share, flux);
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

#if HX_SENSORS
// Elements of a part of a chunk of rows, which has at most 32 parts. A warp visits a part with the neighbours that it
// needs in two passes. part_of_row: the part of element e of the chunk, as a bit.
constexpr int row_part = 62;
HD unsigned part_of_row(int e) { return 1u << (e < 0 ? 0 : e / row_part); }
#endif

// Sweeps rows along i. The rows of a plane, with the ghosts between them, are contiguous in memory and are treated as
// one line, so that all lanes have work whatever n is. Element e of plane k is node e % sj of row e / sj, a ghost from
// n on. i: the chunk, of `chunk` of the (rows - 1) sj + n elements.
ROW_KERNEL(sweep_along, int i, int j, int k, int o, int sj, int sk, int n, int rows, int chunk, stride sv,
           const_state_field<conserved_variables> q, const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
           const_work_field<HX_SENSORS> sensor,
           optional<const_work_field<gradient_variables>> viscous_flux, rate_field<conserved_variables> r, int first,
           int walls, optional<rate_field<conserved_variables>> sums) {
    // q and m of the elements around 32 half points, and, while they are fetched, of the next 32 elements
    constexpr int held = FUSED_WINDOW - 1, corrected = 2 * correction_reach - 1;
    SHARED real nodes[2][FUSED_F][32 + held];
#ifdef HX_WORK_FP32
    SHARED work_real coming[FUSED_F][32];
#endif
    SHARED real minus[gas_variables][33], plus[gas_variables][32], fluxes[conserved_variables][33];
    SHARED mark rough[HX_LIMITER ? 33 : 1];
    SHARED real f[gas_variables][32 + corrected], pressure[32 + corrected], jumps[32 + corrected - 2];
    const int elements = (rows - 1) * sj + n, chunk_begin = i * chunk;
    const int chunk_end = elements - chunk_begin < chunk ? elements : chunk_begin + chunk;
    const long long plane = o + (long long)k * sk;
    (void)j;
#if HX_SENSORS
    // A warp reads all sensors of its chunk at once, and sweeps only the parts of it whose rates they change.
    SHARED unsigned marks[32];
    LANES {
        unsigned found = 0;
        for (int e = chunk_begin - split_reach + lane; e < chunk_end + split_reach; e += 32)
            found |= load<real>(sensor + plane + e) > real(0)
                         ? part_of_row(e - split_reach - chunk_begin) | part_of_row(e + split_reach - chunk_begin)
                         : 0u;
        marks[lane] = found;
    }
    unsigned marked = 0;
    for (int l = 0; l < 32; ++l) marked |= marks[l];
    for (int begin = chunk_begin; begin < chunk_end; begin += row_part)
#endif
    {
#if HX_SENSORS
        if (!(marked & part_of_row(begin - chunk_begin))) continue;
        const int end = chunk_end - begin < row_part ? chunk_end : begin + row_part;
#else
        (void)sensor;
        const int begin = chunk_begin, end = chunk_end;
#endif
        // Index s is that of element base - FUSED_REACH + s in `nodes`, of base - correction_reach + s in f and
        // pressure, and of base - correction_reach + s + 1 in jumps. minus[0], fluxes[0], rough[0]: results of lane 31
        // of the previous pass.
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
                    if (share > real(0)) fused_hybrid(along, left, right, here, f_along, jump, field, share, flux);
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
}
#endif
