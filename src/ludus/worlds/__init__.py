"""The worlds that come with Ludus: one folder each, plugged into the engine as anybody else's are."""
