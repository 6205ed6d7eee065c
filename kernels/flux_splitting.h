// Flux vector splitting: h(ql, qr) = F+(ql) + F-(qr). `Splitting::flux<side>(q, m, area, 1/area, f)` gives F+ (side 1)
// or F- (side -1) through the area vector m; areas have the type of q or, as constants, `real`.
template <class Splitting, class T> HD void sum_of_splits(const T *ql, const T *qr, const T *m, T *f) {
    T area2 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + no_area;
    T inverse_area = reciprocal_root(area2), area = area2 * inverse_area, g[gas_variables];
    Splitting::template flux<1>(ql, m, area, inverse_area, f);
    Splitting::template flux<-1>(qr, m, area, inverse_area, g);
    for (int v = 0; v < gas_variables; ++v) f[v] = f[v] + g[v];
}
