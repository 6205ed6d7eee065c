// The sizes of the system of equations, which hiresx/equations/system.py gives. At a node:
//   conserved  rho, rho u, rho v, rho w, e (those of the gas), rho s of every scalar
//   gradients  u, v, w, T, s: variables of the gradients in viscous terms; flux c changes conserved variable c + 1
constexpr int gas_variables = HX_GAS_VARIABLES;
constexpr int scalar_variables = HX_SCALARS;
constexpr int conserved_variables = gas_variables + scalar_variables;
constexpr int gas_gradients = HX_GAS_GRADIENTS;
constexpr int gradient_variables = gas_gradients + scalar_variables;
// Ghost layers of every array beyond a face: the reach of the widest stencil of the run.
constexpr int ghost_layers = HX_GHOST_LAYERS;
// Nodes on each side that the central differences of the viscous terms read.
constexpr int viscous_reach = HX_VISCOUS_REACH;
