"""Motions of users: files that are read and checked, strides found in them, and the reference that is made of them."""
