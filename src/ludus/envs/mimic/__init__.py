"""`mimic-v1`: a MuJoCo walker that imitates a reference gait."""
