"""The live page: a small web server on this machine that shows runs while they train.

It reads run folders and nothing else, never writes to them, and imports neither torch nor training.
"""
