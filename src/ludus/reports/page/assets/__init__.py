"""Scripts, styles and the frame of the page, all written for it."""
