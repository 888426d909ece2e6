"""What happens to a walker around its physics, as Warp kernels: one thread per walker, compiled for CPU and CUDA."""
