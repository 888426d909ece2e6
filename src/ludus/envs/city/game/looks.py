"""Looks: a number for every cell that says all that its picture depends on; the simulation writes it for painting.

`look = kind * KIND + detail`, and `detail` says, by kind: of empty land the terrain times 16 plus a variant or, of
water, where it meets land; of roads and lines the sides on which they go on, plus 16 over water; of zones size, variant
and whether power is missing; of other buildings whether power is missing. `ON_HILL` is added on a hill.
"""

KIND = 1024
ON_HILL = 512
OVER_WATER = 16
SIZE = 16  # of a zone's building, times its size from 0 to 4
VARIANT = 2  # times a variant from 0 to 3
DARK = 1  # power is missing
