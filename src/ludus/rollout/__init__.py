"""Playing with a policy: the learner batch, the collector and its buffer, advantages, rewards, episode statistics."""
