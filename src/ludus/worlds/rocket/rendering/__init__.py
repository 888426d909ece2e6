"""Drawing Rocket: cameras, arena, cars, ball, effects, head-up display; `render.py` puts it together."""
