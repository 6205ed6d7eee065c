// r of the transported variable of a model of turbulence: the sources that the viscous fluxes left at every node.
KERNEL(transported_source, int i, int j, int k, int o, int sj, int sk, const_work_field<1> jacobian,
       const_work_field<1> source, rate_field<1> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    r[p] += source[p] / jacobian[p];
}
