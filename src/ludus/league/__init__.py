"""The league: who the learner plays against. Past selves and scripted bots, drawn per game and episode; no I/O."""
