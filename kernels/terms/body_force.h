// Body force rho a of the acceleration (ax, ay, az), which kept[0] is added to along a direction (kx, ky, kz), and its
// work rho u . a.
KERNEL(body_force, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<gas_variables> q,
       const_work_field<1> jacobian, real ax, real ay, real az, real kx, real ky, real kz, const real *kept,
       rate_field<gas_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const real volume = real(1) / jacobian[p], more = kept[0];
    const real x = volume * (ax + more * kx), y = volume * (ay + more * ky), z = volume * (az + more * kz);
    const real rho = q[p], mx = q[sv + p], my = q[2 * sv + p], mz = q[3 * sv + p];
    r[sv + p] += rho * x;
    r[2 * sv + p] += rho * y;
    r[3 * sv + p] += rho * z;
    r[4 * sv + p] += mx * x + my * y + mz * z;
}
