"""Pages of the documentation that are made from the code whenever the site is built; nothing of it is committed."""
