"""Fork-join on the heartbeat: records of forks, tokens, promotion, joining."""
