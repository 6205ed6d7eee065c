// The inviscid right-hand side on a CPU. It visits one direction at a time and a bundle of grid lines in a cache-sized
// buffer, with packs along the contiguous index. The point functions are those of inviscid.h.
//
// Buffer index e = (position along the line) * B + lane, B the width of the bundle, so that the neighbour along the
// line is always e + B. Sweeps across i bundle B neighbouring lines (aligned lanes). The sweep along i takes one line
// with B = 1, and packs slide along it. Short lines along i are bundled as well, since their last packs would be half
// empty.
#include "wall_sums.h"

#ifdef HX_CPU
namespace pencil {
constexpr int W = pack::size();
constexpr int H = ghost_layers;
constexpr int BUFFERED = 4 * gas_variables + 4 + HX_FLUX_FIELDS;  // per node: q, m, f, sensor, minus, plus, fields
constexpr int BUNDLES = 32;  // wanted number in a block, if it has enough lines
constexpr int SMALL = 512;   // least number of nodes in a bundle for a thread of its own
constexpr int SHORT = 6 * W;  // least length of lines along i along which packs slide

struct Buffer {  // one for each thread; grows for longer lines
    real *memory = nullptr;
    size_t reals = 0;
    real *take(size_t count) {
        if (count > reals) {
            free(memory);
            reals = count;
            memory = static_cast<real *>(aligned_alloc(64, (count * sizeof(real) + 63) / 64 * 64));
            for (size_t i = 0; i < count; ++i) memory[i] = real(0);
        }
        return memory;
    }
    ~Buffer() { free(memory); }
};

struct Line {
    int n, B, lanes, apart;  // nodes along the line, bundle width in the buffer, valid lanes, their distance in memory
    size_t size;      // reals of one buffered variable
    real *q, *m, *f, *sensor, *minus, *plus, *fields;
    mark *rough;  // roughness from the interpolation, at the node or half point of minus

