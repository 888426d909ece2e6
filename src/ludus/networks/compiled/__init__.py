"""Parts of networks as compiled functions for the CPU, where calling an operation costs more than doing it.

Warp brings a compiler with it, so nothing else has to be installed; a machine compiles once, in a few seconds.
"""
