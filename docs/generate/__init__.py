"""Pages of the documentation that are made from the code whenever the site is built; nothing of it is committed."""

# Paths of the generated reference pages inside the site's source; one page per example comes beside them.
REFERENCE_PAGES = ("reference/api.md", "reference/cli.md", "reference/configuration.md", "reference/events.md")
