// Passive scalars in the CPU's pencils, after the fluxes of the gas, which `minus` holds, mass first; `plus` is free.
namespace pencil {
// q, viscous_flux, sums, r: of scalar `number`; viscous_flux and sums are null if there are none
template <class From>
HD void scalar(const Line &line, int number, From q, const work_real *viscous_flux, rate_real *r, rate_real *sums, int sd,
               int first) {
    const int B = line.B;
    real *s = line.plus, *flux = line.plus + line.size;
    line.gather(q, sd, s);
    for (size_t e = 0, end = size_t(line.n + 2 * H) * B; e < end; e += W)
        store(s + e, load<pack>(s + e) / load<pack>(line.q + e));
    for (size_t e = line.node(-1), end = line.node(line.n); e < end; e += W) {
        const real *jump = line.sensor + e - (correction_reach - 2) * B;
        const pack sensor = largest_sensor<pack>([&](int n) { return load<pack>(jump + n * B); });
        store(flux + e, scalar_flux_at<pack>(number, [&](int o) { return load<pack>(s + e + o * B); },
                                             [&](int o) { return load<pack>(line.f + e + o * B); },
                                             load<pack>(line.minus + e), sensor));
    }
    difference(line, flux, viscous_flux, r, sd, first);
    if (sums) end_sums(line, flux, sums, sd);
}
}  // namespace pencil
