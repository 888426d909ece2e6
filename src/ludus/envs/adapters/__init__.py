"""Adapters between the batched contract and other ecosystems."""
