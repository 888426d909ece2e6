"""Drawing Rocket: cameras, arena, cars, ball, effects, head-up display; `ludus.envs.rocket.render` puts it together."""
