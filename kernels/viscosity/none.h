// Inviscid: the viscous kernels are not built.
