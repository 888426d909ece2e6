"""Everything of Brawl that Warp compiles: state structs, rules in motion, observations, bots."""
