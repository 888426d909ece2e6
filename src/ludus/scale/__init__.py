"""Many runs at once, on Ray: hyperparameter sweeps. Ray and Optuna are imported only when a sweep runs."""
