"""The tables of docs/, made from the raw data beside them: a number there can never differ from what was measured."""