    Line(Buffer &buffer, int n, int B, int lanes, int apart) : n(n), B(B), lanes(lanes), apart(apart) {
        size = (size_t(n + 2 * H) * B + 2 * W + 15) / 16 * 16;
        constexpr int metrics = 3;
        q = buffer.take(size * BUFFERED + HX_LIMITER * size * sizeof(mark) / sizeof(real));
        m = q + gas_variables * size, f = m + metrics * size;
        sensor = f + gas_variables * size, minus = sensor + size, plus = minus + gas_variables * size;
        fields = plus + gas_variables * size, rough = reinterpret_cast<mark *>(fields + HX_FLUX_FIELDS * size);
    }
    // Copies one variable of the nodes -H..n+H-1. Places behind the end that packs read repeat the last node.
    template <class From> void gather(From source, long long stride, real *target) const {
        int count = n + 2 * H;
        source -= H * stride;
        if (B == 1) {
            for (int e = 0; e < count; ++e) target[e] = source[e];
            for (int e = count; e < count + W; ++e) target[e] = source[count - 1];
        } else {
            for (int l = 0; l < count; ++l, source += stride, target += B) {
                if (apart == 1)
                    for (int e = 0; e < lanes; ++e) target[e] = source[e];
                else
                    for (int e = 0; e < lanes; ++e) target[e] = source[(long long)e * apart];
                for (int e = lanes; e < B; ++e) target[e] = target[lanes - 1];
            }
            for (int e = 0; e < W; ++e) target[e] = target[e - B];
        }
    }
    // The first buffer index of node a
    size_t node(int a) const { return size_t(a + H) * B; }
};

HD void nodes(const Line &line) {  // physical flux and pressure of every node; line.plus holds the pressure
    for (size_t e = 0, end = size_t(line.n + 2 * H) * line.B; e < end; e += W) {
        pack q[gas_variables], m[3], f[gas_variables];
        for (int v = 0; v < gas_variables; ++v) q[v] = load<pack>(line.q + v * line.size + e);
        for (int d = 0; d < 3; ++d) m[d] = load<pack>(line.m + d * line.size + e);
        Primitive<pack> s = primitive(q);
        flux_of(q, s, m, f);
        for (int v = 0; v < gas_variables; ++v) store(line.f + v * line.size + e, f[v]);
        store(line.plus + e, s.p);
    }
    if (HX_REGULARISED || !scales_correction) return;
    for (size_t e = line.node(1 - correction_reach), end = line.node(line.n - 1 + correction_reach); e < end; e += W) {
        const real *p = line.plus + e;
        store(line.sensor + e, jump_sensor(load<pack>(p - line.B), load<pack>(p), load<pack>(p + line.B)));
    }
}

// Prefetches the nodes of the next bundle, since the hardware does not prefetch rows of so many arrays.
struct Ahead {
    const stored_real *q = nullptr;
    const work_real *m;
    const rate_real *r;
    const work_real *viscous_flux, *fields;
    long long sv, sd;
    HD void operator()(const Line &line, size_t e) const {
        if (!q) return;
        const long long place = (int(e) / line.B - H) * sd + int(e) % line.B * line.apart;
        for (int v = 0; v < gas_variables; ++v) __builtin_prefetch(q + v * sv + place, 0, 2);
        for (int d = 0; d < 3; ++d) __builtin_prefetch(m + d * sv + place, 0, 2);
        for (int n = 0; n < HX_FLUX_FIELDS; ++n) __builtin_prefetch(fields + n * sv + place, 0, 2);
        for (int v = 0; v < gas_variables; ++v) __builtin_prefetch(r + v * sv + place, 1, 2);
        if (viscous_flux)
            for (int v = 0; v < gas_gradients; ++v) __builtin_prefetch(viscous_flux + v * sv + place, 0, 2);
    }
};

HD void interpolations(const Line &line, const Ahead &ahead) {  // minus[h], plus[h]: the two states at h + 1/2, h = -1..n-1
    const int B = line.B;
#ifdef HX_INTERPOLATES_NODES
    for (size_t e = line.node(-1), end = line.node(line.n + 1); e < end; e += W) {
        const size_t right = e, left = e - B;
        ahead(line, e);
        pack m[3], minus[gas_variables], plus[gas_variables];
        for (int d = 0; d < 3; ++d) m[d] = load<pack>(line.m + d * line.size + e);
#else
    for (size_t e = line.node(-1), end = line.node(line.n); e < end; e += W) {
        const size_t right = e, left = e;
        ahead(line, e);
        pack m[3], minus[gas_variables], plus[gas_variables];
        for (int d = 0; d < 3; ++d)
            m[d] = interpolate_metric<pack>([&](int s) { return load<pack>(line.m + d * line.size + e + s * B); });
#endif
        const auto state = [&](int s, int v) { return load<pack>(line.q + v * line.size + e + s * B); };
        store_rough(line.rough + e, interpolate(state, m, minus, plus));
        for (int v = 0; v < gas_variables; ++v) {
            store(line.minus + v * line.size + right, minus[v]);
            store(line.plus + v * line.size + left, plus[v]);
        }
    }
}

// Stores the flux at h + 1/2, h = -1..n-1, in minus.
HD void fluxes(const Line &line, const Ahead &ahead) {
    const int B = line.B;
    for (size_t e = line.node(-1), end = line.node(line.n); e < end; e += W) {
        pack m[3], minus[gas_variables], plus[gas_variables], flux[gas_variables];
        const auto state = [&](int o, int v) { return load<pack>(line.q + v * line.size + e + o * B); };
        if (HX_REGULARISED) ahead(line, e);
        for (int d = 0; d < 3; ++d)
            m[d] = interpolate_metric<pack>([&](int s) { return load<pack>(line.m + d * line.size + e + s * B); });
        for (int v = 0; v < gas_variables; ++v) {
            minus[v] = load<pack>(line.minus + v * line.size + e);
            plus[v] = load<pack>(line.plus + v * line.size + e);
        }
        Rough<pack> rough = rough_between(load_rough<pack>(line.rough + e), load_rough<pack>(line.rough + e + B));
        replace_states(state, minus, plus, rough);
        const real *s = line.sensor + e - (correction_reach - 2) * B;
        pack sensor = largest_sensor<pack>([&](int n) { return load<pack>(s + n * B); });
        half_point_flux(minus, plus, m, [&](int o, int v) { return load<pack>(line.f + v * line.size + e + o * B); },
                        sensor, [&](int o, int n) { return load<pack>(line.fields + n * line.size + e + o * B); }, flux);
        limit_where(rough, state, [&](int s, int d) { return load<pack>(line.m + d * line.size + e + s * B); }, flux);
        for (int v = 0; v < gas_variables; ++v) store(line.minus + v * line.size + e, flux[v]);
    }
}

// As `difference`; place(e): the place of lane e in memory
template <class Place>
HD void difference_at(const Line &line, Place place, const real *fluxes, const work_real *viscous_flux, rate_real *r,
                      int sd, int first) {
    const int B = line.B, count = B == 1 ? line.n : line.lanes, lines = B == 1 ? 1 : line.n;
    const real *flux = fluxes + line.node(0);
    const work_real *g = viscous_flux;
    auto of_viscous = [&](int e) {
        return nodal_derivative<real>([&](int s) { return real(g[place(e) + (long long)s * sd]); });
    };
    for (int l = 0; l < lines; ++l, r += sd, flux += B) {
        if (first)
            for (int e = 0; e < count; ++e) r[place(e)] = flux[e - B] - flux[e];
        else if (!g)
            for (int e = 0; e < count; ++e) r[place(e)] += flux[e - B] - flux[e];
        else
            for (int e = 0; e < count; ++e) r[place(e)] += flux[e - B] - flux[e] + of_viscous(e);
        if (g && first)
            for (int e = 0; e < count; ++e) r[place(e)] += of_viscous(e);
        if (g) g += sd;
    }
}

// For one variable, r -= F_{i+1/2} - F_{i-1/2} and r += the derivative of its viscous flux, if there is one.
HD void difference(const Line &line, const real *fluxes, const work_real *viscous_flux, rate_real *r, int sd, int first) {
    if (line.apart == 1)
        difference_at(line, [](int e) { return e; }, fluxes, viscous_flux, r, sd, first);
    else
        difference_at(line, [&](int e) { return (long long)e * line.apart; }, fluxes, viscous_flux, r, sd, first);
}

// Does the work of face_mass at both ends of the line.
HD void end_sums(const Line &line, const real *fluxes, rate_real *sums, int sd) {
    const int B = line.B, count = B == 1 ? 1 : line.lanes;
    for (int l = 0; l < wall_weighted; ++l) {
        if (wall_row(l) == 0) continue;
        const real *low = fluxes + line.node(l), *high = fluxes + line.node(line.n - 1 - l);
        rate_real *below = sums - (long long)wall_row(l) * sd, *above = sums + (long long)(line.n - 1 + wall_row(l)) * sd;
        for (int e = 0; e < count; ++e) {
            below[(long long)e * line.apart] = wall_part(l, low[e - B], low[e]);
            above[(long long)e * line.apart] = wall_part(l, high[e], high[e - B]);
        }
    }
}

// Returns the bundle width for lines of n nodes, of which `available` lie side by side in each of `planes` planes. The
// buffer takes at most about half of a common L2 cache of 1 MiB, and each of several threads has several bundles. In a
// block with few lines the last bundle may be narrower.
HD int bundle(int n, int available, int planes) {
    int packs = int(512 * 1024 / (BUFFERED * sizeof(real) * W * size_t(n + 2 * H)));
    // A row of a bundle has at most four cache lines, or two where fluxes read only nodes, which then stay in L1.
    constexpr int most = (W < 8 ? 32 / W : 4) / (HX_REGULARISED ? 2 : 1);
    packs = packs > most ? most : packs;
    const long long needed = (available + W - 1) / W, few = needed * planes / BUNDLES, small = SMALL / (W * n);
    packs = packs > few && packs > small ? int(few > small ? few : small) : packs;
    return W * (packs < 1 ? 1 : packs < needed ? packs : int(needed));
}

// True for a sweep along i whose packs slide along single lines; otherwise packs hold nodes of several lines.
HD bool slides(int sd, int nd, int n1) { return sd == 1 && (nd >= SHORT || n1 < W); }
}  // namespace pencil
#include "scalar_pencil.h"

// The weight of a node of a bundle: the number of points of a kernel that only moves data with about the same cost.
constexpr long long SWEEP_WEIGHT = 16;

// The number of bundles of inviscid_sweep, and the weight of one
static hx_shape inviscid_sweep_parts(const_state_pointer q, const work_real *m, const work_real *fields,
                                     const work_real *viscous_flux, rate_real *r, rate_real *sums, stride sv, int o,
                                     int sd, int nd, int s1, int n1, int s2, int n2, int first) {
    (void)q, (void)m, (void)fields, (void)viscous_flux, (void)r, (void)sums, (void)sv, (void)o, (void)s1, (void)s2;
    (void)first;
    const long long B = pencil::slides(sd, nd, n1) ? 1 : pencil::bundle(nd, n1, n2);
    return {(n1 + B - 1) / B * n2, SWEEP_WEIGHT * B * nd};
}

// r -= the inviscid flux differences along one direction of a block, and r += the differences of `viscous_flux`, with
// ghosts, where it is given; the update multiplies by J. q, m (3 area components of this direction), r: padded arrays
// with variable stride sv; o: the index of node (0, 0, 0). sd, nd: stride and nodes along the sweep; (s1, n1), (s2,
// n2): the other two directions, s1 <= s2. first: r is set, not added to. sums: given where there is a wall at an end
// of the lines. fields: those that the flux reads.
CPU_KERNEL(inviscid_sweep, long long begin, long long end, const_state_field<conserved_variables> q,
           const_work_field<3> m, const_work_field<HX_FLUX_FIELDS> fields,
           optional<const_work_field<gradient_variables>> viscous_flux, rate_field<conserved_variables> r,
           optional<rate_field<conserved_variables>> sums, stride sv, int o, int sd, int nd, int s1, int n1, int s2,
           int n2, int first) {
    using namespace pencil;
    const bool along = slides(sd, nd, n1);
    const int B = along ? 1 : bundle(nd, n1, n2), apart = sd == 1 && !along ? s1 : 1;
    const int bundles = (n1 + B - 1) / B;
    static thread_local Buffer buffer;
    auto place = [&](long long part) { return o + part / bundles * s2 + part % bundles * (along ? s1 : B * apart); };
    for (long long part = begin; part < end; ++part) {
        const int left = along ? 1 : n1 - int(part % bundles) * B, lanes = left < B ? left : B;
        const long long at = place(part), next = place(part + 1);
        auto carried = [&](int v, long long at) { return viscous_flux && v > 0 ? viscous_flux + (v - 1) * sv + at : nullptr; };
        Line line(buffer, nd, along ? 1 : (lanes + W - 1) / W * W, lanes, apart);
        for (int v = 0; v < gas_variables; ++v) line.gather(q + v * sv + at, sd, line.q + v * line.size);
        for (int d = 0; d < 3; ++d) line.gather(m + d * sv + at, sd, line.m + d * line.size);
        for (int n = 0; n < HX_FLUX_FIELDS; ++n) line.gather(fields + n * sv + at, sd, line.fields + n * line.size);
        nodes(line);
        Ahead ahead;
        if (part + 1 < end) ahead = {address(q + next), m + next, r + next, carried(1, next), fields + next, sv, sd};
        if (!HX_REGULARISED) interpolations(line, ahead);
        fluxes(line, ahead);
        for (int v = 0; v < gas_variables; ++v)
            difference(line, line.minus + v * line.size, carried(v, at), r + v * sv + at, sd, first);
        if (sums) end_sums(line, line.minus, sums + at, sd);
        for (int v = gas_variables; v < conserved_variables; ++v)
            scalar(line, v - gas_variables, q + v * sv + at, carried(v, at), r + v * sv + at,
                   sums ? sums + v * sv + at : nullptr, sd, first);
    }
}
#endif
