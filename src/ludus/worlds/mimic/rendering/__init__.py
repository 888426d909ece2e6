"""Pictures of walkers: MuJoCo's renderer without a screen."""
