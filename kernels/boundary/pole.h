// Pole: a face of a block that has collapsed to a line. All nodes of a ring around the line lie at one position. The
// ghosts behind the pole are the nodes on its opposite side (hiresx/grid/rings.py). The nodes of the pole obey no
// equation. They take a mean of the rings around them (hiresx/rhs/pole.py).
// s1: stride along the line, s2: around it, sn: away from it; height: number of nodes around it.

// sums[ring][variable][i]: sums over each of the three rings next to the line. The first and the last node have the
// weights `first_share` and `last_share`.
KERNEL(pole_sums, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int height, int width,
       real first_share, real last_share, const_state_field<conserved_variables> q, real *sums) {
    const long long p = o + (long long)i * s1;
    for (int l = 0; l < 3; ++l)
        for (int v = 0; v < conserved_variables; ++v) {
            real sum = real(0);
            for (int m = 0; m < height; ++m) {
                const real share = m == 0 ? first_share : m == height - 1 ? last_share : real(1);
                sum += share * q[v * sv + p + (long long)m * s2 + (long long)(l + 1) * sn];
            }
            sums[(long long)(conserved_variables * l + v) * width + i] = sum;
        }
    (void)j;
}

KERNEL(pole_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int width, const real *target,
       state_field<conserved_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    for (int v = 0; v < conserved_variables; ++v) q[v * sv + p] = target[(long long)v * width + i];
    (void)sn;
}

KERNEL(pole_rest, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, rate_field<conserved_variables> r) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    for (int v = 0; v < conserved_variables; ++v) r[v * sv + p] = real(0);
    (void)sn;
}
