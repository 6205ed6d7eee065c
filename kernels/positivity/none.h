// The bare scheme of the paper: dies at once on strong shocks.
template <class T> HD void keep_admissible(T *, const T *) {}
template <class T> HD T jump_sensor(T, T, T) { return T(real(0)); }
template <class T> HD T correction_scale(T) { return T(real(1)); }
