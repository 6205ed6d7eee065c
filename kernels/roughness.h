// Roughness: where a positivity limiter has to check a flux. An interpolation calls rough_where, and returns the result
// with its states. Without a limiter Rough is empty, and nothing is computed, stored or loaded for it.
#pragma once

template <class T> struct Rough {
#if HX_LIMITER
    decltype(T() < T()) here;
#endif
};

#if HX_LIMITER
// density2: square of the differences between neighbouring nodes, in units of density
template <class T> HD Rough<T> rough_where(T density2, T density) { return {is_rough(density2, density)}; }
template <class T> HD Rough<T> either(const Rough<T> &a, const Rough<T> &b) { return {either(a.here, b.here)}; }
template <class T, class Mask> HD Rough<T> both(const Rough<T> &a, Mask b) { return {both(a.here, b)}; }
// Loads and stores in memory, as a mark or as a real
template <class T> HD Rough<T> load_rough(const mark *p) { return {load_mask<T>(p)}; }
template <class T> HD Rough<T> load_rough(const real *p) { return {*p != real(0)}; }
template <class T> HD void store_rough(mark *p, const Rough<T> &a) { store(p, a.here); }
HD void store_rough(real *p, const Rough<real> &a) { *p = real(a.here); }
#else
template <class T> HD Rough<T> rough_where(T, T) { return {}; }
template <class T> HD Rough<T> either(const Rough<T> &, const Rough<T> &) { return {}; }
template <class T, class Mask> HD Rough<T> both(const Rough<T> &, Mask) { return {}; }
template <class T, class Number> HD Rough<T> load_rough(const Number *) { return {}; }
template <class T, class Number> HD void store_rough(Number *, const Rough<T> &) {}
#endif
