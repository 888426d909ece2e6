"""The pictures of the embedded city builder, drawn by code alone."""
