"""Drawing Brawl: camera, scenery, fighters, effects, head-up display; `ludus.envs.brawl.render` puts it together."""
