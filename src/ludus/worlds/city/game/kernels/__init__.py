"""The simulation as Warp kernels; one thread is one city."""
