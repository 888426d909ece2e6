"""The simulator as Warp kernels, compiled for CPU and CUDA from one source."""
