"""Fused LSTM recurrences: compiled by Warp for the CPU, by Triton for CUDA.

On a CPU calling an operation costs more than doing it. Warp brings a compiler with it, so nothing else has to be
installed; a machine compiles once, in a few seconds.
"""
