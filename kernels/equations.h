// The sizes of the system of equations, which hiresx/equations/system.py gives. At a node:
//   conserved  rho, rho u, rho v, rho w, e (those of the gas), rho s of every passive scalar
//   gradients  u, v, w, T, s: what viscous terms take derivatives of; their fluxes change conserved variable 1, 2, ...
constexpr int gas_variables = HX_GAS_VARIABLES;
constexpr int scalar_variables = HX_SCALARS;
constexpr int conserved_variables = gas_variables + scalar_variables;
constexpr int gas_gradients = HX_GAS_GRADIENTS;
constexpr int gradient_variables = gas_gradients + scalar_variables;
// Layers of ghosts that every array holds beyond a face: what the farthest stencil of the run reaches.
constexpr int ghost_layers = HX_GHOST_LAYERS;
// Nodes to each side of the central differences of the viscous terms.
constexpr int viscous_reach = HX_VISCOUS_REACH;
