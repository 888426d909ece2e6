"""Agents in a web page: the simulator and the policy as WebAssembly, made of the same kernels and weights."""
