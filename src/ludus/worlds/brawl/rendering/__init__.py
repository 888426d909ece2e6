"""Drawing Brawl: camera, scenery, fighters, effects, head-up display; `ludus.worlds.brawl.render` puts it together."""
