// Derivatives of the flux through the face between two nodes by the state of one of them. Dual numbers with one
// derivative, of reals or packs, give one column after the other, the derivative by one variable. The compiler moves
// what all columns have in common out of the loop.
#pragma once
#include "face_flux.h"

// f: the flux between two states of which only one has derivatives, the left one if `of_left`. For a split flux without
// viscous terms and scalars, the part of the other state is left out.
template <bool of_left, class T>
HD void flux_along(const dual<1, T> *left, const dual<1, T> *right, const T *area, T jacobian, real inverse_reynolds,
                   const T &eddies, const TransportedConstants<T> &known, dual<1, T> *f) {
#if defined(HX_SPLIT_FLUX) && !defined(HX_VISCOUS)
    if constexpr (block_variables == gas_variables) {
        const T area2 = area[0] * area[0] + area[1] * area[1] + area[2] * area[2] + no_area, inverse = reciprocal_root(area2);
        flux_splitting::template flux<of_left ? 1 : -1>(of_left ? left : right, area, area2 * inverse, inverse, f);
        return;
    }
#endif
    face_flux(left, right, area, jacobian, inverse_reynolds, eddies, f, known);
}

// f: flux(left, right, f) with the derivatives by variable b of one state
template <bool of_left, class T, class Flux>
HD void column_of(const T *ql, const T *qr, int b, const Flux &flux, dual<1, T> *f) {
    dual<1, T> left[block_variables], right[block_variables];
    for (int v = 0; v < block_variables; ++v) {
        left[v] = dual<1, T>(ql[v]), right[v] = dual<1, T>(qr[v]);
        (of_left ? left : right)[v].slope[0] = v == b ? T(real(1)) : T(real(0));
    }
    flux(left, right, f);
}
// block: the derivative of flux(left, right, f) by one state, row by row
template <bool of_left, class T, class Flux>
HD void columns_of(const T *ql, const T *qr, const Flux &flux, T *block) {
    ROLLED
    for (int b = 0; b < block_variables; ++b) {
        dual<1, T> f[block_variables];
        column_of<of_left>(ql, qr, b, flux, f);
        for (int a = 0; a < block_variables; ++a) block[a * block_variables + b] = f[a].slope[0];
    }
}
template <bool of_left, class T> struct flux_of_face {
    const T *area;
    T jacobian, eddies;
    real inverse_reynolds;
    const TransportedConstants<T> &known;
    HD void operator()(const dual<1, T> *left, const dual<1, T> *right, dual<1, T> *f) const {
        flux_along<of_left>(left, right, area, jacobian, inverse_reynolds, eddies, known, f);
    }
};
template <bool of_left, class T>
HD void flux_derivative(const T *ql, const T *qr, const T *area, T jacobian, real inverse_reynolds, const T &eddies,
                        const TransportedConstants<T> &known, T *block) {
    columns_of<of_left>(ql, qr, flux_of_face<of_left, T>{area, jacobian, eddies, inverse_reynolds, known}, block);
}
// For single nodes, which are few where packs are used
template <bool of_left>
HD_APART void flux_derivative(const real *ql, const real *qr, const real *area, real jacobian, real inverse_reynolds,
                              const real &eddies, const TransportedConstants<real> &known, real *block) {
    flux_derivative<of_left, real>(ql, qr, area, jacobian, inverse_reynolds, eddies, known, block);
}
