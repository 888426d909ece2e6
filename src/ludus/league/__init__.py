"""The league: who the learner plays against. Snapshots and scripted bots, drawn per game and episode; no I/O."""
