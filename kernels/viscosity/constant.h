// mu = 1 (in units of mu_ref).
#define HX_VISCOUS
template <class T> HD T viscosity(T) { return T(real(1)); }
