"""City: a city builder that is played through the screen."""
