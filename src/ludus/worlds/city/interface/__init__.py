"""The interface of the embedded city builder: what is where on the screen and what a click or a key does."""
