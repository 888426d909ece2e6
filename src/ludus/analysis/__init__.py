"""Analysis of strategy encoders: recordings, probes, ablations and figures."""
