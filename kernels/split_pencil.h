// The split and the hybrid form of the inviscid terms in the CPU's pencils (inviscid_pencil.h). A bundle of grid lines
// is in cache, and each pair of nodes is computed once. Where the sensor is 0 in all lanes of a pack, nothing is
// interpolated.
#if HX_SPLIT && defined(HX_CPU)
namespace pencil {
constexpr int SPLIT_BUFFERED = split_variables + split_reach * gas_variables + HX_SENSORS;  // per node, beside a Line

struct SplitLine {
    const Line &line;
    real *nodes, *parts, *sensor;  // of split_node; of split_parts, the first of which becomes the flux

    SplitLine(Buffer &buffer, const Line &line) : line(line) {
        nodes = buffer.take(line.size * SPLIT_BUFFERED);
        parts = nodes + split_variables * line.size, sensor = parts + split_reach * gas_variables * line.size;
    }
    HD real *part(int l, int v) const { return parts + (l * gas_variables + v) * line.size; }
    HD auto state(size_t e) const {
        return [this, e](int s, int v) { return load<pack>(line.q + v * line.size + e + s * line.B); };
    }
    HD auto area(size_t e) const {
        return [this, e](int s, int d) { return load<pack>(line.m + d * line.size + e + s * line.B); };
    }
    HD auto node(size_t e) const {
        return [this, e](int s, int v) { return load<pack>(nodes + v * line.size + e + s * line.B); };
    }
};

HD void split_nodes(const SplitLine &split) {
    const Line &line = split.line;
    for (size_t e = 0, end = size_t(line.n + 2 * H) * line.B; e < end; e += W) {
        pack q[gas_variables], node[split_variables];
        for (int v = 0; v < gas_variables; ++v) q[v] = load<pack>(line.q + v * line.size + e);
        split_node(q, node);
        for (int v = 0; v < split_variables; ++v) store(split.nodes + v * line.size + e, node[v]);
    }
}

// Computes the fluxes of the split form at h + 1/2, h = -1..n-1.
HD void split_fluxes(const SplitLine &split, const Ahead &ahead) {
    const Line &line = split.line;
    for (size_t e = line.node(-split_reach), end = line.node(line.n); e < end; e += W) {
        pack parts[split_reach][gas_variables];
        ahead(line, e);
        split_parts(split.node(e), split.area(e), parts);
        for (int l = 0; l < split_reach; ++l)
            for (int v = 0; v < gas_variables; ++v) store(split.part(l, v) + e, parts[l][v]);
    }
    for (int v = 0; v < gas_variables; ++v)
        for (size_t e = line.node(-1), end = line.node(line.n); e < end; e += W) {
            pack flux = load<pack>(split.part(0, v) + e);
            for (int l = 1; l < split_reach; ++l) flux = flux + load<pack>(split.part(l, v) + e - l * line.B);
            store(split.part(0, v) + e, flux);
        }
}

#if HX_SENSORS
HD pack share_at(const SplitLine &split, size_t e) {
    return hybrid_share<pack>([&](int s) { return load<pack>(split.sensor + e + s * split.line.B); });
}

// Interpolates the two states at the half points of packs that have shares above 0. Returns whether there are any.
HD bool hybrid_states(const SplitLine &split) {
    const Line &line = split.line;
    const int B = line.B, behind = B == 1 ? W : B;  // distance to the pack with the half points behind these nodes
    const size_t first = line.node(-1), last = line.node(line.n);
    const auto asked = [&](size_t e) { return e >= first && e < last && anywhere(share_at(split, e) > pack(real(0))); };
    bool any = false;
#ifdef HX_INTERPOLATES_NODES
    for (size_t e = first, end = line.node(line.n + 1); e < end; e += W) {
        if (!asked(e) && !asked(e - behind)) continue;
        pack m[3], minus[gas_variables], plus[gas_variables];
        for (int d = 0; d < 3; ++d) m[d] = load<pack>(line.m + d * line.size + e);
        const size_t left = e - B;
#else
    (void)behind;
    for (size_t e = first; e < last; e += W) {
        if (!asked(e)) continue;
        pack m[3], minus[gas_variables], plus[gas_variables];
        for (int d = 0; d < 3; ++d) m[d] = interpolate_metric<pack>([&](int s) { return split.area(e)(s, d); });
        const size_t left = e;
#endif
        any = true;
        store_rough(line.rough + e, interpolate(split.state(e), m, minus, plus));
        for (int v = 0; v < gas_variables; ++v) {
            store(line.minus + v * line.size + e, minus[v]);
            store(line.plus + v * line.size + left, plus[v]);
        }
    }
    return any;
}

// Turns the split fluxes into those of the hybrid form.
HD void hybrid_fluxes(const SplitLine &split) {
    const Line &line = split.line;
    const int B = line.B;
    for (size_t e = line.node(-1), end = line.node(line.n); e < end; e += W) {
        const pack share = share_at(split, e);
        if (!anywhere(share > pack(real(0)))) continue;
        pack minus[gas_variables], plus[gas_variables], flux[gas_variables];
        for (int v = 0; v < gas_variables; ++v) {
            minus[v] = load<pack>(line.minus + v * line.size + e);
            plus[v] = load<pack>(line.plus + v * line.size + e);
            flux[v] = load<pack>(split.part(0, v) + e);
        }
        const Rough<pack> rough = rough_between(load_rough<pack>(line.rough + e), load_rough<pack>(line.rough + e + B));
        pack other[gas_variables];
        interpolated_flux(split.state(e), split.area(e), split.node(e),
                          [&](int s, int n) { return load<pack>(line.fields + n * line.size + e + s * line.B); }, minus,
                          plus, other);
        blend_flux(split.state(e), split.area(e), share, rough, other, flux);
        for (int v = 0; v < gas_variables; ++v) store(split.part(0, v) + e, flux[v]);
    }
}
#endif
}  // namespace pencil

static hx_shape split_sweep_parts(const_state_pointer q, const work_real *m, const work_real *fields,
                                  const work_real *sensor, const work_real *viscous_flux, rate_real *r, rate_real *sums,
                                  stride sv, int o, int sd, int nd, int s1, int n1, int s2, int n2, int first) {
    (void)sensor;
    hx_shape shape = inviscid_sweep_parts(q, m, fields, viscous_flux, r, sums, sv, o, sd, nd, s1, n1, s2, n2, first);
    shape.weight /= 2;
    return shape;
}

// As inviscid_sweep, for the split and the hybrid form.
CPU_KERNEL(split_sweep, long long begin, long long end, const_state_field<gas_variables> q, const_work_field<3> m,
           const_work_field<HX_FLUX_FIELDS> fields, const_work_field<HX_SENSORS> sensor,
           optional<const_work_field<gas_gradients>> viscous_flux, rate_field<gas_variables> r,
           optional<rate_field<gas_variables>> sums, stride sv, int o, int sd, int nd, int s1, int n1, int s2, int n2,
           int first) {
    using namespace pencil;
    const bool along = slides(sd, nd, n1);
    const int B = along ? 1 : bundle(nd, n1, n2), apart = sd == 1 && !along ? s1 : 1;
    const int bundles = (n1 + B - 1) / B;
    static thread_local Buffer buffer, beside;
    auto place = [&](long long part) { return o + part / bundles * s2 + part % bundles * (along ? s1 : B * apart); };
    for (long long part = begin; part < end; ++part) {
        const int left = along ? 1 : n1 - int(part % bundles) * B, lanes = left < B ? left : B;
        const long long at = place(part), next = place(part + 1);
        auto carried = [&](int v, long long at) { return viscous_flux && v > 0 ? viscous_flux + (v - 1) * sv + at : nullptr; };
        Line line(buffer, nd, along ? 1 : (lanes + W - 1) / W * W, lanes, apart);
        SplitLine split(beside, line);
        for (int v = 0; v < gas_variables; ++v) line.gather(q + v * sv + at, sd, line.q + v * line.size);
        for (int d = 0; d < 3; ++d) line.gather(m + d * sv + at, sd, line.m + d * line.size);
        for (int n = 0; n < HX_FLUX_FIELDS; ++n) line.gather(fields + n * sv + at, sd, line.fields + n * line.size);
        if (HX_SENSORS) line.gather(sensor + at, sd, split.sensor);
        Ahead ahead;
        if (part + 1 < end) ahead = {address(q + next), m + next, r + next, carried(1, next), fields + next, sv, sd};
        split_nodes(split);
        split_fluxes(split, ahead);
#if HX_SENSORS
        if (hybrid_states(split)) hybrid_fluxes(split);
#endif
        for (int v = 0; v < gas_variables; ++v)
            difference(line, split.part(0, v), carried(v, at), r + v * sv + at, sd, first);
        if (sums) end_sums(line, split.part(0, 0), sums + at, sd);
    }
}
#endif
